package tunnel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// Window is how many bytes of one direction may be on their way, or wait to be read.
	Window = 1 << 20
	// maxPart is how many bytes one message carries: far less than any server allows.
	maxPart = 64 << 10
)

// The kinds of messages. Each begins with its kind and eight bytes.
const (
	kindData  = 'd' // the number of the message among those of this kind, then bytes
	kindTaken = 't' // how many bytes were read
	kindEnd   = 'e' // the end; the number is that which the next data message would have
	prefix    = 9
)

// Conn is one end of a connection.
type Conn struct {
	nc         *nats.Conn
	to         string // subject of the other end
	own, other addr
	sub        *nats.Subscription
	forget     func() // of whoever keeps a list of connections

	readBy, writeBy *deadline
	readable, room  chan struct{} // hold a value when it may be worth a look
	closed          chan struct{}
	closing         sync.Once

	writing sync.Mutex // one Write at a time

	mu      sync.Mutex
	waiting [][]byte // to be read
	unread  int      // bytes of them
	next    uint64   // number of the next data message
	taken   uint64   // bytes that were read
	told    uint64   // what the other end knows of that
	end     error    // after waiting, there is this

	sent    uint64 // bytes
	parts   uint64 // messages
	arrived uint64 // bytes that the other end has read
}

// addr is the name of a node.
type addr string

// Network implements [net.Addr].
func (addr) Network() string { return "nats" }

// String implements [net.Addr].
func (a addr) String() string { return string(a) }

var _ net.Conn = (*Conn)(nil)

// newConn returns the end of a connection that reads from a subject. The other end is not known yet.
func newConn(nc *nats.Conn, from string, own, other addr) (*Conn, error) {
	c := &Conn{
		nc: nc, own: own, other: other, forget: func() {},
		readBy: newDeadline(), writeBy: newDeadline(), readable: make(chan struct{}, 1), room: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	var err error
	if c.sub, err = nc.Subscribe(from, c.take); err != nil {
		return nil, err
	}
	return c, nil
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// take takes a message of the other end. It runs on one goroutine, and never waits.
func (c *Conn) take(m *nats.Msg) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		return
	}
	if len(m.Data) < prefix {
		c.fail(errors.New("a message cannot be read"))
		return
	}
	n, rest := binary.BigEndian.Uint64(m.Data[1:]), m.Data[prefix:]
	switch m.Data[0] {
	case kindData:
		if n != c.next || len(rest) == 0 {
			c.fail(fmt.Errorf("message %d was lost", c.next))
			return
		}
		if c.unread += len(rest); c.unread > Window {
			c.fail(fmt.Errorf("more than %d bytes were sent that nobody has asked for", Window))
			return
		}
		c.next++
		c.waiting = append(c.waiting, rest)
		wake(c.readable)
	case kindTaken:
		if n < c.arrived || n > c.sent {
			c.fail(errors.New("bytes were taken that were not sent"))
			return
		}
		c.arrived = n
		wake(c.room)
	case kindEnd:
		if n != c.next {
			c.fail(fmt.Errorf("message %d was lost", c.next))
			return
		}
		c.fail(io.EOF)
	default:
		c.fail(errors.New("a message of an unknown kind"))
	}
}

// fail ends the reading; mu is held.
func (c *Conn) fail(err error) {
	if !errors.Is(err, io.EOF) {
		err = fmt.Errorf("connection to node %s: %w", c.other, err)
	}
	c.end = err
	wake(c.readable)
	wake(c.room)
}

// Read implements [net.Conn].
func (c *Conn) Read(b []byte) (int, error) {
	for {
		switch by := c.readBy.wait(); {
		case isClosed(c.closed):
			return 0, net.ErrClosed
		case isClosed(by):
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		}
		n, err := c.read(b)
		if n > 0 || err != nil {
			return n, err
		}
		select {
		case <-c.readable:
		case <-c.readBy.wait():
		case <-c.closed:
		}
	}
}

// read reads what is there.
func (c *Conn) read(b []byte) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n < len(b) && len(c.waiting) > 0 {
		m := copy(b[n:], c.waiting[0])
		n += m
		if c.waiting[0] = c.waiting[0][m:]; len(c.waiting[0]) == 0 {
			c.waiting[0] = nil
			c.waiting = c.waiting[1:]
		}
	}
	if n == 0 {
		if c.end != nil {
			wake(c.readable) // for others who read
		}
		return 0, c.end
	}
	c.unread -= n
	if c.taken += uint64(n); c.taken-c.told >= Window/2 { //nolint:gosec // n is positive
		c.told = c.taken
		_ = c.send(kindTaken, c.taken, nil) // if it is lost, the other end waits, and gives up
	}
	if len(c.waiting) > 0 {
		wake(c.readable)
	}
	return n, nil
}

// send sends a message.
func (c *Conn) send(kind byte, n uint64, rest []byte) error {
	m := make([]byte, prefix, prefix+len(rest))
	m[0] = kind
	binary.BigEndian.PutUint64(m[1:], n)
	return c.nc.Publish(c.to, append(m, rest...))
}

// Write implements [net.Conn].
func (c *Conn) Write(b []byte) (n int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	for {
		switch by := c.writeBy.wait(); {
		case isClosed(c.closed):
			return n, net.ErrClosed
		case isClosed(by):
			return n, os.ErrDeadlineExceeded
		case n == len(b):
			return n, nil
		}
		m, err := c.write(b[n:min(len(b), n+maxPart)])
		n += m
		if err != nil {
			return n, err
		}
		if m > 0 {
			continue
		}
		select {
		case <-c.room:
		case <-c.writeBy.wait():
		case <-c.closed:
		}
	}
}

// write sends as much as there is room for.
func (c *Conn) write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil { // the other end reads no more
		return 0, io.ErrClosedPipe
	}
	b = b[:min(len(b), Window-int(c.sent-c.arrived))] //nolint:gosec // at most Window
	if len(b) == 0 {
		return 0, nil
	}
	if err := c.send(kindData, c.parts, b); err != nil {
		c.fail(err)
		return 0, c.end
	}
	c.parts++
	c.sent += uint64(len(b))
	return len(b), nil
}

// Close implements [net.Conn]. The other end reads what was written, and then the end.
func (c *Conn) Close() (err error) {
	c.closing.Do(func() {
		c.mu.Lock()
		if c.to != "" {
			err = c.send(kindEnd, c.parts, nil)
		}
		c.mu.Unlock()
		close(c.closed)
		if e := c.sub.Unsubscribe(); !errors.Is(e, nats.ErrConnectionClosed) {
			err = errors.Join(err, e)
		}
		c.readBy.set(time.Time{})
		c.writeBy.set(time.Time{})
		c.forget()
	})
	return err
}

// LocalAddr implements [net.Conn]: it is the name of this node.
func (c *Conn) LocalAddr() net.Addr { return c.own }

// RemoteAddr implements [net.Conn]: it is the name that the other end gives itself.
func (c *Conn) RemoteAddr() net.Addr { return c.other }

// SetDeadline implements [net.Conn].
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements [net.Conn].
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setBy(c.readBy, t) }

// SetWriteDeadline implements [net.Conn].
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setBy(c.writeBy, t) }

func (c *Conn) setBy(d *deadline, t time.Time) error {
	if isClosed(c.closed) {
		return net.ErrClosed
	}
	d.set(t)
	return nil
}
