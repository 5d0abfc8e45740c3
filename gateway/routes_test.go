package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control/nodes"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/gateway/rpc"
	"github.com/yaya-ai/yaya/gateway/sessions"
	"github.com/yaya-ai/yaya/kernel/bus"
	kernelsession "github.com/yaya-ai/yaya/kernel/session"
)

var update = flag.Bool("update", false, "write the table of routes: testdata/routes.golden and the one in SECURITY.md")

var anyParam = regexp.MustCompile(`\{[a-z_.]+\}`)

// apis returns the routes of all APIs, served by h instead, if it is not nil.
func apis(t *testing.T, h http.Handler) []api.Route {
	t.Helper()
	chats, err := sessions.New(sessions.Config{Bus: bus.New(bus.Config{})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(chats.Close)
	routes := slices.Concat(rpc.Routes(nil, zerolog.Nop()), admin.New(admin.Config{Log: zerolog.Nop()}).Routes(), chats.Routes())
	if h == nil {
		return routes
	}
	for i := range routes {
		routes[i].Handler = h
	}
	return routes
}

// everyRoute is the table of a server that has everything.
func everyRoute(t *testing.T) []api.Route {
	t.Helper()
	a, _ := authority(t)
	there := http.NotFoundHandler()
	s := &Server{cfg: Config{
		Authority: a, Tokens: new(auth.Verifier), MCP: there, Metrics: there, Profiles: there, Live: there, Page: there, Wire: there, CLI: there,
		Sessions: new(kernelsession.Manager), Joins: new(nodes.Nodes), Status: func() any { return nil }, Routes: apis(t, nil),
	}}
	return s.table()
}

// policy is a route's access as the table shows it.
func policy(a api.Access) [3]string {
	if a.Public {
		return [3]string{"everybody"}
	}
	var out [3]string
	switch a.Owner {
	case api.Socket:
		out[0] = "over the socket"
	case api.Local:
		out[0] = "yes"
	case api.Nowhere:
	}
	if a.Device != "" {
		out[1] = "`" + string(a.Device) + "`"
	}
	if a.External {
		out[2] = "yes"
	}
	return out
}

// shown is a pattern as the table shows it.
func shown(r api.Route) (method, path string) {
	method, path, found := strings.Cut(strings.TrimSuffix(r.Pattern, "{$}"), " ")
	if !found {
		method, path = "", method
	}
	if r.Handler == nil {
		path += "…"
	}
	return method, path
}

// routeTable prints routes, one a line, by path.
func routeTable(routes []api.Route) string {
	slices.SortFunc(routes, func(x, y api.Route) int {
		xm, xp := shown(x)
		ym, yp := shown(y)
		return cmp.Or(strings.Compare(xp, yp), strings.Compare(xm, ym))
	})
	var b strings.Builder
	b.WriteString("| route | the user that runs yaya | device with scope | external issuer | notes |\n|---|---|---|---|---|\n")
	for _, r := range routes {
		method, path := shown(r)
		note := r.Note
		if r.Handler == nil {
			note = "unknown resources: 404, or 405 with the methods"
		}
		p := policy(r.Access)
		b.WriteString("|")
		for _, cell := range []string{"`" + strings.TrimSpace(method+" "+path) + "`", p[0], p[1], p[2], note} {
			if cell != "" {
				cell = " " + cell
			}
			b.WriteString(cell + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// COD-2, AU-46, R7: the table of routes is made of the routes, and SECURITY.md shows it.
// So each change of a policy changes these files.
func TestRouteTable(t *testing.T) {
	table := routeTable(everyRoute(t))
	const golden, security = "testdata/routes.golden", "../SECURITY.md"
	const begin, end = "<!-- routes: go test ./gateway -run TestRouteTable -update -->\n", "<!-- end of routes -->\n"
	doc, err := os.ReadFile(security)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(doc), begin)
	there, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s does not have the markers %q and %q", security, begin, end)
	}
	if *update {
		err := os.WriteFile(golden, []byte(table), 0o600)
		if err == nil {
			err = os.WriteFile(security, []byte(before+begin+"\n"+table+"\n"+end+after), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	if want, err := os.ReadFile(golden); err != nil || !bytes.Equal(want, []byte(table)) {
		t.Errorf("%s is stale (%v): run go test ./gateway -run TestRouteTable -update, and review the change; got\n%s", golden, err, table)
	}
	if strings.TrimSpace(there) != strings.TrimSpace(table) {
		t.Errorf("the table in %s is stale: run go test ./gateway -run TestRouteTable -update, and review the change", security)
	}
}

// COD-2, R7: every operation of a document is a route, and every route of an operation is
// in the document with the scope that it asks for; nothing of an API is public.
func TestEveryOperationHasItsRoute(t *testing.T) {
	routes := everyRoute(t)
	table := api.NewTable(routes, func(r api.Route) http.Handler {
		if r.Handler == nil {
			return http.NotFoundHandler()
		}
		return r.Handler
	})
	for _, base := range []string{"/api", "/v1"} {
		rec := httptest.NewRecorder()
		table.ServeHTTP(rec, httptest.NewRequestWithContext(auth.WithPrincipal(t.Context(), auth.LocalOwner), http.MethodGet, base+"/openapi.json", nil))
		var doc struct {
			Paths map[string]map[string]struct {
				ID          string `json:"operationId"`
				Description string `json:"description"`
			} `json:"paths"`
		}
		if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil {
			t.Fatalf("%s/openapi.json: %v, want JSON: %.200s", base, err, rec.Body)
		}
		described := map[string]string{} // by pattern: id and description
		for path, ops := range doc.Paths {
			for method, op := range ops {
				described[strings.ToUpper(method)+" "+path] = op.ID + ": " + op.Description
			}
		}
		n := 0
		for _, r := range routes {
			if !strings.Contains(r.Pattern, base+"/") {
				continue
			}
			if r.Access.Public {
				t.Errorf("%s is public, want a policy: it may show what is somebody's", r.Pattern)
			}
			if r.Operation == "" {
				continue
			}
			n++
			want := r.Operation + ": Scope for devices: `" + string(r.Access.Device) + "`."
			switch r.Access {
			case api.OverSocket():
				want = r.Operation + ": Over the Unix socket alone, for the user that runs yaya."
			case api.Access{Owner: api.Local}:
				want = r.Operation + ": On this machine, for the user that runs yaya."
			}
			if got := described[r.Pattern]; got != want {
				t.Errorf("%s is described as %q, want %q", r.Pattern, got, want)
			}
		}
		if n != len(described) || n < 20 {
			t.Errorf("%s: %d routes are operations, and the document has %d, want the same", base, n, len(described))
		}
	}
}

// COD-2, MIS-8: a refusal has the style of the API that was asked,
// before its handler and in it: for a missing token, a foreign Host, a method, and a missing
// resource.
func TestRefusalsHaveTheStyleOfTheirAPI(t *testing.T) {
	a, _ := authority(t)
	ok := http.NotFoundHandler()
	base, _ := serving(t, Config{Authority: a, MCP: ok, Metrics: ok, Wire: ok, CLI: ok, Routes: apis(t, nil)})
	isDetail := func(body string) bool {
		var e map[string]string
		return json.Unmarshal([]byte(body), &e) == nil && len(e) == 1 && e["detail"] != ""
	}
	isCoded := func(body string) bool {
		var e map[string]map[string]string
		return json.Unmarshal([]byte(body), &e) == nil && e["error"]["code"] != "" && e["error"]["message"] != "" && strings.HasPrefix(e["error"]["request_id"], "req_")
	}
	isRPC := func(body string) bool {
		var e struct {
			Version string `json:"jsonrpc"`
			ID      *int   `json:"id"`
			Error   struct {
				Code    int    `json:"code"`
				Message string `json:"message"`
			} `json:"error"`
		}
		return json.Unmarshal([]byte(body), &e) == nil && e.Version == "2.0" && e.ID == nil && e.Error.Code < 0 && e.Error.Message != ""
	}
	isText := func(body string) bool { return body != "" && !json.Valid([]byte(body)) }
	for name, tt := range map[string]struct {
		method, path string
		header       []string
		status       int
		kind         string
		styled       func(string) bool
	}{
		"/agents without a token":             {"GET", "/agents", nil, 401, "application/json", isDetail},
		"/agents with a bad token":            {"GET", "/agents/x", []string{"Authorization", "Bearer a.b.c"}, 401, "application/json", isDetail},
		"/agents with another method":         {"POST", "/agents", nil, 405, "application/json", isDetail},
		"/auth/refresh without a token":       {"POST", "/auth/refresh", nil, 401, "application/json", isDetail},
		"/auth/refresh with a bad token":      {"POST", "/auth/refresh", []string{"Authorization", "Bearer a.b.c"}, 401, "application/json", isDetail},
		"/auth/register with an encoded body": {"POST", "/auth/register", []string{"Content-Encoding", "gzip"}, 415, "application/json", isDetail},
		"/rpc without a token":                {"POST", "/rpc", nil, 401, "application/json", isRPC},
		"/rpc from another page":              {"POST", "/rpc", []string{"Origin", "http://evil.example"}, 403, "application/json", isRPC},
		"/api with a bad token":               {"GET", "/api/me", []string{"Authorization", "Bearer a.b.c"}, 401, "application/json", isDetail},
		"/api with another method":            {"PUT", "/api/me", nil, 405, "application/json", isDetail},
		"/api and nothing there":              {"GET", "/api/nothing", nil, 404, "application/json", isDetail},
		"/api with an encoded body":           {"POST", "/api/mcp/import", []string{"Content-Encoding", "gzip"}, 415, "application/json", isDetail},
		"/v1 with a bad token":                {"GET", "/v1/sessions", []string{"Authorization", "Bearer a.b.c"}, 401, "application/json", isCoded},
		"/v1 under another name":              {"GET", "/v1/sessions", []string{"Host", "evil.example"}, 403, "application/json", isCoded},
		"/v1 with another method":             {"DELETE", "/v1/sessions", nil, 405, "application/json", isCoded},
		"/v1 and nothing there":               {"GET", "/v1/nothing", nil, 404, "application/json", isCoded},
		"/v1 with an encoded body":            {"POST", "/v1/sessions", []string{"Content-Encoding", "gzip"}, 415, "application/json", isCoded},
		"/mcp with a bad token":               {"POST", "/mcp", []string{"Authorization", "Bearer a.b.c"}, 401, "text/plain; charset=utf-8", isText},
		"/cli/mcp over TCP":                   {"POST", "/cli/mcp", nil, 401, "text/plain; charset=utf-8", isText},
		"/cli/run over TCP":                   {"POST", "/cli/run", nil, 401, "application/json", isDetail},
		"what nobody has":                     {"GET", "/nothing", nil, 404, "application/json", isDetail},
		"a token in the URL of /api":          {"GET", "/api/me?token=x", nil, 400, "application/json", isDetail},
		"a token in the URL of /v1":           {"GET", "/v1/sessions?token=x", nil, 400, "application/json", isCoded},
		"/ws under another name":              {"GET", "/ws", []string{"Host", "evil.example"}, 403, "application/json", isDetail},
	} {
		body := ""
		if tt.status == http.StatusUnsupportedMediaType {
			body = "{}"
		}
		got := ask(t, http.DefaultClient, tt.method, base+tt.path, body, tt.header...)
		if got.status != tt.status || got.header.Get("Content-Type") != tt.kind || !tt.styled(got.body) {
			t.Errorf("%s: got %d %s %s, want %d %s in its style", name, got.status, got.header.Get("Content-Type"), got.body, tt.status, tt.kind)
		}
		if tt.status == http.StatusMethodNotAllowed && got.header.Get("Allow") == "" {
			t.Errorf("%s: got no Allow, want the methods", name)
		}
	}
}
