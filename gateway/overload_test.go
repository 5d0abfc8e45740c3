package gateway

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/gateway/api"
)

// LD-05, R32: at 85 % of the memory nothing new begins, at 95 % nothing is served
// and a quarter of the streams ends every second; when there is memory again, all
// is as before.
func TestOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var used atomic.Uint64
		o := &overload{limit: 1000, used: used.Load, streams: map[*context.CancelCauseFunc]struct{}{}, refuse: func(w http.ResponseWriter, r *http.Request, f *api.Failure) { api.Refuse(w, r, api.Detail, f) }}
		ctx, cancel := context.WithCancel(t.Context())
		var also atomic.Int64
		var watched sync.WaitGroup
		watched.Go(func() { o.watch(ctx, func(part int) { also.Add(int64(part)) }) })
		defer watched.Wait()
		defer cancel()
		h := o.guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if stream, _ := begins(r); stream {
				<-r.Context().Done()
			}
		}))
		ask := func(method, path string, header ...string) *http.Response {
			r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Result() //nolint:bodyclose // a recorder's
		}
		load := func(n uint64) {
			used.Store(n)
			time.Sleep(lookAtLoad + time.Millisecond)
			synctest.Wait()
		}
		var streams sync.WaitGroup
		var open atomic.Int64
		load(849)
		for range 8 {
			open.Add(1)
			streams.Go(func() {
				if resp := ask("GET", "/api/sessions/s/events", "Accept", "text/event-stream"); resp.StatusCode != 200 {
					t.Errorf("a stream: %v", resp.Status)
				}
				open.Add(-1)
			})
		}
		if resp := ask("POST", "/mcp"); resp.StatusCode != 200 {
			t.Errorf("below the limit: %v", resp.Status)
		}
		load(850)
		for name, tt := range map[string]struct {
			method, path string
			header       []string
			status       int
		}{
			"a WebSocket":                {"GET", "/ws", []string{"Upgrade", "websocket"}, 503},
			"a stream":                   {"GET", "/mcp", []string{"Accept", "text/event-stream"}, 503},
			"an MCP session":             {"POST", "/mcp", nil, 503},
			"a chat session":             {"POST", "/v1/sessions", nil, 503},
			"a message in one":           {"POST", "/v1/sessions/s/messages", nil, 200},
			"a call in a session":        {"POST", "/mcp", []string{"Mcp-Session-Id", "x"}, 200},
			"a call without any session": {"POST", "/mcp", []string{"Mcp-Method", "tools/call"}, 200},
			"a question":                 {"GET", "/agents", nil, 200},
		} {
			if resp := ask(tt.method, tt.path, tt.header...); resp.StatusCode != tt.status || (tt.status == 503) != (resp.Header.Get("Retry-After") != "") {
				t.Errorf("%s at 85 %%: got %v with Retry-After %q, want %d, with Retry-After if it is 503", name, resp.Status, resp.Header.Get("Retry-After"), tt.status)
			}
		}
		if open.Load() != 8 || also.Load() != 0 {
			t.Errorf("%d streams are left at 85 %%", open.Load())
		}
		load(950)
		if resp := ask("GET", "/agents"); resp.StatusCode != 503 {
			t.Errorf("got at 95 %%: %v, want StatusCode 503", resp.Status)
		}
		if open.Load() != 6 || also.Load() != shedPart {
			t.Errorf("%d streams are left at 95 %%", open.Load())
		}
		load(100)
		if resp := ask("POST", "/mcp"); resp.StatusCode != 200 || open.Load() != 6 {
			t.Errorf("afterwards: %v, %d streams", resp.Status, open.Load())
		}
		used.Store(1000)
		time.Sleep(8 * lookAtLoad)
		streams.Wait()
	})
}
