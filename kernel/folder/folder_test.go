package folder_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// world is a data directory, a folder, and somebody who answers.
type world struct {
	t     *testing.T
	data  string
	dir   string
	items []folder.Item
	store *folder.Store
	gate  *folder.Gate

	asked  atomic.Int64
	shown  string
	answer func() (approval.Decision, error)
}

func say(a event.ApprovalAnswer, feedback string) func() (approval.Decision, error) {
	return func() (approval.Decision, error) {
		d := approval.Decision{By: "phone"}
		d.Response, d.Feedback = a, feedback
		return d, nil
	}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, data: t.TempDir(), dir: t.TempDir(), items: []folder.Item{{Kind: folder.Check, Runs: "make test && true"}}, answer: say(event.Approve, "")}
	dir, err := filepath.EvalSymlinks(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	w.dir = dir
	w.open()
	return w
}

// open opens the store again, as another process or a restart does.
func (w *world) open() {
	w.t.Helper()
	root, err := os.OpenRoot(w.data)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = root.Close() })
	w.store = folder.NewStore(root, nil, func(*workspace.Workspace) ([]folder.Item, error) { return w.items, nil })
	w.gate = folder.NewGate(folder.GateConfig{
		Store: w.store, Folder: func(string) (string, error) { return w.dir, nil },
		Ask: func(_ context.Context, call tool.Call, def tool.Definition, _ string) (approval.Decision, error) {
			w.asked.Add(1)
			if call.Name != folder.TrustTool || def.Name != folder.TrustTool {
				w.t.Errorf("asked as %q (%q), want %q", call.Name, def.Name, folder.TrustTool)
			}
			w.shown = string(call.Args)
			return w.answer()
		},
	})
}

func (w *world) admit(session, turn string) error {
	return w.gate.Admit(w.t.Context(), tool.Call{ID: "c", Name: "shell", SessionID: session, Turn: turn}, tool.Definition{Name: "shell", InFolder: true})
}

// SEC-3: a folder is restricted until a person has trusted it; the answer outlives the
// process.
func TestTrustedOnce(t *testing.T) {
	w := newWorld(t)
	if w.gate.Trusted("s") {
		t.Fatal("a folder that nobody has trusted: Trusted = true, want false")
	}
	if err := w.admit("s", "t1"); err != nil {
		t.Fatalf("Admit after a yes = %v, want nil", err)
	}
	if !strings.Contains(w.shown, "make test && true") || !strings.Contains(w.shown, w.dir) {
		t.Errorf("the question shows %s, want the folder and its check as they are", w.shown)
	}
	w.open()
	if err := w.admit("another", "t2"); err != nil || !w.gate.Trusted("another") {
		t.Errorf("after a restart: Admit = %v, Trusted = %v, want nil and true", err, w.gate.Trusted("another"))
	}
	if n := w.asked.Load(); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
}

// SEC-3: the answer is bound to the shown content. When the folder's content
// changes, it is asked about again, with the difference.
func TestBoundToItsContent(t *testing.T) {
	for name, change := range map[string][]folder.Item{
		"another command":      {{Kind: folder.Check, Runs: "make evil"}},
		"one more":             {{Kind: folder.Check, Runs: "make test && true"}, {Kind: folder.Instructions, Name: "AGENTS.md"}},
		"nothing":              {},
		"another kind":         {{Kind: folder.Server, Runs: "make test && true"}},
		"another digest":       {{Kind: folder.Check, Runs: "make test && true", Digest: "x"}},
		"the text in the name": {{Kind: folder.Check, Name: "make test && true"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if err := w.admit("s", "t1"); err != nil {
				t.Fatal(err)
			}
			w.items, w.answer = change, say(event.Reject, "not that")
			if w.gate.Trusted("s") {
				t.Error("Trusted = true after the folder changed, want false")
			}
			err := w.admit("s", "t2")
			if r, ok := errors.AsType[*tool.RejectedError](err); !ok || !strings.Contains(r.Feedback, "not that") || !strings.Contains(r.Feedback, "yaya trust "+w.dir) {
				t.Errorf("Admit after a no = %v, want a rejection with the reason and the remedy", err)
			}
			if !strings.Contains(w.shown, `"removed":`) && !strings.Contains(w.shown, `"added":`) {
				t.Errorf("the question shows %s, want the difference", w.shown)
			}
		})
	}
}

