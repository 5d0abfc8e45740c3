package folder_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// sees opens the folder of a session and returns how it is found. The workspace stays open.
func (w *world) sees(session string) (in *workspace.Workspace, trusted bool) {
	w.t.Helper()
	in, trusted, err := w.gate.Open(session)
	if err != nil {
		w.t.Fatal(err)
	}
	return in, trusted
}

func closed(t *testing.T, in *workspace.Workspace) {
	t.Helper()
	if err := in.Close(); err != nil {
		t.Errorf("Close() = %v, want nil", err)
	}
}

// SEC-3: whether a folder may be used concerns the folder that is open: it is found by a link, and
// stays the same when the link leads elsewhere.
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
	in, trusted := w.sees("s")
	defer closed(t, in)
	if !trusted || in.Dir() != real {
		t.Errorf("Open by a link = %q, trusted %v; want %q, true", in.Dir(), trusted, real)
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
	if in, trusted, err := w.gate.Open("s"); in != nil || trusted || err == nil {
		t.Errorf("Open of a folder that is gone = %v, %v, %v; want an error", in, trusted, err)
	}
}

// Uses of a folder that overlap see the same, for a short time, and until the trust in a folder changes.
func TestSharedLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if err := w.admit("s", "t"); err != nil {
			t.Fatal(err)
		}
		known := w.items
		change := func() {
			w.items = append(w.items[:len(w.items):len(w.items)], folder.Item{Kind: folder.Server, Runs: "evil"})
		}
		for name, tc := range map[string]struct {
			until func()
			same  bool
		}{
			"at once":            {func() {}, true},
			"soon":               {func() { time.Sleep(99 * time.Millisecond) }, true},
			"later":              {func() { time.Sleep(100 * time.Millisecond) }, false},
			"after a revocation": {func() { revoked(t, w) }, false},
		} {
			w.items = known
			in, trusted := w.sees("s")
			if !trusted {
				t.Fatalf("%s: the folder is not trusted, want that it is", name)
			}
			change()
			tc.until()
			second, same := w.sees("s")
			if same != tc.same {
				t.Errorf("%s, the second use of a folder that has changed is of a trusted one: %v, want %v", name, same, tc.same)
			}
			closed(t, in)
			if _, _, err := second.Tree(t.Context(), ".", 1, 10); err != nil {
				t.Errorf("%s: the second user reads %v after the first has closed the folder", name, err)
			}
			third, still := w.sees("s")
			if still {
				t.Errorf("%s: the folder is trusted after its first user has closed it, want that it is looked at again", name)
			}
			closed(t, second)
			closed(t, second) // which takes nothing from the third
			if _, _, err := third.Tree(t.Context(), ".", 1, 10); err != nil {
				t.Errorf("%s: the third user reads %v", name, err)
			}
			closed(t, third)
			w.items = known
			if err := w.admit("s", "t"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func revoked(t *testing.T, w *world) {
	t.Helper()
	if _, err := w.store.Revoke(w.dir, "test"); err != nil {
		t.Fatal(err)
	}
}

// While a session holds its folder, all see the same, whether or not their uses overlap; what holds for
// one session alone does not for others.
func TestHold(t *testing.T) { synctest.Test(t, hold) }

func hold(t *testing.T) {
	looks := 0
	w := newWorld(t)
	root, err := os.OpenRoot(w.data)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	w.store = folder.NewStore(root, nil, func(*workspace.Workspace) ([]folder.Item, error) { looks++; return w.items, nil })
	w.gate = folder.NewGate(folder.GateConfig{
		Store: w.store, Folder: func(string) (string, error) { return w.dir, nil },
		Ask: func(_ context.Context, _ tool.Call, _ tool.Definition, _ string) (approval.Decision, error) {
			return say(event.ApproveForSession, "")()
		},
	})
	if err := w.admit("s", "t"); err != nil {
		t.Fatal(err)
	}
	looks = 0
	end := w.gate.Hold("s")
	for range 3 {
		in, trusted := w.sees("s")
		closed(t, in)
		other, theirs := w.sees("another")
		closed(t, other)
		if !trusted || theirs {
			t.Errorf("trusted by the session that trusts it: %v, by another: %v; want true and false", trusted, theirs)
		}
	}
	if looks != 1 {
		t.Errorf("the folder was looked at %d times, want once", looks)
	}
	end()
	end()
	in, _ := w.sees("s")
	closed(t, in)
	w.gate.Hold("s")() // without a use
	if looks != 2 {
		t.Errorf("after the hold has ended, the folder was looked at %d times in all, want 2", looks)
	}
}
