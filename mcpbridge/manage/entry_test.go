package manage_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// JSON is taken as people have it: an entry, an object of them, a file, a piece of one.
func TestEntries(t *testing.T) {
	const a, b = `"a":{"command":"x"}`, `"b":{"url":"https://example.com/mcp"}`
	for name, c := range map[string]struct{ name, text, want, err string }{
		"an entry":                      {"s", `{"command":"x"}`, "s", ""},
		"an entry without a name":       {"", `{"command":"x"}`, "", "has no name"},
		"an object of entries":          {"", `{` + a + `,` + b + `}`, "a b", ""},
		"one of several":                {"b", `{` + a + `,` + b + `}`, "b", ""},
		"none of several":               {"c", `{` + a + `,` + b + `}`, "", "none named"},
		"another name for the only one": {"c", `{` + a + `}`, "c", ""},
		"a file":                        {"", `{"mcpServers":{` + a + `}}`, "a", ""},
		"a file of VS Code":             {"", `{"mcp":{"servers":{` + a + `}}}`, "a", ""},
		"a piece of a file":             {"", a, "a", ""},
		"a server called servers":       {"", `{"servers":{"command":"x"}}`, "servers", ""},
		"something else":                {"", `{"a":{"what":1}}`, "", "neither a command nor a url"},
		"nothing":                       {"", `{}`, "", "has no server"},
		"not JSON":                      {"", `{`, "", "the JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := manage.Entries(c.name, []byte(c.text))
			names := strings.Join(slices.Sorted(maps.Keys(got)), " ")
			if names != c.want || (err == nil) != (c.err == "") || !strings.Contains(fmt.Sprint(err), c.err) {
				t.Errorf("Entries(%q, %s) = %q, %v, want %q, %q", c.name, c.text, names, err, c.want, c.err)
			}
		})
	}
}

func TestCheckCommand(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		more    bool
		err     string
	}{
		"a program":                 {"npx", true, ""},
		"an address":                {"https://example.com/mcp", false, ""},
		"an address from variables": {"https://${HOST}/mcp", false, ""},
		"an address without a host": {"https://", false, "names no host"},
		"another protocol":          {"ws://example.com", false, "not ws://"},
		"a quoted command line":     {"npx -y server", false, "remove the quotes around the whole command"},
		"a path with a blank":       {"/no such/program", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := manage.CheckCommand("s", c.command, c.more)
			if (err == nil) != (c.err == "") || !strings.Contains(fmt.Sprint(err), c.err) {
				t.Errorf("CheckCommand(%q) = %v, want %q", c.command, err, c.err)
			}
		})
	}
}

// Paths of the folder in which a server is added are written whole.
func TestWholePaths(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = errors.Join(os.Mkdir(filepath.Join(dir, "data"), 0o700), os.WriteFile(filepath.Join(dir, "run"), nil, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for name, c := range map[string]struct {
		words, cwd, want, dir string
		notes                 int
	}{
		"a command and a folder":     {"./run ./data", "", dir + "/run " + dir + "/data", "", 2},
		"words that are not paths":   {"run none -x", "", "run none -x", "", 0},
		"a word that may be a path":  {"npx data", "", "npx data", "", 1},
		"the value of a flag":        {"npx --root data --x=./data", "", "npx --root " + dir + "/data --x=" + dir + "/data", "", 2},
		"below a working directory":  {"./run ./data", "data", "./run ./data", dir + "/data", 1},
		"a whole working directory":  {"./run", "/srv", "./run", "/srv", 0},
		"a variable":                 {"$HOME/run", "", "$HOME/run", "", 0},
		"a command that is not here": {"./none", "", dir + "/none", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			whole, at, notes, err := manage.WholePaths(strings.Fields(c.words), c.cwd)
			if got := strings.Join(whole, " "); err != nil || got != c.want || at != c.dir || len(notes) != c.notes {
				t.Errorf("WholePaths(%q, %q) = %q, %q, %q, %v, want %q, %q, %d notes", c.words, c.cwd, got, at, notes, err, c.want, c.dir, c.notes)
			}
		})
	}
}

// noOtherPlaces keeps a test from the files of clients of whoever runs it: their places are
// those below the test's home.
func noOtherPlaces(t *testing.T) {
	servers.Locations(t.TempDir(), runtime.GOOS, func(name string) string {
		t.Setenv(name, "")
		return ""
	})
}

func TestSources(t *testing.T) {
	noOtherPlaces(t)
	home := t.TempDir()
	file := filepath.Join(t.TempDir(), "some.json")
	cursor := filepath.Join(home, ".cursor", "mcp.json")
	if err := errors.Join(os.Mkdir(filepath.Dir(cursor), 0o700), os.WriteFile(cursor, []byte(`{"mcpServers":{"a":{"command":"x"}}}`), 0o600), os.WriteFile(file, []byte(`{"mcpServers":{"b":{"command":"x"}}}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		names []string
		want  string
		err   string
	}{
		"all clients":               {nil, "a", ""},
		"a client by its word":      {[]string{"cursor"}, "a", ""},
		"a client by its name":      {[]string{"Cursor"}, "a", ""},
		"a file":                    {[]string{file}, "b", ""},
		"a file and a client":       {[]string{file, "cursor"}, "b a", ""},
		"a client that is not here": {[]string{"codex"}, "", "has no servers on this machine"},
		"neither":                   {[]string{"nobody"}, "", "neither a client nor a file"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := manage.Sources(home, c.names)
			var got []string
			for _, f := range found {
				for _, s := range f.Config.Servers {
					got = append(got, s.Name)
				}
			}
			if names := strings.Join(got, " "); names != c.want || (err == nil) != (c.err == "") || !strings.Contains(fmt.Sprint(err), c.err) {
				t.Errorf("Sources(%q) = %q, %v, want %q, %q", c.names, names, err, c.want, c.err)
			}
		})
	}
}