// SEC-3: the question is asked once for all calls of a session that wait for it, and a
// no is not asked about again; a question that nobody has answered is, in the next turn.
func TestAskedOnce(t *testing.T) {
	w := newWorld(t)
	w.answer = say(event.Reject, "")
	const sessions = 200 // a call may look for an answer just before there is one
	for i := range int64(sessions) {
		session := fmt.Sprint("s", i)
		var calls sync.WaitGroup
		for range 20 {
			calls.Go(func() {
				if err := w.admit(session+"::agent::a", "t1"); err == nil {
					t.Error("Admit = nil, want a rejection")
				}
			})
		}
		calls.Wait()
		if err := w.admit(session, "t2"); err == nil {
			t.Error("Admit in the next turn = nil, want a rejection")
		}
		if n := w.asked.Load(); n != i+1 {
			t.Fatalf("a no: session %d was asked %d times, want once", i, n-i)
		}
	}
	w.answer = func() (approval.Decision, error) { return approval.Decision{}, approval.ErrTimeout }
	for _, turn := range []string{"t1", "t1", "t2"} {
		if err := w.admit("silent", turn); err == nil {
			t.Error("Admit without an answer = nil, want an error")
		}
	}
	if n := w.asked.Load() - sessions; n != 2 {
		t.Errorf("no answer: asked %d times more, want once a turn", n)
	}
}

// S-51: exactly the checks that a folder was trusted with count as agreed to, in any
// order.
func TestAgreed(t *testing.T) {
	w := newWorld(t)
	w.items = []folder.Item{{Kind: folder.Check, Runs: "b"}, {Kind: folder.Check, Runs: "a"}, {Kind: folder.Server, Name: "s", Runs: "x"}}
	if w.gate.Agreed("s", []string{"a", "b"}) {
		t.Error("Agreed in a restricted folder = true, want false")
	}
	if err := w.admit("s", "t"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		checks []string
		want   bool
	}{{[]string{"a", "b"}, true}, {[]string{"b", "a"}, true}, {[]string{"a"}, false}, {[]string{"a", "b", "x"}, false}, {nil, false}} {
		if got := w.gate.Agreed("s", c.checks); got != c.want {
			t.Errorf("Agreed(%q) = %v, want %v", c.checks, got, c.want)
		}
	}
	w.items = w.items[:1]
	if w.gate.Agreed("s", []string{"b"}) {
		t.Error("Agreed after the folder changed = true, want false")
	}
}

// SEC-3: trust for one session is not kept, and ends when the folder is revoked.
func TestForOneSession(t *testing.T) {
	w := newWorld(t)
	w.answer = say(event.ApproveForSession, "")
	if err := w.admit("s", "t1"); err != nil || !w.gate.Trusted("s::agent::x") {
		t.Fatalf("Admit = %v, Trusted of a sub-agent = %v, want nil and true", err, w.gate.Trusted("s::agent::x"))
	}
	if w.gate.Trusted("other") {
		t.Error("Trusted of another session = true, want false")
	}
	w.answer = say(event.Approve, "")
	if err := w.admit("other", "t1"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Revoke(w.dir, "owner"); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"s", "other"} {
		if w.gate.Trusted(s) {
			t.Errorf("Trusted(%q) after Revoke = true, want false", s)
		}
	}
	if _, err := w.store.Revoke(w.dir, "owner"); !errors.Is(err, folder.ErrUnknown) {
		t.Errorf("Revoke twice = %v, want ErrUnknown", err)
	}
}

// SEC-3, R18: an answer does not trust content that has appeared since the
// question.
func TestStaleAnswer(t *testing.T) {
	w := newWorld(t)
	w.answer = func() (approval.Decision, error) {
		w.items = []folder.Item{{Kind: folder.Check, Runs: "make evil"}}
		return say(event.Approve, "")()
	}
	if err := w.admit("s", "t1"); !errors.Is(err, folder.ErrChanged) {
		t.Errorf("Admit = %v, want ErrChanged", err)
	}
	if all, err := w.store.List(); err != nil || len(all) != 0 {
		t.Errorf("List = %v, %v, want none", all, err)
	}
}

