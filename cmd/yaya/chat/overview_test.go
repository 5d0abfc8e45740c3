package chat

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/charmbracelet/colorprofile"
)

// answering is an API with fixed answers, by method and path.
type answering struct {
	mu     sync.Mutex
	bodies map[string]string
	sent   []string
}

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	line := r.Method + " " + r.URL.RequestURI()
	if r.Body != nil {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		line += " " + string(raw)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent = append(a.sent, line)
	status, body := http.StatusOK, a.bodies[r.Method+" "+r.URL.Path]
	if body == "" {
		status, body = http.StatusNotFound, `{"detail":"resource not found"}`
	}
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}
	if strings.HasSuffix(r.URL.Path, "/events") { // which has none
		resp.StatusCode, resp.Body = http.StatusOK, io.NopCloser(silent{r.Context().Done()})
	}
	return resp, nil
}

// silent is a stream without events, until its reader leaves.
type silent struct{ left <-chan struct{} }

func (s silent) Read([]byte) (int, error) {
	<-s.left
	return 0, io.EOF
}

// put sets an answer.
func (a *answering) put(to, body string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bodies[to] = body
}

// take returns the requests since the last time.
func (a *answering) take() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := strings.Join(a.sent, "\n")
	a.sent = nil
	return out
}

// asking starts the program with answers, and some of this machine's files.
func asking(t *testing.T, bodies map[string]string) (*terminal, *answering) {
	t.Helper()
	a := &answering{bodies: bodies}
	x := start(t, 80, 24, colorprofile.ASCII, func(x *terminal) {
		x.m.api = &Client{HTTP: &http.Client{Transport: a}, Base: "http://yaya"}
		x.m.local = Local{
			Skills: func(folder string) ([]Entry, error) {
				return []Entry{{Name: "release", Says: "Makes a release of " + folder}, {Name: "deploy", Reason: "the folder " + folder + " is not trusted"}}, nil
			},
			Agents: func(string) ([]Entry, error) {
				return []Entry{{Name: "reviewer", Says: "Reviews changes\nfor errors \x1b[2J", Path: "/p/reviewer.md"}, {Name: "tester", Says: "Tests", Path: "/p/tester.md"}}, nil
			},
			Today: func() (float64, error) { return 4.5, nil },
		}
	})
	return x, a
}

// USE-12: commands show the servers, tools, skills, sub-agents and the cost. Texts of
// others begin no line.
func TestOverviews(t *testing.T) {
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf(`{"name":"s%02d","state":"ready","tools":2}`, i))
	}
	var tools []string
	for i := range maxNames + 5 {
		tools = append(tools, fmt.Sprintf(`{"name":"big__t%02d","provider":"big","kind":"read"}`, i))
	}
	for name, c := range map[string]struct {
		line   string
		bodies map[string]string
	}{
		"servers":    {"/mcp", map[string]string{"GET /api/mcp/servers": `[{"name":"files","state":"ready","tools":4},{"name":"gh","state":"failed","tools":0,"reason":"exit status 1\nno \u001b[2Jtoken"}]`}},
		"many":       {"/mcp", map[string]string{"GET /api/mcp/servers": "[" + strings.Join(many, ",") + "]"}},
		"no-servers": {"/mcp", map[string]string{"GET /api/mcp/servers": "[]"}},
		"tools":      {"/tools", map[string]string{"GET /api/tools": `[{"name":"shell","provider":"","kind":"exec"},{"name":"read_file","provider":"","kind":"read"},{"name":"propose_plan","provider":"","kind":"read","requires_approval":true},` + strings.Join(tools, ",") + `]`}},
		"cost": {"/cost", map[string]string{
			"GET /v1/sessions/sess_1": `{"id":"sess_1","usage":{"input":12000,"input_cache_read":8000,"output":900,"total":12900,"turns":1,"steps":5,"cost_usd":0.0123}}`,
			"GET /api/config":         `{"budget.session_cents":200}`,
		}},
		"skills": {"/skills", nil},
		"agents": {"/agents", map[string]string{"GET /api/doctor": `[{"plugin":"agent-tool","status":"degraded","details":[{"name":"\"/p/tester.md\"","message":"tools has \"Bash\", and no tool has this name"}]}]`}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, _ := asking(t, c.bodies)
				x.keys(c.line, enter)
				golden(t, "80x24-overview-"+name, x.text())
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		x, _ := asking(t, map[string]string{})
		x.m.local.Skills = func(string) ([]Entry, error) { return nil, errors.New("unreadable") }
		x.keys("/skills", enter)
		if x.m.note != "unreadable" || !x.m.isBad {
			t.Errorf("the note is %q, want the error", x.m.note)
		}
	})
}

// USE-12: /trust shows what the folder brings; only then yes trusts it, as it was shown; no has it
// restricted again.
func TestTrustCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, a := asking(t, map[string]string{
			"GET /api/folders/look":   `{"folder":"/home/ada/src/project","trusted":false,"digest":"d1","items":[{"kind":"check","runs":"make test"},{"kind":"server","name":"db","runs":"npx db"}]}`,
			"GET /v1/sessions/sess_1": `{"id":"sess_1","restricted":true}`,
		})
		const look = "GET /api/folders/look?path=%2Fhome%2Fada%2Fsrc%2Fproject"
		x.keys("/trust yes", enter)
		if got := a.take(); got != "" || !strings.Contains(x.m.note, "read that first") {
			t.Errorf("yes before a look sends %q and says %q, want nothing, and the way", got, x.m.note)
		}
		x.keys("/trust", enter)
		golden(t, "80x24-trust", x.text())
		if got := a.take(); got != look {
			t.Errorf("/trust sends %q, want %q", got, look)
		}
		a.put("POST /api/folders", "{}")
		a.put("GET /v1/sessions/sess_1", `{"id":"sess_1"}`)
		x.m.restricted = true
		x.keys("/trust yes", enter)
		if got, want := a.take(), `POST /api/folders {"digest":"d1","path":"/home/ada/src/project"}`+"\nGET /v1/sessions/sess_1"; got != want || x.m.restricted {
			t.Errorf("yes sends %q, and the session is restricted: %v; want %q, and that it is not", got, x.m.restricted, want)
		}
		if got := x.text(); !strings.Contains(got, "is trusted; its servers (db)") {
			t.Errorf("the screen is\n%s\nwant that the folder is trusted, with its servers", got)
		}
		x.keys("/trust yes", enter)
		if got := a.take(); got != "" {
			t.Errorf("yes again sends %q, want nothing", got)
		}
		a.put("DELETE /api/folders", "{}")
		x.keys("/trust no", enter)
		if got, want := a.take(), "DELETE /api/folders?path=%2Fhome%2Fada%2Fsrc%2Fproject\nGET /v1/sessions/sess_1"; got != want {
			t.Errorf("no sends %q, want %q", got, want)
		}
		x.keys("/trust maybe", enter)
		if !strings.Contains(x.m.note, "nothing, yes or no") {
			t.Errorf("/trust maybe says %q", x.m.note)
		}
	})
}

// The admin API has its own form of refusals, and their reason is shown, too: that the folder has changed
// since the look, for instance.
func TestTrustIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, _ := asking(t, map[string]string{"GET /api/folders/look": `{"folder":"/home/ada/src/project","digest":"d1","items":[]}`})
		x.keys("/trust", enter, "/trust yes", enter)
		if x.m.note != "resource not found" {
			t.Errorf("the note is %q, want the reason of the refusal", x.m.note)
		}
	})
}
