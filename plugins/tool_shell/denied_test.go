//go:build unix

package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/yaya-ai/yaya/internal/sandbox"
)

// A connection that is refused while the notes of a command are made does not race with
// them.
func TestDeniedDuringNotes(t *testing.T) {
	r := &reach{p: &Plugin{cfg: Config{Hosts: func() []string { return nil }}}}
	var work sync.WaitGroup
	for i := range 4 {
		work.Go(func() { r.refused(sandbox.Denial{Host: "example.com", Port: 1000 + i, Why: "no"}) })
		work.Go(func() { r.notes("command") })
	}
	work.Wait()
	if n := strings.Count(strings.Join(r.notes("command"), "\n"), "kept from reaching example.com"); n != 4 {
		t.Errorf("the notes name %d denials, want 4", n)
	}
}

// GF-1: a file that is hidden is missed, and no program says that it was kept from it. The
// note says nothing of which hidden files are there.
func TestMayHave(t *testing.T) {
	dir := t.TempDir()
	there, plain := filepath.Join(dir, ".ssh", "id_work"), filepath.Join(dir, "notes.txt")
	if err := errors.Join(os.Mkdir(filepath.Dir(there), 0o700), os.WriteFile(there, nil, 0o600), os.WriteFile(plain, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	p := &Plugin{cfg: Config{Sandboxes: &sandbox.Sandboxes{Home: dir, Own: []string{filepath.Join(dir, "own")}}}}
	for name, c := range map[string]struct {
		said string
		want string
	}{
		"a file that is hidden":        {"cat: " + there + ": No such file or directory", "kept from a file"},
		"a file that is hidden, ls":    {"ls: cannot access '" + there + "': No such file or directory", "kept from a file"},
		"a file that is hidden, node":  {"Error: ENOENT: no such file or directory, open '" + there + "'", "kept from a file"},
		"a file that is hidden, py":    {"FileNotFoundError: [Errno 2] No such file or directory: '" + there + "'", "kept from a file"},
		"after others":                 {"cat: " + dir + "/x: No such file or directory\ncat: " + there + ": No such file or directory", "kept from a file"},
		"a file that is not there":     {"cat: " + dir + "/x: No such file or directory", ""},
		"a hidden name without file":   {"cat: " + there + "2: No such file or directory", "kept from a file"},
		"of yaya, without file":        {"cat: " + dir + "/own/keys: No such file or directory", "kept from a file"},
		"one that is there, no secret": {"cat: " + plain + ": No such file or directory", ""},
		"a relative path":              {"cat: there: No such file or directory", ""},
		"a repository":                 {"error: remote unpack failed: unable to create temporary object directory", "kept from a file"},
		"a file that is read-only":     {"touch: cannot touch '/usr/x': Read-only file system", "kept from a file"},
		"a name":                       {"curl: (6) Could not resolve host: example.com", "kept from the network"},
		"a service":                    {"connect ECONNREFUSED 127.0.0.1:5432", "kept from a service"},
		"a name, node":                 {"Error: getaddrinfo ENOTFOUND packages.example.com\n  errno: -3008, code: 'ENOTFOUND'", "kept from the network"},
		"a name, go":                   {"dial tcp: lookup modules.example.com: no such host", "kept from the network"},
		"a module of Python":           {"Traceback (most recent call last):\nModuleNotFoundError: No module named 'calc'", ""},
		"a file of Python":             {"FileNotFoundError: [Errno 2] No such file or directory: 'calc.txt'", ""},
		"a module of node":             {"Error: Cannot find module './calc'\n  code: 'MODULE_NOT_FOUND',\nnode:internal/modules/cjs/loader:1404", ""},
		"a module of node, ESM":        {"Error [ERR_MODULE_NOT_FOUND]: Cannot find module '/w/calc.js' imported from /w/main.js", ""},
		"a package of Go":              {"main.go:3:8: package calc is not in std\nno required module provides package example.com/x; to add it", ""},
		"a crate of Rust":              {"error[E0432]: unresolved import `calc`\nerror: no matching package named `calc` found", ""},
		"nothing of that":              {"1 test failed", ""},
	} {
		got := strings.Join(p.mayHave(c.said, "command", ". Ask", false), "\n")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) || got != "" && !strings.HasSuffix(got, ". Ask") {
			t.Errorf("%s: mayHave(%q) = %q, want %q", name, c.said, got, c.want)
		}
		known := p.mayHave(c.said, "command", ". Ask", true) // what it was kept from in the network
		if want := c.want == "kept from a file"; (len(known) == 1) != want {
			t.Errorf("%s: beside hosts: mayHave(%q) = %q, want it to be about a file: %v", name, c.said, known, want)
		}
	}
}
