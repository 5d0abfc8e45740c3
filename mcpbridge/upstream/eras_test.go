package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// eraOf calls as a client does and returns the era in which its call has come to a
// fake server.
func (r *rig) eraOf(c *client, server string) string {
	r.t.Helper()
	got := native(r.t, r.callFor(c, feature.QualifiedName(server, "echo"), `{}`))
	if strings.Contains(got, `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`) {
		return "modern"
	}
	return "legacy"
}

// FID-2: a process of one client's own speaks that client's era, if the server does.
func TestEraOfTheClient(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	for modes, want := range map[string]string{
		"modern":                    "legacy modern",
		"plain":                     "legacy legacy",
		"exit-on-unknown":           "legacy legacy",
		"empty-discover":            "legacy legacy",
		"modern refuse-initialize":  "modern modern",
		"modern exit-on-initialize": "modern modern",
	} {
		for _, policy := range []string{servers.PerClient, servers.PerCall} {
			t.Run(modes+" "+policy, func(t *testing.T) {
				r := newRig(t)
				s := fakeServer(t, "srv", modes)
				s.Session = policy
				r.add(s)
				r.ready("srv")
				for range 2 { // and again, when it is known
					if got := r.eraOf(&client{name: "old"}, "srv") + " " + r.eraOf(&client{name: "new", modern: true}, "srv"); got != want {
						t.Errorf("eras of a legacy and a modern client: %s, want %s", got, want)
					}
				}
				if st := r.status("srv"); st.Restarts != 0 {
					t.Errorf("%d restarts, want none", st.Restarts)
				}
			})
		}
	}
}

// FID-1: a server that does not answer server/discover is waited for as long as a
// start may take, and then asked the other way, in the same call and in all later
// ones.
func TestSilenceIsWaitedFor(t *testing.T) {
	r := newRig(t)
	s := fakeServer(t, "srv", "silent-on-unknown")
	s.Session, s.StartTimeout = servers.PerClient, 1500*time.Millisecond
	r.add(s)
	r.ready("srv")
	begun := time.Now()
	if got := r.eraOf(&client{name: "first", modern: true}, "srv"); got != "legacy" {
		t.Errorf("era %s, want legacy", got)
	}
	if took := time.Since(begun); took < s.StartTimeout {
		t.Errorf("silence decided after %v, the start limit is %v", took, s.StartTimeout)
	}
	if got := r.eraOf(&client{name: "second", modern: true}, "srv"); got != "legacy" {
		t.Errorf("era of the second client %s, want legacy", got)
	}
}

// seenEras is an HTTP server of the official SDK for both eras, which counts what
// connections begin with.
type seenEras struct {
	legacy, modern http.Handler

	mu     sync.Mutex
	begins map[string]int
	calls  map[string]int
}

func newSeenEras() *seenEras {
	return &seenEras{legacy: sdkHandler(false), modern: sdkHandler(true), begins: map[string]int{}, calls: map[string]int{}}
}

// ServeHTTP implements [http.Handler].
func (s *seenEras) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	era, h := "legacy", s.legacy
	if r.Header.Get("MCP-Protocol-Version") >= "2026-07-28" {
		era, h = "modern", s.modern
	}
	if h == nil {
		http.Error(w, "no such era", http.StatusBadRequest)
		return
	}
	method := methodOf(r)
	s.mu.Lock()
	switch method {
	case "initialize", "server/discover":
		s.begins[era]++
	case "tools/call":
		s.calls[era]++
	}
	s.mu.Unlock()
	h.ServeHTTP(w, r)
}

func (s *seenEras) counts() (begins, calls string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	show := func(m map[string]int) string {
		out, err := json.Marshal(m)
		if err != nil {
			return err.Error()
		}
		return string(out)
	}
	return show(s.begins), show(s.calls)
}

