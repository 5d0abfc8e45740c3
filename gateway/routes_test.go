package gateway

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/gateway/openapi"
)

var scopeOf = regexp.MustCompile("Scope for devices: `([a-z:]+)`")

// R7: every operation of the admin API has a route of its own, whose scope is the one
// that the operation's description names.
func TestEveryOperationHasItsRoute(t *testing.T) {
	api := admin.New(admin.Config{Log: zerolog.Nop()})
	rec := httptest.NewRecorder()
	api.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "GET", "/api/openapi.json", nil))
	var doc struct {
		Paths map[string]map[string]struct {
			ID          string `json:"operationId"`
			Description string `json:"description"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil || len(doc.Paths) < 20 {
		t.Fatal(err, rec.Body)
	}
	mux := http.NewServeMux()
	routes := map[string]access{}
	s := &Server{cfg: Config{API: api}}
	for _, r := range s.table() {
		mux.Handle(r.pattern, http.NotFoundHandler())
		routes[r.pattern] = r.access
	}
	param := regexp.MustCompile(`\{[a-z]+\}`)
	for path, ops := range doc.Paths {
		for method, op := range ops {
			probe := httptest.NewRequestWithContext(t.Context(), strings.ToUpper(method), param.ReplaceAllString(path, "x"), nil)
			_, pattern := mux.Handler(probe)
			m, owner := scopeOf.FindStringSubmatch(op.Description), local
			if op.Description == openapi.SocketOnly {
				m, owner = []string{"", ""}, socket
			}
			if m == nil || pattern == "/api/" || pattern == "" {
				t.Errorf("%s has the route %q and says %q", op.ID, pattern, op.Description)
				continue
			}
			if got := routes[pattern]; got.device != auth.Scope(m[1]) || got.owner != owner || got.public || got.external {
				t.Errorf("%s (%s): the route says %+v, the document %s", op.ID, pattern, got, m[1])
			}
		}
	}
	for pattern, a := range routes { // what is public shows nothing of anybody's
		if a.public && strings.Contains(pattern, "/api/") {
			t.Errorf("%s is public", pattern)
		}
	}
}
