package gateway

import (
	"crypto/tls"
	"maps"
	"net"
	"net/http"
	"sync"
)

// opened are the connections that net/http serves, with what it does on each: [http.StateNew],
// [http.StateActive] or [http.StateIdle].
type opened struct {
	mu    sync.Mutex
	conns map[net.Conn]http.ConnState
}

// track notes what becomes of a connection; see [http.Server.ConnState].
func (o *opened) track(c net.Conn, state http.ConnState) {
	if g, ok := c.(*guest); ok && state == http.StateIdle {
		g.rest()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch state {
	case http.StateNew, http.StateActive, http.StateIdle:
		if o.conns == nil {
			o.conns = map[net.Conn]http.ConnState{}
		}
		o.conns[c] = state
	case http.StateHijacked, http.StateClosed:
		delete(o.conns, c)
	}
}

// all returns a copy.
func (o *opened) all() map[net.Conn]http.ConnState {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.conns)
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

// multiplexed reports whether a connection, whose TLS is established, has HTTP/2.
func multiplexed(c net.Conn) bool {
	t, ok := c.(*tls.Conn)
	return ok && t.ConnectionState().NegotiatedProtocol == "h2"
}