// R11: a store that cannot be read trusts nothing, and is not overwritten.
func TestDamagedStore(t *testing.T) {
	for name, content := range map[string]string{"cut": `{"version":1,"fold`, "empty": "", "of a later version": `{"version":2,"folders":{}}`} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if err := w.admit("s", "t1"); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(w.data, "folders", "trusted.json")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			w.open()
			if err := w.admit("s", "t1"); err == nil || w.gate.Trusted("s") {
				t.Errorf("Admit = %v, Trusted = %v, want an error and false", err, w.gate.Trusted("s"))
			}
			if got, err := os.ReadFile(file); err != nil || string(got) != content {
				t.Errorf("the file is now %q (%v), want it untouched", got, err)
			}
		})
	}
}

// SEC-4: a folder lies below a trusted one or a root by where it really is.
func TestBelow(t *testing.T) {
	w := newWorld(t)
	roots := t.TempDir()
	for _, d := range []string{w.dir + "/sub", roots + "/a", w.dir + "x"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.RemoveAll(w.dir + "x") })
	if err := os.Symlink("/", roots+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := w.admit("s", "t"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dir  string
		want bool
	}{
		"the trusted folder":         {w.dir, true},
		"below it":                   {w.dir + "/sub", true},
		"a name that begins like it": {w.dir + "x", false},
		"above it":                   {filepath.Dir(w.dir), false},
		"back out of it":             {w.dir + "/sub/../..", false},
		"below a root":               {roots + "/a", true},
		"a link out of a root":       {roots + "/link", false},
		"through that link":          {roots + "/link/etc", false},
		"the root of the machine":    {"/", false},
	} {
		if _, got, err := w.store.Below(c.dir, []string{roots, "/not/there"}); err != nil || got != c.want {
			t.Errorf("Below(%s) = %v, %v, want %v", name, got, err, c.want)
		}
	}
	other := w.dir
	w.dir = "/" // another trusted folder, which comes first, is above all
	w.items = []folder.Item{{Kind: folder.Check, Runs: "first"}}
	st, err := w.store.Status("/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Trust("/", st.Digest(), "owner"); err != nil {
		t.Fatal(err)
	}
	w.items = []folder.Item{{Kind: folder.Check, Runs: "make test && true"}} // "/" has changed, the other has not
	w.dir = other
	if _, got, err := w.store.Below(other+"/sub", nil); err != nil || !got {
		t.Errorf("Below behind a folder that has changed = %v, %v, want true", got, err)
	}
	w.items = nil // the folder has changed: it opens nothing
	if _, got, err := w.store.Below(w.dir+"/sub", nil); err != nil || got {
		t.Errorf("Below a folder that has changed = %v, %v, want false", got, err)
	}
	if _, got, err := w.store.Below(roots+"/gone", []string{roots}); err == nil || got {
		t.Errorf("Below of a folder that is not there = %v, %v, want an error", got, err)
	}
}

// The gate does not ask about more than a person can judge.
func TestTooMuch(t *testing.T) {
	for name, items := range map[string][]folder.Item{
		"a long command": {{Kind: folder.Check, Runs: strings.Repeat("x", 4097)}},
		"many commands":  many(201),
	} {
		w := newWorld(t)
		w.items = items
		if err := w.admit("s", "t"); !errors.Is(err, folder.ErrTooMuch) || w.asked.Load() != 0 {
			t.Errorf("%s: Admit = %v after %d questions, want ErrTooMuch without one", name, err, w.asked.Load())
		}
	}
	w := newWorld(t)
	w.items = many(200)
	if err := w.admit("s", "t"); err != nil {
		t.Errorf("200 commands: Admit = %v, want nil", err)
	}
}

func many(n int) (out []folder.Item) {
	for i := range n {
		out = append(out, folder.Item{Kind: folder.Check, Runs: "make " + strings.Repeat("y", i)})
	}
	return out
}
