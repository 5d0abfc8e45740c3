package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// OP-63: the handler serves the profiles of the runtime, and ends one within five minutes.
// TestRouteTable and TestEveryRouteForEveryPrincipal hold the route to the socket.
func TestProfiles(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("GET /debug/pprof/{profile...}", Profiles())
	for path, want := range map[string]struct {
		status int
		body   string
	}{
		"/debug/pprof/":                            {200, "goroutine"},
		"/debug/pprof/goroutine?debug=1":           {200, "goroutine profile: total"},
		"/debug/pprof/heap?debug=1":                {200, "heap profile:"},
		"/debug/pprof/profile?seconds=301":         {400, "seconds must be"},
		"/debug/pprof/trace?seconds=x":             {400, "seconds must be"},
		"/debug/pprof/no-such":                     {404, "Unknown profile"},
		"/debug/pprof/allocs?debug=1&seconds=-100": {400, "seconds must be"},
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if w.Code != want.status || !strings.Contains(w.Body.String(), want.body) {
			t.Errorf("%s = %d %.200q, want %d %q", path, w.Code, w.Body, want.status, want.body)
		}
	}
}
