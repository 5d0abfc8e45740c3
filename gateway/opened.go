package gateway

import (
	"crypto/tls"
	"maps"
	"net"
	"net/http"
	"sync"
)

// opened are the connections that are served over HTTP, with what is done on each:
// [http.StateNew], [http.StateActive] or [http.StateIdle]. A guest knows that itself.
type opened struct {
	mu    sync.Mutex
	conns map[net.Conn]http.ConnState
}

// track notes what becomes of a connection; see [http.Server.ConnState].
func (o *opened) track(c net.Conn, state http.ConnState) {
	if g, ok := c.(*guest); ok {
		g.state.Store(int32(state)) //nolint:gosec // there are five
		switch state {
		case http.StateIdle:
			g.rest()
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
	out := maps.Clone(o.conns)
	for c := range out {
		if g, ok := c.(*guest); ok {
			out[c] = http.ConnState(g.state.Load())
		}
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

// multiplexed reports whether a connection, whose TLS is established, has HTTP/2.
func multiplexed(c net.Conn) bool {
	t, ok := c.(*tls.Conn)
	return ok && t.ConnectionState().NegotiatedProtocol == "h2"
}
