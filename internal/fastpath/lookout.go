package fastpath

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	// lookAfter is how long a request runs before the fast path looks whether its client is still
	// there. The time to the next look doubles, up to lookAfter << lookMost: there may be many
	// requests that last, such as streams.
	lookAfter = 50 * time.Millisecond
	lookMost  = 3
)

// lookout cancels the request of a client that has left. As in net/http it begins when all of the
// request has arrived.
type lookout struct {
	c *conn
	// raw is looked at without reading. tls is read from: what arrives on it may be a request or
	// the client's farewell. Of a connection that has neither, clients that leave are noticed
	// when they are written to.
	raw   syscall.RawConn
	tls   *secured
	timer *time.Timer

	mu      sync.Mutex
	on      bool // a request has arrived, and its handler runs
	looks   int
	reading chan struct{} // closed when reading ahead has ended; nil while there is none
}

// set makes a lookout for a connection.
func (l *lookout) set(c *conn) {
	l.c = c
	switch nc := c.nc.(type) {
	case *secured:
		l.tls = nc
	case syscall.Conn:
		l.raw, _ = nc.SyscallConn() // of a closed connection: reading says so
	}
	l.timer = time.AfterFunc(time.Hour, l.look)
	l.timer.Stop()
}

// begin is called when all of a request has arrived.
func (l *lookout) begin() {
	if l.raw == nil && l.tls == nil {
		return
	}
	l.mu.Lock()
	l.on, l.looks = true, 0
	l.mu.Unlock()
	l.timer.Reset(lookAfter)
}

// end is called when a request has been answered: nobody reads ahead after that.
func (l *lookout) end() {
	l.timer.Stop()
	l.mu.Lock()
	reading := l.reading
	l.on, l.reading = false, nil
	l.mu.Unlock()
	if reading == nil {
		return
	}
	_ = l.tls.SetReadDeadline(time.Unix(1, 0)) // of a closed connection: the read has ended
	<-reading
	l.c.setReadBy(time.Time{})
}

// look looks once, and sets the timer for the next time. It may run when the request has just
// ended, or at the beginning of the next one.
func (l *lookout) look() {
	l.mu.Lock()
	switch {
	case !l.on:
	case l.tls != nil:
		if len(l.tls.again) == 0 && l.reading == nil { // otherwise the next request is here
			l.reading = make(chan struct{})
			_ = l.tls.SetReadDeadline(time.Time{}) // of a closed connection: reading says so
			go l.readAhead(l.reading)
		}
	case gone(l.raw):
		defer l.c.ctx.Cancel(nil) // not under the lock: others act on it
	default:
		l.looks = min(l.looks+1, lookMost)
		l.timer.Reset(lookAfter << l.looks)
	}
	l.mu.Unlock()
}

// readAhead waits for the next request, the end of the connection, or end.
func (l *lookout) readAhead(over chan<- struct{}) {
	defer close(over)
	var first [1]byte
	n, err := l.tls.Read(first[:])
	switch {
	case n > 0:
		l.tls.Unread(first[:n])
	case !errors.Is(err, os.ErrDeadlineExceeded):
		l.c.ctx.Cancel(nil)
	}
}
