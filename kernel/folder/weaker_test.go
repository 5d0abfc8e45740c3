package folder_test

import (
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/kernel/folder"
)

// A folder stays trusted while its sandboxes enforce what was shown, or more, and is
// asked about again when one enforces less.
func TestWeakerIsAskedAbout(t *testing.T) {
	server := folder.Item{Kind: folder.Server, Name: "s", Runs: "s.sh, in a sandbox", Digest: "d"}
	lacks := func(what string) folder.Item {
		i := server
		if i.Lacks = what; what != "" {
			i.Weaker = "not enforced here: " + what
			i.Shown = i.Runs + "; " + i.Weaker
		}
		return i
	}
	for _, c := range []struct {
		name, agreed, now string
		trusted           bool
	}{
		{"as it was", "", "", true},
		{"weaker as it was", "reads, writes", "reads, writes", true},
		{"weaker", "", "writes", false},
		{"weaker in another way", "reads", "writes", false},
		{"weaker in one more way", "reads", "reads, writes", false},
		{"stronger", "reads, writes", "writes", true},
		{"whole", "reads, writes", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.items = []folder.Item{lacks(c.agreed)}
			st, err := w.store.Status(w.dir)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.store.Trust(w.dir, st.Digest(), "me"); err != nil {
				t.Fatal(err)
			}
			w.open()
			w.items = []folder.Item{lacks(c.now)}
			if st, err = w.store.Status(w.dir); err != nil || st.Trusted != c.trusted {
				t.Fatalf("trusted: got %v, %v; want %v", st.Trusted, err, c.trusted)
			}
			if c.trusted {
				return
			}
			if len(st.Added) != 1 || len(st.Removed) != 1 || !strings.Contains(st.Added[0].String(), "not enforced here: "+c.now) {
				t.Errorf("the difference is %+v to %+v, want what is not enforced", st.Removed, st.Added)
			}
			if got, want := st.Differences(), `server "s" would have more rights than you agreed to (not enforced here: `+c.now+")"; got != want {
				t.Errorf("Differences() = %q, want %q", got, want)
			}
			if got := st.AsShown().Items[0].Runs; !strings.Contains(got, "not enforced here") {
				t.Errorf("the question shows %q", got)
			}
		})
	}
}

// The difference names what is new, has changed and is gone.
func TestDifferences(t *testing.T) {
	w := newWorld(t)
	w.items = []folder.Item{{Kind: folder.Server, Name: "a", Runs: "1"}, {Kind: folder.Check, Runs: "make"}}
	st, err := w.store.Status(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := st.Differences(); got != "" {
		t.Errorf("Differences() = %q of a folder that nobody has trusted", got)
	}
	if _, err := w.store.Trust(w.dir, st.Digest(), "me"); err != nil {
		t.Fatal(err)
	}
	w.items = []folder.Item{{Kind: folder.Server, Name: "a", Runs: "2"}, {Kind: folder.Instructions, Name: "AGENTS.md"}}
	if st, err = w.store.Status(w.dir); err != nil {
		t.Fatal(err)
	}
	if got, want := st.Differences(), `instructions "AGENTS.md" is new, server "a" has changed, check "make" is gone`; got != want {
		t.Errorf("Differences() = %q, want %q", got, want)
	}
}
