package tunnel

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"
	"golang.org/x/net/nettest"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/natstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig are two nodes at one server.
type rig struct {
	t            *testing.T
	server       *server.Server
	conn         *nats.Conn // of north
	north, south *end
}

// end is a node with its listener.
type end struct {
	*Tunnel
	l net.Listener
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, server: natstest.Start(t)}
	r.north, r.conn = r.open("north")
	r.south, _ = r.open("south")
	return r
}

// open opens a node that others find.
func (r *rig) open(node string) (*end, *nats.Conn) {
	r.t.Helper()
	conn, err := nats.Connect("", nats.InProcessServer(r.server))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(conn.Close)
	n, err := New(conn, "yaya_tunnel", node)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := n.Close(); err != nil {
			r.t.Errorf("Close of node %s = %v, want no error", node, err)
		}
	})
	if err := conn.Flush(); err != nil { // the server knows now that somebody listens
		r.t.Fatal(err)
	}
	return &end{n, n.Listen()}, conn
}

// pair makes a connection, and returns both ends.
func (r *rig) pair() (here, there *Conn) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Second)
	defer cancel()
	here, err := r.north.Dial(ctx, "south")
	if err != nil {
		r.t.Fatal(err)
	}
	other, err := r.south.l.Accept()
	if err != nil {
		r.t.Fatal(err)
	}
	return here, other.(*Conn)
}

// A connection does what [net.Conn] says.
func TestConn(t *testing.T) {
	r := newRig(t)
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		here, there := r.pair()
		return here, there, func() { _, _ = here.Close(), there.Close() }, nil
	})
}

func TestNames(t *testing.T) {
	r := newRig(t)
	here, there := r.pair()
	defer func() { _, _ = here.Close(), there.Close() }()
	if here.RemoteAddr().String() != "south" || there.RemoteAddr().String() != "north" || here.LocalAddr().String() != "north" || r.south.l.Addr().String() != "south" {
		t.Errorf("the ends are %v to %v and %v to %v, want north to south", here.LocalAddr(), here.RemoteAddr(), there.LocalAddr(), there.RemoteAddr())
	}
	if err := r.south.l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.north.Dial(t.Context(), "south"); !errors.Is(err, ErrNobody) {
		t.Errorf("Dial() of a node that serves no longer = %v, want %v", err, ErrNobody)
	}
	_, err := r.north.Dial(t.Context(), "west")
	if !errors.Is(err, ErrNobody) || !strings.Contains(err.Error(), "west") {
		t.Errorf("Dial() of nobody = %v, want %v", err, ErrNobody)
	}
}

// The other end reads everything that was written before Close, in order, however slowly it reads.
func TestCloseLosesNothing(t *testing.T) {
	r := newRig(t)
	here, there := r.pair()
	defer func() { _ = there.Close() }()
	sent := make([]byte, 3*Window+17)
	_, _ = rand.Read(sent)
	wrote := make(chan error, 1)
	go func() {
		_, err := here.Write(sent)
		wrote <- errors.Join(err, here.Close())
	}()
	got, err := io.ReadAll(io.MultiReader(io.LimitReader(there, 5), there))
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d bytes arrived, %v; want the %d that were sent", len(got), err, len(sent))
	}
	if err := <-wrote; err != nil {
		t.Errorf("writing and closing = %v, want no error", err)
	}
	if _, err := there.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Write() to an end that has gone = %v, want %v", err, io.ErrClosedPipe)
	}
}

