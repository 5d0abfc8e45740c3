package folder_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/kernel/tool"
)

func closed(t *testing.T, in *workspace.Workspace) {
	t.Helper()
	if err := in.Close(); err != nil {
		t.Errorf("Close() = %v, want nil", err)
	}
}

// SEC-3: whether a folder may be used concerns the folder that is open: it stays the same when the link
// that led to it leads elsewhere. Its paths are those below the link, which tools use.
func TestOpen(t *testing.T) {
	w := newWorld(t)
	if err := w.admit("s", "t"); err != nil {
		t.Fatal(err)
	}
	real, link := w.dir, filepath.Join(t.TempDir(), "link")
	if err := os.WriteFile(filepath.Join(real, "f"), []byte("trusted"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Skip(err)
	}
	w.dir = link
	in, trusted, err := w.gate.Open("s")
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, in)
	if at, err := in.Clean(filepath.Join(link, "f")); !trusted || at != "f" || err != nil {
		t.Errorf("Open by a link: trusted %v, the file f is %q (%v); want true, f", trusted, at, err)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if text, err := in.Text("f"); text != "trusted" {
		t.Errorf("after the link has changed, f is %q (%v), want that of the folder that was opened", text, err)
	}
	w.dir = filepath.Join(real, "gone")
	for name, open := range map[string]func(string) (*workspace.Workspace, bool, error){"Open": w.gate.Open, "Look": w.gate.Look} {
		if in, trusted, err := open("s"); in != nil || trusted || err == nil {
			t.Errorf("%s of a folder that is gone = %v, %v, %v; want an error", name, in, trusted, err)
		}
	}
}

// A folder whose content has changed since it was trusted can be put back as it was, whoever changed it, and
// one that is not trusted cannot.
func TestReopen(t *testing.T) {
	w := newWorld(t)
	check := func(when, session string, want bool) {
		t.Helper()
		in, trusted, err := w.gate.Reopen(session, w.dir)
		if err != nil {
			t.Fatal(err)
		}
		closed(t, in)
		if trusted != want {
			t.Errorf("%s: Reopen for %s says %v, want %v", when, session, trusted, want)
		}
	}
	check("before an answer", "s", false)
	w.answer = say(event.ApproveForSession, "")
	if err := w.admit("s", "t"); err != nil {
		t.Fatal(err)
	}
	w.items = append(w.items, folder.Item{Kind: folder.Check, Runs: "changed"})
	check("trusted for a session", "s::agent::a", true)
	check("trusted for a session", "other", false)
	w.answer = say(event.Approve, "")
	if err := w.admit("other", "t"); err != nil {
		t.Fatal(err)
	}
	w.items = w.items[:1]
	check("trusted, and changed", "s", true)
	if _, err := w.store.Revoke(w.dir, "owner"); err != nil {
		t.Fatal(err)
	}
	check("revoked", "s", false)
}

// watched is a world whose store counts how often folders are looked at.
type watched struct {
	*world
	looks int
}

func watch(t *testing.T) *watched {
	t.Helper()
	w := &watched{world: newWorld(t)}
	root, err := os.OpenRoot(w.data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	w.store = folder.NewStore(root, nil, func(*workspace.Workspace) ([]folder.Item, error) { w.looks++; return w.items, nil })
	w.gate = folder.NewGate(folder.GateConfig{
		Store: w.store, Folder: func(string) (string, error) { return w.dir, nil },
		Ask: func(context.Context, tool.Call, tool.Definition, string) (approval.Decision, error) {
			return w.answer()
		},
	})
	return w
}

// agree trusts the folder as it is.
func (w *watched) agree() {
	w.t.Helper()
	st, err := w.store.Status(w.dir)
	if err == nil {
		_, err = w.store.Trust(w.dir, st.Digest(), "test")
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.looks = 0
}

// look looks at the folder of a session and uses it.
func (w *watched) look(session string) (trusted bool) {
	w.t.Helper()
	in, trusted, err := w.gate.Look(session)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, _, err := in.Tree(w.t.Context(), ".", 1, 10); err != nil {
		w.t.Errorf("the folder cannot be read: %v", err)
	}
	closed(w.t, in)
	closed(w.t, in) // which takes nothing from others
	return trusted
}

// A session that holds its folder shares one look at it, for 100 ms, until the trust in a folder changes
// or the hold ends. Other sessions, and whoever does not ask for a look, see the folder as it is now:
// hooks and tools do.
func TestHold(t *testing.T) {
	evil := folder.Item{Kind: folder.Hook, Runs: "evil"}
	for name, tc := range map[string]struct {
		then  func(w *watched)
		same  bool // the folder is seen as it was
		looks int  // at the end, from the first on
	}{
		"at once":              {func(*watched) {}, true, 1},
		"99 ms later":          {func(*watched) { time.Sleep(99 * time.Millisecond) }, true, 1},
		"100 ms later":         {func(*watched) { time.Sleep(100 * time.Millisecond) }, false, 2},
		"after a revocation":   {func(w *watched) { w.revoke() }, false, 3},
		"under another hold":   {func(w *watched) { w.t.Cleanup(w.gate.Hold("s")) }, false, 2},
		"when another one has": {func(w *watched) { w.gate.Hold("other")() }, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := watch(t)
				w.agree()
				end := w.gate.Hold("s")
				time.Sleep(time.Hour) // the time runs from the first look
				first, second := w.look("s"), w.look("s")
				if !first || !second || w.looks != 1 {
					t.Fatalf("the folder was looked at %d times, want that it is trusted, and once", w.looks)
				}
				w.items = append(w.items[:len(w.items):len(w.items)], evil)
				tc.then(w)
				for range 2 {
					if got := w.look("s"); got != tc.same {
						t.Errorf("a folder that has changed is trusted: %v, want %v", got, tc.same)
					}
				}
				if want := tc.looks; w.looks != want {
					t.Errorf("the folder was looked at %d times, want %d", w.looks, want)
				}
				if w.look("other") {
					t.Error("another session sees the folder as it was, want as it is")
				}
				in, trusted, err := w.gate.Open("s")
				if err != nil || trusted || w.gate.Trusted("s") {
					t.Errorf("Open: trusted %v (%v), want false", trusted, err)
				}
				closed(t, in)
				end()
				end()
				if w.look("s") {
					t.Error("after the hold has ended, the folder is trusted, want that it is looked at again")
				}
			})
		})
	}
}

