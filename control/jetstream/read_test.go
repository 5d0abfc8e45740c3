package jetstream_test

import (
	"bytes"
	"net"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/jetstream"
	"github.com/yaya-ai/yaya/internal/natstest"
)

// straying is a connection whose first read of the stream goes to somebody who does not answer, as
// if the server that got it stood still.
type straying struct {
	net.Conn
	strayed *atomic.Bool
}

const (
	readSubject  = "$JS.API.DIRECT.GET."
	straySubject = "lost.requests.here." // of the same length
)

func (c straying) Write(p []byte) (int, error) {
	if i := bytes.Index(p, []byte(readSubject)); i >= 0 && c.strayed.CompareAndSwap(false, true) {
		p = bytes.Clone(p)
		copy(p[i:], straySubject)
	}
	return c.Conn.Write(p)
}

// strayingTo connects with a server.
type strayingTo struct {
	s       *server.Server
	strayed atomic.Bool
}

func (s *strayingTo) InProcessConn() (net.Conn, error) {
	c, err := s.s.InProcessConn()
	return straying{c, &s.strayed}, err
}

// CL-09: a read that reaches a server which stands still is asked again, and another one answers. The
// first read of a node compares its copy with the stream: without an answer it would take no changes.
func TestReadsAskAgain(t *testing.T) {
	s := natstest.Start(t)
	conn := natstest.Connect(t, s)
	first := written(t, t.TempDir(), "first", 30)
	if err := jetstream.Found(t.Context(), conn, jetstream.Options{Node: "a", Copy: first}, first); err != nil {
		t.Fatal(err)
	}
	swallowed := make(chan *nats.Msg, 8)
	if _, err := conn.ChanSubscribe(straySubject+">", swallowed); err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	astray, err := nats.Connect("", nats.InProcessServer(&strayingTo{s: s}))
	if err != nil {
		t.Fatal(err)
	}
	defer astray.Close()
	l, err := jetstream.Open(t.Context(), astray, jetstream.Options{Node: "b", Copy: written(t, t.TempDir(), "first", 30)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if e, err := l.Append(t.Context(), control.Change{Event: "test_event", Actor: "tester"}, nil); err != nil || e.Index != 31 {
		t.Errorf("Append after a read that was not answered = entry %d, %v, want entry 31", e.Index, err)
	}
	if len(swallowed) != 1 {
		t.Errorf("%d reads were lost, want 1", len(swallowed))
	}
}
