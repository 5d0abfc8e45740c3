package sessions_test

import (
	"net/http"
	"testing"

	"github.com/yaya-ai/yaya/auth"
)

// COD-5: a request that no door has established to be somebody's is refused, whatever it
// asks for, and changes nothing.
func TestNobodyIsRefused(t *testing.T) {
	w := newWorld(t, "")
	id := w.create()
	w.who = auth.Principal{}
	for name, r := range map[string]struct{ method, path, body string }{
		"the list":            {"GET", "/v1/sessions", ""},
		"a session":           {"GET", "/v1/sessions/" + id, ""},
		"its export":          {"GET", "/v1/sessions/" + id + "/export", ""},
		"an upload":           {"POST", "/v1/sessions/" + id + "/attachments", `{}`},
		"a new one":           {"POST", "/v1/sessions", `{"workspace_path":"` + w.ws + `"}`},
		"a message":           {"POST", "/v1/sessions/" + id + "/messages", `{"content":"x"}`},
		"the document":        {"GET", "/v1/openapi.json", ""},
		"an unknown resource": {"GET", "/v1/none", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.refused(r.method, r.path, r.body, http.StatusForbidden, "forbidden")
		})
	}
	w.t, w.who = t, auth.LocalOwner
	if got := w.must("GET", "/v1/sessions", "", 200); len(got["sessions"].([]any)) != 1 {
		t.Errorf("sessions: got %v, want the earlier one", got)
	}
}
