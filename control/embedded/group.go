package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// answerTime is how long the server that assigns streams may take to answer.
const answerTime = 10 * time.Second

// Leads reports whether this server assigns streams to servers: one of them does.
func (e *Server) Leads() bool { return e.s.JetStreamIsLeader() }

// Size returns how many servers have a say, those included that do not run now. Only the server
// that leads knows.
func (e *Server) Size() (int, error) {
	z, err := e.s.Jsz(nil)
	if err != nil {
		return 0, err
	}
	if z.Meta == nil || z.Meta.Leader != e.node {
		return 0, errors.New("this server does not lead")
	}
	return z.Meta.Size, nil
}

// Copies returns how many of some servers keep the log: all of up to three, then three, and five of
// more. Of two servers both do: with one copy, all that was acknowledged would be on one disk.
func Copies(servers int) int {
	switch {
	case servers >= 5:
		return 5
	case servers >= 3:
		return 3
	}
	return max(servers, 1)
}

// Drop has a server no longer count, so that the others need not wait for it. It needs a majority of
// the servers, that one included. It does nothing to a server that has no say already.
func (e *Server) Drop(ctx context.Context, node string) error {
	conn, err := nats.Connect("", append(e.as(systemUser), nats.Name("yaya "+e.node), nats.NoReconnect())...)
	if err != nil {
		return fmt.Errorf("the log's server: %w", err)
	}
	defer conn.Close()
	ask, err := json.Marshal(server.JSApiMetaServerRemoveRequest{Peer: peerID(node)})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	msg, err := conn.RequestWithContext(ctx, server.JSApiRemoveServer, ask)
	if err != nil {
		return fmt.Errorf("no server has said that the one of %s no longer counts: %w", node, err)
	}
	var answer server.JSApiMetaServerRemoveResponse
	if err := json.Unmarshal(msg.Data, &answer); err != nil {
		return fmt.Errorf("the answer of the log's server: %w", err)
	}
	if e := answer.Error; e != nil && e.ErrCode != uint16(server.JSClusterServerNotMemberErr) {
		return fmt.Errorf("the server of %s cannot be removed: %w", node, e)
	}
	return nil
}
