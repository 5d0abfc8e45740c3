package sandbox

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/yaya-ai/yaya/internal/fair"
	"github.com/yaya-ai/yaya/internal/openfiles"
)

// maxRoom bounds the listeners and the connections of one sandbox, however many files may
// be open.
const maxRoom = 256

// rooms are the places that all sandboxes of this process have for their listeners and
// connections. Each place is two descriptors of this process: a connection, and the one
// that it is passed on by. A sandbox has at most a quarter of them, and connections of
// all together three quarters; the last one is for listeners.
type rooms struct {
	mu     sync.Mutex
	given  sync.Cond // a place was given back, or a listener was closed
	files  uint64
	shares *fair.Shares[*room]
}

// newRooms divides a fifth of the files that this process may have open: the rest is for
// its own connections, which have a half, for servers, tapes and everything else.
func newRooms(files uint64) *rooms {
	a := &rooms{files: files, shares: fair.NewShares[*room](openfiles.Of(files).Sandboxes)}
	a.given.L = &a.mu
	return a
}

// theRooms are those of this process.
var theRooms = sync.OnceValue(func() *rooms { return newRooms(openfiles.Limit()) })

// room is the part of one sandbox.
type room struct {
	of   *rooms
	held int // of.mu guards it
	// full is called once when a connection waits; optional.
	full func(why string)
	once sync.Once
}

// listener counts a listener, and each connection that it accepts until it is closed.
// Connections beyond the room wait unanswered, in the queue of the sandbox's own network.
func (r *room) listener(l net.Listener) (net.Listener, error) {
	a := r.of
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.held >= maxRoom || !a.shares.Take(r, true) {
		return nil, errors.Join(fmt.Errorf("there is no room for another listener of a sandbox: this process may have %d files open, of which all sandboxes together have their part; raise that limit (ulimit -n), or allow fewer services of this machine", a.files), l.Close())
	}
	r.held++
	return &counted{Listener: l, room: r}, nil
}

// take waits for a place. It reports false if the listener was closed.
func (r *room) take(l *counted) bool {
	a := r.of
	a.mu.Lock()
	defer a.mu.Unlock()
	for told := false; !l.closed; {
		switch {
		case r.held < maxRoom && a.shares.Take(r, false):
			r.held++
			return true
		case !told:
			told = true
			a.mu.Unlock()
			r.once.Do(r.tell)
			a.mu.Lock()
		default:
			a.given.Wait()
		}
	}
	return false
}

// tell reports that a connection waits.
func (r *room) tell() {
	if r.full != nil {
		r.full("the sandbox has as many connections open as it may, or all sandboxes together have; further ones wait until one of them ends")
	}
}

// give releases a place.
func (r *room) give() {
	r.held--
	r.of.shares.Give(r)
	r.of.given.Broadcast()
}

// counted is a listener of a sandbox, whose connections have places.
type counted struct {
	net.Listener
	room   *room
	closed bool // room.of.mu guards it
}

// Accept implements [net.Listener].
func (l *counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil, errors.Join(errors.New("a connection of a sandbox is not one of TCP"), conn.Close())
	}
	if !l.room.take(l) {
		return nil, errors.Join(net.ErrClosed, tcp.Close())
	}
	return &placed{TCPConn: tcp, room: l.room}, nil
}

// Close implements [net.Listener]. Nothing waits in Accept after it.
func (l *counted) Close() error {
	l.room.of.mu.Lock()
	if !l.closed {
		l.closed = true
		l.room.give()
	}
	l.room.of.mu.Unlock()
	return l.Listener.Close()
}

// placed is a connection that has a place until it is closed.
type placed struct {
	*net.TCPConn
	room   *room
	closed bool // room.of.mu guards it
}

// Close implements [net.Conn].
func (c *placed) Close() error {
	err := c.TCPConn.Close()
	c.room.of.mu.Lock()
	defer c.room.of.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.room.give()
	}
	return err
}

// room returns the room of the sandbox that a proxy belongs to. A connection that waits is
// reported as one that fails.
func (p *proxy) room() *room {
	at := netip.MustParseAddrPort(proxyAddr)
	return &room{of: theRooms(), full: func(why string) {
		if p.net.Unreached != nil {
			p.net.Unreached(at.Addr().String(), int(at.Port()), why)
		}
	}}
}
