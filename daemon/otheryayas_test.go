package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// other makes the folders of a yaya.
func otherYaya(t *testing.T, home, name string) Paths {
	t.Helper()
	p := Paths{Home: home, Data: filepath.Join(home, name, "d"), Config: filepath.Join(home, name, "c")}
	if err := errors.Join(os.MkdirAll(filepath.Join(p.Data, "keys"), 0o700), os.MkdirAll(p.Config, 0o700)); err != nil {
		t.Fatal(err)
	}
	return p
}

// The list of data directories has those that are there, and drops the others.
func TestEnlist(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("XDG_CONFIG_HOME", "")
	home := t.TempDir()
	one, two, gone := otherYaya(t, home, "one"), otherYaya(t, home, "two"), otherYaya(t, home, "gone")
	plain := Paths{Home: home, Data: filepath.Join(home, ".local/state/yaya"), Config: filepath.Join(home, ".config/yaya")}
	look := otherYaya(t, home, "look")
	look.readOnly = true
	for _, p := range []Paths{one, gone, two, one, plain, look, {Data: "/nowhere"}} {
		if err := p.enlist(); err != nil {
			t.Fatal(err)
		}
		if p.Data == gone.Data {
			if err := os.RemoveAll(gone.Data); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, _, err := one.enlisted()
	slices.Sort(got)
	want := []string{one.Config, one.Data, filepath.Join(one.Data, "keys"), two.Config, two.Data, filepath.Join(two.Data, "keys")}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("enlisted = %q, %v; want %q", got, err, want)
	}
	files, err := os.ReadDir(one.listDir())
	if err != nil || len(files) != 2 {
		t.Errorf("the list has %d entries, %v; want 2", len(files), err)
	}
}

// The list has the files outside its folders that a yaya runs by, too: the next daemon of that
// data directory replaces them, and commands beside it do not.
func TestFilesAreEnlisted(t *testing.T) {
	home := t.TempDir()
	one, two := otherYaya(t, home, "one"), otherYaya(t, home, "two")
	file := func(name string) string {
		at := filepath.Join(home, name)
		write(t, at, "x")
		return at
	}
	key, cert, m, other, dotfile := file("k.pem"), file("c.pem"), file("m.json"), file("other.toml"), file("dotfiles/yaya/mcp.json")
	file("dotfiles/yaya/README")
	if err := os.Symlink(dotfile, one.Servers()); err != nil {
		t.Fatal(err)
	}
	daemon := ownFiles{paths: one, named: []string{m}}.listening(&Listen{Key: key, Cert: cert})
	if err := errors.Join(daemon.enlist(true), one.enlist(), (ownFiles{paths: one, named: []string{other}}).enlist(false), (ownFiles{paths: one}).enlist(false)); err != nil {
		t.Fatal(err)
	}
	hidden, readable, err := (ownFiles{paths: two}).Elsewhere()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{key, m, other, one.Servers(), one.Data, one.Config} {
		if !slices.Contains(hidden, name) {
			t.Errorf("another yaya's sandboxes hide %q, want %s too", hidden, name)
		}
	}
	for _, name := range []string{cert, filepath.Dir(dotfile)} {
		if !slices.Contains(readable, name) || slices.Contains(hidden, name) {
			t.Errorf("another yaya's sandboxes do not change %q, want %s too", readable, name)
		}
	}
	// The next daemon has no flags and no links.
	if err := errors.Join(os.Remove(one.Servers()), (ownFiles{paths: one}).enlist(true)); err != nil {
		t.Fatal(err)
	}
	if hidden, _, err := (ownFiles{paths: two}).Elsewhere(); err != nil || slices.Contains(hidden, key) || slices.Contains(hidden, other) {
		t.Errorf("Elsewhere = %q, %v, want no file of the daemon before", hidden, err)
	}
	if files, err := os.ReadDir(one.listDir()); err != nil || len(files) != 1 {
		t.Errorf("the list has %d entries, %v, want that of the folders alone", len(files), err)
	}
}

// An entry that cannot be read may name the folders of a yaya: the error says what to do.
func TestEnlistedRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		make func(dir string) error
		want string
	}{
		"not JSON": {func(dir string) error { return os.WriteFile(filepath.Join(dir, "a.json"), []byte("{"), 0o600) }, "remove that file"},
		"too large": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "a.json"), make([]byte, maxEntrySize+1), 0o600)
		}, "larger than"},
		"a folder":      {func(dir string) error { return os.Mkdir(filepath.Join(dir, "a.json"), 0o700) }, "not a regular file"},
		"too many":      {func(dir string) error { return many(dir, maxEntries+1) }, "more than"},
		"as many as go": {func(dir string) error { return many(dir, maxEntries) }, ""},
		"being written": {func(dir string) error { return os.WriteFile(filepath.Join(dir, ".a.json.1.tmp"), nil, 0o600) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := otherYaya(t, t.TempDir(), "one")
			if err := errors.Join(os.MkdirAll(p.listDir(), 0o700), c.make(p.listDir())); err != nil {
				t.Fatal(err)
			}
			_, _, err := p.enlisted()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("enlisted = %v, want %q in the error", err, c.want)
			}
			if _, _, err := (ownFiles{paths: p}).all(); (err != nil) != (c.want != "") {
				t.Errorf("all = %v, want an error as above", err)
			}
		})
	}
}

// After sudo there are entries of root, which an ordinary user cannot read and need not.
func TestEntriesOfOthers(t *testing.T) {
	for _, c := range []struct {
		user, owner int
		want        bool
	}{{1000, 1000, true}, {1000, 0, false}, {1000, 1001, false}, {0, 1000, true}, {0, 0, true}} {
		if got := reads(c.user, c.owner); got != c.want {
			t.Errorf("user %d follows an entry of %d: %v, want %v", c.user, c.owner, got, c.want)
		}
	}
}

func many(dir string, n int) error {
	var all error
	for i := range n {
		all = errors.Join(all, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.json", i)), []byte("{}"), 0o600))
	}
	return all
}
