package gateway

import (
	"bytes"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// passing collects, for a successor, the connections on which nothing is under way: a client
// that sends its next request meanwhile finds the connection open, and the successor reads the
// request. Closing them would race with such requests. TLS connections cannot be passed, as
// their keys stay here; they close after an answer, see moved.
type passing struct {
	on atomic.Bool

	mu    sync.Mutex
	files []*os.File
}

// take returns what was collected, and ends collecting.
func (p *passing) take() []*os.File {
	p.on.Store(false)
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.files
	p.files = nil
	return out
}

// progress is the state of a connection's requests.
type progress struct {
	reads sync.Mutex // held while it is read from
	// used says that bytes of a request were read that has no answer yet, and ahead that the
	// first byte of the next one was, while the request before it was answered.
	used, ahead bool
	unread      []byte // was read, and is to be read again

	look     sync.Mutex // held while pass looks, and while it is closed; before reads
	deadline sync.Mutex // guards what follows
	looking  bool       // pass has woken who reads, and nobody may set another deadline
	until    time.Time  // the deadline that was asked for
}

// Read implements [net.Conn].
func (g *guest) Read(b []byte) (int, error) {
	for {
		n, used, err := g.read(b)
		if n > 0 || !used || !errors.Is(err, os.ErrDeadlineExceeded) || !g.passing.on.Load() {
			return n, err
		}
		// The deadline can be that of pass, which stays away from a request.
		g.progress.look.Lock()
		g.progress.deadline.Lock()
		past := !g.progress.until.IsZero() && !time.Now().Before(g.progress.until)
		g.progress.deadline.Unlock()
		g.progress.look.Unlock()
		if past {
			return n, err
		}
	}
}

func (g *guest) read(b []byte) (n int, used bool, err error) {
	g.progress.reads.Lock()
	defer g.progress.reads.Unlock()
	if len(g.progress.unread) > 0 {
		n = copy(b, g.progress.unread)
		g.progress.unread = g.progress.unread[n:]
		return n, true, nil
	}
	n, err = g.TCPConn.Read(b)
	if n > 0 {
		g.progress.used = true
		g.progress.ahead = len(b) == 1 // so net/http looks whether the client is still there
	}
	return n, g.progress.used, err
}

// Unread implements [fastpath.Conn].
func (g *guest) Unread(b []byte) {
	g.progress.reads.Lock()
	defer g.progress.reads.Unlock()
	g.progress.unread = append(bytes.Clone(b), g.progress.unread...)
}

// SetReadDeadline implements [net.Conn].
func (g *guest) SetReadDeadline(t time.Time) error {
	g.progress.deadline.Lock()
	defer g.progress.deadline.Unlock()
	g.progress.until = t
	if g.progress.looking {
		return nil // pass sets it
	}
	return g.TCPConn.SetReadDeadline(t)
}

// SetDeadline implements [net.Conn].
func (g *guest) SetDeadline(t time.Time) error {
	return errors.Join(g.SetReadDeadline(t), g.SetWriteDeadline(t))
}

// wake has a Read that waits return, or sets the deadline again that was asked for.
func (g *guest) wake(on bool) {
	g.progress.deadline.Lock()
	defer g.progress.deadline.Unlock()
	t := g.progress.until
	if g.progress.looking = on; on {
		t = time.Unix(1, 0)
	}
	_ = g.TCPConn.SetReadDeadline(t) // a connection that is gone is not read from
}

// rest notes that the last request has been answered.
func (g *guest) rest() {
	g.progress.reads.Lock()
	g.progress.used, g.progress.ahead = g.progress.ahead, false
	g.progress.reads.Unlock()
}

// pass gives a connection to the successor, and closes it here, unless a request has come.
func (g *guest) pass(p *passing) {
	if g.duplicate(p) {
		_ = g.Close() // net/http may have done so already
	}
}

// duplicate reports whether nothing is under way on a connection, which p then has. net/http finds
// the deadline of its read passed meanwhile, and closes the connection, which waits: see Close.
func (g *guest) duplicate(p *passing) bool {
	g.progress.look.Lock()
	defer g.progress.look.Unlock()
	g.wake(true)
	g.progress.reads.Lock()
	defer g.progress.reads.Unlock()
	if g.progress.used {
		g.wake(false)
		return false
	}
	if file, err := g.File(); err == nil { // otherwise it is closed, as without a successor
		p.mu.Lock()
		p.files = append(p.files, file)
		p.mu.Unlock()
	}
	return true
}

// adopted is a listener of the connections that the program before this one has passed on.
type adopted struct {
	conns chan net.Conn
	over  chan struct{}
	end   func()
	addr  net.Addr
}

// adopt makes connections of files, which stay the caller's. Those that are gone are left out.
func adopt(files []*os.File) *adopted {
	a := &adopted{conns: make(chan net.Conn, len(files)), over: make(chan struct{})}
	a.end = sync.OnceFunc(func() { close(a.over) })
	for _, f := range files {
		c, err := net.FileConn(f)
		if err != nil {
			continue
		}
		if _, tcp := c.(*net.TCPConn); !tcp {
			_ = c.Close()
			continue
		}
		a.addr = c.LocalAddr()
		a.conns <- c
	}
	if len(a.conns) == 0 {
		return nil
	}
	return a
}

// Accept implements [net.Listener].
func (a *adopted) Accept() (net.Conn, error) {
	select {
	case c := <-a.conns:
		return c, nil
	case <-a.over:
		return nil, net.ErrClosed
	}
}

// Addr implements [net.Listener].
func (a *adopted) Addr() net.Addr { return a.addr }

// Close implements [net.Listener].
func (a *adopted) Close() error {
	a.end()
	for {
		select {
		case c := <-a.conns:
			_ = c.Close() // nobody has read from it
		default:
			return nil
		}
	}
}
