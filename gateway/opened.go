package gateway

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// opened are the connections that are served over HTTP, with what is done on each:
// [http.StateNew], [http.StateActive] or [http.StateIdle]. A guest knows that itself, and is one
// connection whoever serves it, with TLS or without.
type opened struct {
	mu    sync.Mutex
	conns map[net.Conn]*openedConn // by their guests, if they are guests
}

type openedConn struct {
	net.Conn
	guest *guest // nil for none
	is    http.ConnState
}

func (c *openedConn) state() http.ConnState {
	if c.guest != nil {
		return http.ConnState(c.guest.state.Load())
	}
	return c.is
}

// track notes what becomes of a connection; see [http.Server.ConnState].
func (o *opened) track(c net.Conn, state http.ConnState) {
	key, g := c, guestOf(c)
	if g != nil {
		key = g
		g.state.Store(int32(state)) //nolint:gosec // there are five
		switch state {
		case http.StateIdle:
			if g.passable { // with HTTP/2 somebody reads from it all the time
				g.rest()
			}
			return
		case http.StateActive:
			return
		case http.StateNew, http.StateHijacked, http.StateClosed:
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch state {
	case http.StateNew, http.StateActive, http.StateIdle:
		if o.conns == nil {
			o.conns = map[net.Conn]*openedConn{}
		}
		o.conns[key] = &openedConn{c, g, state}
	case http.StateHijacked, http.StateClosed:
		delete(o.conns, key)
	}
}

// all returns the connections, with what is done on each.
func (o *opened) all() map[net.Conn]http.ConnState {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make(map[net.Conn]http.ConnState, len(o.conns))
	for _, c := range o.conns {
		out[c.Conn] = c.state()
	}
	return out
}

// closeNew closes the connections on which nothing has been asked yet: [http.Server.Shutdown]
// would wait seconds for each of them.
func (o *opened) closeNew() {
	for c, state := range o.all() {
		if state == http.StateNew {
			_ = c.Close()
		}
	}
}

// encrypted is a connection with TLS, whoever serves it.
type encrypted interface{ ConnectionState() tls.ConnectionState }

// multiplexed reports whether a connection, whose TLS is established, has HTTP/2.
func multiplexed(c net.Conn) bool {
	t, ok := c.(encrypted)
	return ok && t.ConnectionState().NegotiatedProtocol == "h2"
}