// FID-2: over HTTP a call goes over a connection of its client's era. A shared server has
// one connection of each era, opened by the first call that needs it; a server of one era
// has one connection.
func TestErasOverHTTP(t *testing.T) {
	for _, c := range []struct {
		name, session  string
		legacy, modern bool // spoken
		begins, calls  string
		pinned         servers.Era
	}{
		{name: "each client its own", session: servers.PerClient, legacy: true, modern: true, begins: `{"legacy":2,"modern":3}`, calls: `{"legacy":4,"modern":4}`},
		{name: "shared", session: servers.Shared, legacy: true, modern: true, begins: `{"legacy":1,"modern":1}`, calls: `{"legacy":4,"modern":4}`},
		{name: "by principal", session: servers.PerPrincipal, legacy: true, modern: true, begins: `{"legacy":1,"modern":1}`, calls: `{"legacy":4,"modern":4}`},
		{name: "pool", session: "pool:2", legacy: true, modern: true, begins: `{"legacy":2,"modern":2}`, calls: `{"legacy":4,"modern":4}`},
		{name: "shared, modern alone", session: servers.Shared, modern: true, begins: `{"modern":1}`, calls: `{"modern":8}`},
		{name: "shared, legacy alone", session: servers.Shared, legacy: true, begins: `{"legacy":1}`, calls: `{"legacy":8}`},
		{name: "shared, pinned", session: servers.Shared, legacy: true, modern: true, pinned: servers.EraLegacy, begins: `{"legacy":1}`, calls: `{"legacy":8}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			srv := newSeenEras()
			if !c.legacy {
				srv.legacy = nil
			}
			if !c.modern {
				srv.modern = nil
			}
			addr, _ := listenAt(t, "127.0.0.1:0", srv)
			s := remote("srv", "http://"+addr)
			s.Session, s.Era, s.FallBackToSSE = c.session, c.pinned, false
			r.add(s)
			r.ready("srv")
			for _, who := range []*client{{name: "old1"}, {name: "new1", modern: true}, {name: "old2"}, {name: "new2", modern: true}} {
				for range 2 {
					if got := native(t, r.callFor(who, "srv__add", `{"a":2,"b":3}`)); !strings.Contains(got, `"text":"5"`) {
						t.Errorf("%s: got %s, want %q in it", who.name, got, `"text":"5"`)
					}
				}
			}
			begins, calls := srv.counts()
			if begins != c.begins || calls != c.calls {
				t.Errorf("connections %s and calls %s, want %s and %s", begins, calls, c.begins, c.calls)
			}
		})
	}
}

// FID-2: a server of the official SDK asks a legacy client in its own words over
// HTTP, though it speaks the modern era, too, in which it could not.
func TestLegacyQuestionsOfBothEras(t *testing.T) {
	both := newSeenEras()
	for _, h := range []*http.Handler{&both.legacy, &both.modern} {
		s := sdkServer()
		sdk.AddTool(s, &sdk.Tool{Name: "ask"}, askingTool)
		*h = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: h == &both.modern})
	}
	addr, _ := listenAt(t, "127.0.0.1:0", both)
	for _, policy := range []string{"", servers.Shared} {
		t.Run(policy, func(t *testing.T) {
			r := newRig(t)
			s := remote("srv", "http://"+addr)
			s.Session = policy
			r.add(s)
			r.ready("srv")
			c := &client{name: "old", caps: `{"elicitation":{}}`}
			if got := native(t, r.callFor(c, "srv__ask", `{}`)); !strings.Contains(got, `"text":"accept"`) {
				t.Errorf("the tool that asks: %s", got)
			}
		})
	}
}

// askingTool says how its client answers.
func askingTool(ctx context.Context, req *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
	res, err := req.Session.Elicit(ctx, &sdk.ElicitParams{Message: "?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}})
	if err != nil {
		return nil, nil, err
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: res.Action}}}, nil, nil
}

// methodOf returns the method of a message, and leaves its body unchanged.
func methodOf(r *http.Request) string {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return err.Error()
	}
	r.Body = io.NopCloser(bytes.NewReader(data))
	var m message
	if json.Unmarshal(data, &m) != nil {
		return ""
	}
	return m.Method
}

// The record of the servers' eras is bounded, and a file that cannot be read is merely
// forgotten.
func TestErasFile(t *testing.T) {
	fresh := time.Now().UTC().Format(time.RFC3339)
	many := map[string]any{}
	for i := range 600 {
		many[fmt.Sprint("server", i)] = map[string]any{"legacy": "spoken", "found": time.Now().Add(-time.Duration(i) * time.Minute).UTC()}
	}
	full, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		content string
		kept    int // beside the new one
		warned  bool
	}{
		"fresh":         {`{"x":{"legacy":"refused","found":"` + fresh + `"}}`, 1, false},
		"not JSON":      {"{", 0, true},
		"null":          {"null", 0, false},
		"too large":     {strings.Repeat(" ", 2<<20), 0, true},
		"another shape": {`["x"]`, 0, true},
		"stale":         {`{"x":{"legacy":"refused","found":"2020-01-01T00:00:00Z"}}`, 0, false},
		"of the future": {`{"x":{"legacy":"refused","found":"2999-01-01T00:00:00Z"}}`, 0, false},
		"full":          {string(full), 511, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = root.Close() })
			file := filepath.Join(dir, "eras.json")
			if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			var warned []error
			eras := upstream.NewEras(root, func(err error) { warned = append(warned, err) })
			r := newRig(t)
			s := fakeServer(t, "srv", "modern refuse-initialize")
			p := upstream.New(upstream.Config{Server: s, Environ: func() []string { return s.Environ(os.LookupEnv) }, Procs: r.procs, HTTP: r.http, Name: "yaya", Version: "test", Eras: eras})
			if err := r.host.Install(t.Context(), feature.Contribution{Name: "t", Providers: []feature.Provider{p}}); err != nil {
				t.Fatal(err)
			}
			r.ready("srv")
			data, err := os.ReadFile(file) //nolint:gosec // the test's own
			if err != nil {
				t.Fatal(err)
			}
			var all map[string]struct{ Legacy, Modern, Name string }
			if err := json.Unmarshal(data, &all); err != nil || len(all) != c.kept+1 {
				t.Errorf("%d servers are known, %v; want %d", len(all), err, c.kept+1)
			}
			found := false
			for _, k := range all {
				found = found || k.Name == "fake" && k.Legacy == "refused" && k.Modern == "spoken"
			}
			if !found || (len(warned) > 0) != c.warned {
				t.Errorf("%d entries with the server %v, warnings %v; want it, and a warning %v", len(all), found, warned, c.warned)
			}
		})
	}
}
