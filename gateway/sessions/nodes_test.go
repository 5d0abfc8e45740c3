package sessions_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/sessions"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// nodes are other nodes, each with a service.
type nodes map[string]*world

func (n nodes) handler(node string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(sessions.NodePath, n[node].s.ForNodes)
	mux.HandleFunc(sessions.NodePath+"/{id}", n[node].s.ForNodes)
	return mux
}

func (n nodes) ask(ctx context.Context, node, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	n.handler(node).ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
	return w
}

func (n nodes) Ask(ctx context.Context, path string, read func(string, io.Reader) error) (missing []string) {
	for node, w := range n {
		if w == nil {
			missing = append(missing, node)
		} else if err := read(node, n.ask(ctx, node, path).Body); err != nil {
			missing = append(missing, node)
		}
	}
	return missing
}

func (n nodes) Find(ctx context.Context, path string, _ func(http.ResponseWriter, *http.Request, string)) http.Handler {
	for node, w := range n {
		if w != nil && n.ask(ctx, node, path).Code == http.StatusOK {
			return w.s.API
		}
	}
	return nil
}

// A list has the sessions of all nodes once, in one order, whatever the size of its pages, and names
// the nodes that have not answered.
func TestListOfNodes(t *testing.T) {
	south, west := newWorld(t, ""), newWorld(t, "")
	others := nodes{"south": south, "west": west, "east": nil}
	north := newWorld(t, "", func(c *sessions.Config) { c.Nodes = others })
	var want []string
	for i := range 10 {
		w := []*world{north, south, south, west}[i%4]
		want = append(want, w.create())
	}
	slices.Reverse(want)
	if got := north.listed(""); !slices.Equal(got, want) {
		t.Errorf("the list is %v, want %v", got, want)
	}
	closed := want[0] // on south
	south.must("POST", "/v1/sessions/"+closed+"/close", "", 200)
	if got := north.listed("&status=completed"); !slices.Equal(got, []string{closed}) {
		t.Errorf("the list of completed ones is %v, want %v", got, closed)
	}
	page := north.must("GET", "/v1/sessions", "", 200)
	if got := page["missing_nodes"]; len(got.([]any)) != 1 || got.([]any)[0] != "east" {
		t.Errorf("the missing nodes are %v, want east", got)
	}
	for _, s := range page["sessions"].([]any) {
		row := s.(map[string]any)
		node, _ := row["node"].(string)
		if has := others[node]; node != "" && has.must("GET", "/v1/sessions/"+row["id"].(string), "", 200)["id"] != row["id"] {
			t.Errorf("the session %v is not on the node %v", row["id"], node)
		}
	}
	for _, query := range []string{"", "?limit=0", "?limit=1001", "?limit=x", "?limit=1&cursor=x"} {
		if got := others.ask(t.Context(), "south", sessions.NodePath+query).Code; got < 400 {
			t.Errorf("a node that asks with %q gets %d, want an error", query, got)
		}
	}
}

// The routes about a session lead to the node that has it; what nobody has, this node refuses.
func TestSessionsOfNodes(t *testing.T) {
	south := newWorld(t, "")
	north := newWorld(t, "", func(c *sessions.Config) { c.Nodes = nodes{"south": south} })
	id, own := south.create(), north.create()
	mux := http.NewServeMux()
	for _, r := range north.s.Routes() {
		if r.Handler != nil {
			mux.Handle(r.Pattern, r.Handler)
		}
	}
	for path, want := range map[string]int{id: 200, own: 200, id + "/messages": 200, "sess_nobody": 404, "..": 404, strings.Repeat("x", 600): 404} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(auth.WithPrincipal(t.Context(), auth.LocalOwner), http.MethodGet, "/v1/sessions/"+strings.ReplaceAll(path, "..", "%2E%2E"), nil))
		if w.Code != want {
			t.Errorf("GET %s: %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
}

// A session that has gone to another node is forgotten: when it comes back, its record counts as it came.
func TestForgottenWhenGone(t *testing.T) {
	w := newWorld(t, "")
	id := w.create()
	w.must("PATCH", "/v1/sessions/"+id, `{"title":"of this node"}`, 200)
	file := filepath.Join(w.dir, "sessions", id, "session.json")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(raw, []byte("of this node"), []byte("of the other"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := bus.Publish(w.k.Bus.Kernel(), event.SessionWasDeleted, id, event.SessionDeleted{SessionID: id}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the record is read again", func() bool {
		return w.must("GET", "/v1/sessions/"+id, "", 200)["title"] == "of the other"
	})
}

// leaving is an owner whose sessions another node takes over while this one looks for them.
type leaving struct {
	uncopied
	leave func()
}

func (o *leaving) Elsewhere(context.Context, string) string {
	if o.leave != nil {
		o.leave()
	}
	return ""
}

// CL-04: a session that is just being put away is not here: its new node is asked, where this one said "try again".
func TestNotHereWhileLeaving(t *testing.T) {
	w := newWorld(t, "")
	id := w.create()
	w.stop()
	owner := &leaving{}
	w.owner = owner
	w.start("")
	here := func() int {
		return nodes{"north": w}.ask(t.Context(), "north", sessions.NodePath+"/"+id).Code
	}
	if got := here(); got != http.StatusOK {
		t.Fatalf("the session of this node: %d, want 200", got)
	}
	w.stop()
	owner.leave = func() {
		tapes, err := filepath.Glob(filepath.Join(w.dir, "tapes", "*.jsonl"))
		if err != nil || len(tapes) == 0 {
			t.Errorf("the tapes are %v, %v", tapes, err)
		}
		for _, tape := range tapes {
			if err := os.Remove(tape); err != nil {
				t.Error(err)
			}
		}
		owner.leave = nil
	}
	w.start("")
	if got := here(); got != http.StatusNotFound || owner.leave != nil {
		t.Errorf("a session that is being put away: %d, want 404", got)
	}
}