// Nobody can have the other end keep more than it has agreed to.
func TestWindow(t *testing.T) {
	r := newRig(t)
	here, there := r.pair()
	defer func() { _, _ = here.Close(), there.Close() }()
	if err := here.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := here.Write(make([]byte, 2*Window)); n != Window || !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
		t.Errorf("Write() to somebody who does not read = %d, %v; want %d and a timeout", n, err, Window)
	}
	here.mu.Lock()
	err := here.send(kindData, here.parts, []byte("more"))
	here.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "all has arrived", func() bool {
		there.mu.Lock()
		defer there.mu.Unlock()
		return there.unread > Window
	})
	_, err = io.Copy(io.Discard, there)
	if err == nil || !strings.Contains(err.Error(), "nobody has asked for") {
		t.Errorf("the other end reads until %v, want that it was sent too much", err)
	}
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// A message that is lost, comes twice or cannot be read ends the connection, and nothing else.
func TestDamage(t *testing.T) {
	r := newRig(t)
	number := func(kind byte, n uint64, rest string) []byte {
		return append(binary.BigEndian.AppendUint64([]byte{kind}, n), rest...)
	}
	for what, m := range map[string][]byte{
		"lost": number(kindData, 2, "x"), "twice": number(kindData, 0, "x"), "empty": number(kindData, 1, ""), "short": {kindData},
		"unknown": number('?', 0, ""), "taken": number(kindTaken, 100, ""), "end": number(kindEnd, 3, ""),
	} {
		t.Run(what, func(t *testing.T) {
			here, there := r.pair()
			defer func() { _, _ = here.Close(), there.Close() }()
			if _, err := here.Write([]byte("well")); err != nil {
				t.Fatal(err)
			}
			if err := r.conn.Publish(here.to, m); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(there)
			if string(got) != "well" || err == nil || !strings.Contains(err.Error(), "node north") {
				t.Errorf("the other end reads %q, %v; want what came before, and an error with the node", got, err)
			}
		})
	}
}

// A node has so many connections and no more, and takes others when some have gone.
func TestManyConns(t *testing.T) {
	r := newRig(t)
	here, there := r.pair()
	defer func() { _ = here.Close() }()
	r.south.mu.Lock()
	for range maxConns - 1 {
		r.south.conns[new(Conn)] = peer{"west", ""}
	}
	r.south.mu.Unlock()
	if _, err := r.north.Dial(t.Context(), "south"); err == nil || !strings.Contains(err.Error(), "no more connections") {
		t.Errorf("Dial() = %v, want that there are too many", err)
	}
	if err := there.Close(); err != nil {
		t.Fatal(err)
	}
	other, err := r.north.Dial(t.Context(), "south")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	r.south.mu.Lock()
	for c, p := range r.south.conns {
		if p.node == "west" {
			delete(r.south.conns, c)
		}
	}
	r.south.mu.Unlock()
}

// A reader and a writer find out that the process at the other end is gone, even if another one is
// that node now.
func TestEndOfNode(t *testing.T) {
	for what, again := range map[string]bool{"nobody": false, "another process": true} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t)
			_, conn := r.open("west")
			here, err := r.north.Dial(t.Context(), "west")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = here.Close() }()
			conn.Close() // it says no word more
			if again {
				r.open("west")
			}
			if n, err := here.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "node west") {
				t.Errorf("Read() = %d, %v; want an error with the node", n, err)
			}
			if _, err := here.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("Write() = %v, want %v", err, io.ErrClosedPipe)
			}
		})
	}
}

// Connections that nobody has accepted end with the listener.
func TestCloseOfListener(t *testing.T) {
	r := newRig(t)
	here, err := r.north.Dial(t.Context(), "south")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = here.Close() }()
	if err := r.south.l.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := here.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("Read() = %d, %v; want the end", n, err)
	}
	if _, err := r.south.l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept() = %v, want %v", err, net.ErrClosed)
	}
	if _, err := r.north.Dial(t.Context(), "south"); err == nil {
		t.Error("a connection was made to a node that takes none, want an error")
	}
}

// A node that ends ends its connections, whoever has made them.
func TestCloseOfNode(t *testing.T) {
	r := newRig(t)
	here, there := r.pair()
	defer func() { _ = here.Close() }()
	if err := r.south.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := here.Read(make([]byte, 1)); err == nil {
		t.Error("Read() at the other end = nil, want an error")
	}
	if _, err := there.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read() = %v, want %v", err, net.ErrClosed)
	}
	if _, err := r.south.Dial(t.Context(), "north"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Dial() = %v, want %v", err, net.ErrClosed)
	}
}
