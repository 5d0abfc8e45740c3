package forward

import (
	"context"
	"errors"
	"net/http"

	"github.com/gorilla/websocket"

	"github.com/yaya-ai/yaya/auth"
)

// Open opens a WebSocket at a path of the node that has something, for somebody whose token it is, ""
// for the owner. has is where nodes ask each other for it. Without error, it returns nil if no node
// that answers has it.
func (f *Forwarder) Open(ctx context.Context, has, path string, who auth.Principal, token string) (_ *websocket.Conn, node string, err error) {
	if node = f.Locate(ctx, has); node == "" {
		return nil, "", nil
	}
	header := http.Header{}
	establish(header, who)
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	dialer := websocket.Dialer{NetDialTLSContext: f.dial, HandshakeTimeout: greetTime}
	ws, resp, err := dialer.DialContext(ctx, "wss://"+node+path, header)
	if resp != nil && err != nil {
		err = errors.Join(errors.New("it answers "+resp.Status), err, resp.Body.Close())
	}
	return ws, node, err
}
