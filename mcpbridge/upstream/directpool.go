package upstream

import (
	"context"
	"net/url"
	"time"
)

// take returns an idle connection, or a fresh one.
func (d *direct) take(ctx context.Context, u *url.URL) (_ *directConn, fresh bool, _ error) {
	at := origin{u.Scheme, u.Host}
	for {
		d.mu.Lock()
		list := d.idle[at]
		if len(list) == 0 {
			d.mu.Unlock()
			break
		}
		c := list[len(list)-1]
		d.idle[at] = list[:len(list)-1]
		d.mu.Unlock()
		if time.Since(c.since) < idleKept && (c.tls == nil || c.quiet()) {
			return c, false, nil
		}
		c.leave()
	}
	c, err := d.dial(ctx, u)
	return c, true, err
}

// put keeps a connection for another request.
func (d *direct) put(c *directConn) {
	c.since = time.Now()
	var over []*directConn
	d.mu.Lock()
	list := d.idle[c.at]
	// The oldest are at the front.
	for len(list) > 0 && (len(list) >= idlePerHost || time.Since(list[0].since) > idleKept) {
		over = append(over, list[0])
		list = list[1:]
	}
	d.idle[c.at] = append(list, c)
	if d.tidy == nil {
		d.tidy = time.AfterFunc(idleKept, d.prune)
	}
	d.mu.Unlock()
	for _, c := range over {
		c.leave()
	}
}

// prune closes the connections that have been idle for too long, including those to servers that
// are no longer called.
func (d *direct) prune() {
	var over []*directConn
	d.mu.Lock()
	for at, list := range d.idle {
		n := 0
		for n < len(list) && time.Since(list[n].since) >= idleKept {
			n++
		}
		over = append(over, list[:n]...)
		if d.idle[at] = list[n:]; n == len(list) {
			delete(d.idle, at)
		}
	}
	if len(d.idle) > 0 {
		d.tidy.Reset(idleKept)
	} else {
		d.tidy = nil
	}
	d.mu.Unlock()
	for _, c := range over {
		c.leave()
	}
}

// CloseIdleConnections closes the unused connections.
func (d *direct) CloseIdleConnections() {
	d.mu.Lock()
	idle := d.idle
	d.idle = map[origin][]*directConn{}
	if d.tidy != nil {
		d.tidy.Stop()
		d.tidy = nil
	}
	d.mu.Unlock()
	for _, list := range idle {
		for _, c := range list {
			c.leave()
		}
	}
	d.next.CloseIdleConnections()
}

// leave closes an idle connection, and tells the server so.
func (c *directConn) leave() { _ = c.Conn.Close() }
