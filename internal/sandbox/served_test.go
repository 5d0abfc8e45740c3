package sandbox

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// No handler runs once a sandbox's server is closed, though a connection had read its
// request before.
func TestServedEnds(t *testing.T) {
	for _, late := range []bool{true, false} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ran := 0 // the race detector finds a handler that outlives close
		s := serveHTTP(l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { ran++ }))
		call := func() {
			s.server.Handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		}
		var calls sync.WaitGroup
		if !late {
			calls.Go(call)
		}
		s.close()
		was := ran
		call()
		calls.Wait()
		if ran != was {
			t.Errorf("%d handlers ran after close, want none", ran-was)
		}
	}
}
