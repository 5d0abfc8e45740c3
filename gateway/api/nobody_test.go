package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/auth"
)

// COD-5: a route answers only those whom somebody has established, however it is reached:
// a table whose wrap forgets to ask serves nobody, and not everybody.
func TestNobodyIsRefused(t *testing.T) {
	called := ""
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { called = r.URL.Path })
	table := NewTable([]Route{
		{Pattern: "/public", Access: Public(), Style: Detail, Handler: h},
		{Pattern: "/device", Access: For("s"), Style: Detail, Handler: h},
		{Pattern: "/socket", Access: OverSocket(), Style: Text, Handler: h},
		{Pattern: "/mcp", Access: Access{External: true}, Style: Text, Handler: h},
		{Pattern: "/rest/", Access: For("s"), Style: Detail},
	}, func(r Route) http.Handler { return r.Handler })
	for name, who := range map[string]context.Context{
		"nothing was said":    t.Context(),
		"nobody was found":    auth.WithPrincipal(t.Context(), auth.Principal{}),
		"the owner was found": auth.WithPrincipal(t.Context(), auth.LocalOwner),
		"a server was found":  auth.WithPrincipal(t.Context(), auth.ServerNamed("files")),
	} {
		for path, public := range map[string]bool{"/public": true, "/device": false, "/socket": false, "/mcp": false, "/rest/x": false} {
			t.Run(name+", "+path, func(t *testing.T) {
				called = ""
				w := httptest.NewRecorder()
				table.ServeHTTP(w, httptest.NewRequestWithContext(who, http.MethodGet, path, nil))
				if serves := public || auth.Established(who) == nil; !serves {
					if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), auth.ErrNobody.Error()) || called != "" {
						t.Errorf("got %d %s, handler called: %t, want 403 and no call", w.Code, w.Body, called != "")
					}
				} else if path != "/rest/x" && called != path {
					t.Errorf("got %d %s, want the handler called", w.Code, w.Body)
				}
			})
		}
	}
}