func (w *watched) revoke() {
	w.t.Helper()
	if _, err := w.store.Revoke(w.dir, "test"); err != nil {
		w.t.Fatal(err)
	}
}

// A hold that ends while its look is in use leaves it open for its users.
func TestHoldEndsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t)
		w.answer = say(event.ApproveForSession, "")
		if err := w.admit("s", "t"); err != nil {
			t.Fatal(err)
		}
		end := w.gate.Hold("s")
		in, trusted, err := w.gate.Look("s")
		if err != nil || !trusted {
			t.Fatalf("Look = %v, %v; want trusted for the session", trusted, err)
		}
		end()
		if _, _, err := in.Tree(t.Context(), ".", 1, 10); err != nil {
			t.Errorf("after the hold has ended, the folder cannot be read: %v", err)
		}
		closed(t, in)
		if _, _, err := in.Tree(t.Context(), ".", 1, 10); err == nil {
			t.Error("after its last user, the folder is open, want that it is closed")
		}
		w.gate.Hold("s")() // without a use
	})
}

// A look that panics is an error for those that share it.
func TestBrokenLook(t *testing.T) {
	w := newWorld(t)
	root, err := os.OpenRoot(w.data)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	store := folder.NewStore(root, nil, func(*workspace.Workspace) ([]folder.Item, error) { panic("once") })
	gate := folder.NewGate(folder.GateConfig{Store: store, Folder: func(string) (string, error) { return w.dir, nil }})
	defer gate.Hold("s")()
	func() {
		defer func() { _ = recover() }()
		_, _, err := gate.Look("s")
		t.Errorf("the first look = %v, want a panic", err)
	}()
	if in, trusted, err := gate.Look("s"); in != nil || trusted || err == nil {
		t.Errorf("the second look = %v, %v, %v; want an error", in, trusted, err)
	}
}

// A change of the trusted folders that cannot be written changes nothing.
func TestFailedRevocation(t *testing.T) {
	w := newWorld(t)
	if err := w.admit("s", "t"); err != nil {
		t.Fatal(err)
	}
	way := filepath.Join(w.data, "folders", fmt.Sprintf(".trusted.json.%d.tmp", os.Getpid()))
	if err := os.MkdirAll(filepath.Join(way, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Revoke(w.dir, "test"); err == nil {
		t.Fatal("Revoke = nil where the file cannot be written, want an error")
	}
	if !w.gate.Trusted("s") {
		t.Error("the folder is not trusted, want what the file says")
	}
}

// Why a session may not use its folder says how that came, and what trusts it.
func TestRestricted(t *testing.T) {
	w := newWorld(t)
	w.items = []folder.Item{{Kind: folder.Agent, Name: "a.md"}}
	wants := func(words ...string) {
		t.Helper()
		got := w.gate.Restricted("s")
		if len(words) == 0 && got != "" {
			t.Errorf("Restricted = %q, want nothing", got)
		}
		for _, word := range words {
			if !strings.Contains(got, word) {
				t.Errorf("Restricted = %q, want %q in it", got, word)
			}
		}
	}
	wants("(nobody has trusted it)", "yaya trust "+w.dir)
	st, err := w.store.Status(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Trust(w.dir, st.Digest(), "user"); err != nil {
		t.Fatal(err)
	}
	wants()
	w.items = append(w.items, folder.Item{Kind: folder.Agent, Name: "b.md"})
	wants("it has changed since it was trusted: agent", "b.md", "is new", "yaya trust "+w.dir)
	w.answer = say(event.ApproveForSession, "")
	if err := w.admit("s", "t"); err != nil {
		t.Fatal(err)
	}
	wants()
}
