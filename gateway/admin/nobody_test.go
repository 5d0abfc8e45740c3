package admin_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/auth"
)

// COD-5: a request that a door admits without saying whose it is, is nobody's: every
// resource refuses it, and does not tell whether it exists.
func TestNobodyIsRefused(t *testing.T) {
	w := newWorld(t)
	w.who = auth.Principal{}
	for name, r := range map[string]struct{ method, path, body string }{
		"a setting":               {"GET", "/api/config", ""},
		"who am I":                {"GET", "/api/me", ""},
		"a change":                {"PATCH", "/api/config/loop.max_iterations", `{"value":5}`},
		"the document":            {"GET", "/api/openapi.json", ""},
		"an unknown resource":     {"GET", "/api/none", ""},
		"a body that is not JSON": {"PATCH", "/api/config/loop.max_iterations", `{`},
		"an unknown method":       {"PUT", "/api/me", ""},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := w.do(r.method, r.path, r.body)
			if status != http.StatusForbidden || !strings.Contains(body, "not established") {
				t.Errorf("%s %s: got %d %s, want 403", r.method, r.path, status, body)
			}
		})
	}
	rec := httptest.NewRecorder() // a context in which nothing was said
	w.api.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "GET", "/api/config", nil))
	if rec.Code != http.StatusForbidden {
		t.Errorf("a context without a principal: got %d %s, want 403", rec.Code, rec.Body)
	}
	w.who = auth.LocalOwner
	if got := w.want("GET", "/api/config", "", 200, ""); strings.Contains(got, "max_iterations\":5,") {
		t.Errorf("nobody has changed a setting: %s", got)
	}
}
