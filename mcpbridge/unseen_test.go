package mcpbridge

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// The paths that an entry names are those of its arguments and of its own variables.
func TestPathsOfEntry(t *testing.T) {
	b := New(Config{Home: "/home/u"})
	for _, c := range []struct {
		name string
		s    servers.Server // with secrets as they are written
		x    servers.Server
		want []string
	}{
		{"an argument", servers.Server{}, servers.Server{Args: []string{"-y", "pkg", "/srv/docs/"}}, []string{"/srv/docs"}},
		{"of a flag", servers.Server{}, servers.Server{Args: []string{"--repository=/srv/repo", "--level=3"}}, []string{"/srv/repo"}},
		{"of the home", servers.Server{}, servers.Server{Args: []string{"~/notes", "~", "~other/x"}}, []string{"/home/u/notes", "/home/u"}},
		{"beside its folder", servers.Server{}, servers.Server{Dir: "/srv/p", Args: []string{"src", "./x", "../q"}}, []string{"/srv/q"}},
		{"of no folder", servers.Server{}, servers.Server{Args: []string{"../q"}}, nil},
		{"a variable", servers.Server{Env: map[string]string{"MEMORY_FILE_PATH": "${HOME}/m"}}, servers.Server{Env: map[string]string{"MEMORY_FILE_PATH": "/home/u/m", "OF_A_FILE": "/srv/f"}}, []string{"/home/u/m"}},
		{"variables that the sandbox sets", servers.Server{Env: map[string]string{"HOME": "/h", "PATH": "/p", "XDG_CACHE_HOME": "/c"}}, servers.Server{Env: map[string]string{"HOME": "/h", "PATH": "/p", "XDG_CACHE_HOME": "/c"}}, nil},
		{"secrets", servers.Server{Args: []string{"--at=${secret:A}"}, Env: map[string]string{"B": "${secret:B}"}}, servers.Server{Args: []string{"--at=/srv/a"}, Env: map[string]string{"B": "/srv/b"}}, nil},
		{"a long one", servers.Server{}, servers.Server{Args: []string{"/" + strings.Repeat("x", 2<<10)}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := b.told(c.s, c.x); !slices.Equal(got, c.want) {
				t.Errorf("told = %q, want %q", got, c.want)
			}
		})
	}
}

// A failure that names a path which the entry names and the sandbox hides says so, and how
// to allow it, in whatever words the server complains.
func TestComplaintsAboutHiddenPaths(t *testing.T) {
	dir := t.TempDir()
	docs, own := filepath.Join(dir, "docs"), filepath.Join(dir, "own")
	if err := errors.Join(os.MkdirAll(docs, 0o700), os.MkdirAll(own, 0o700)); err != nil {
		t.Fatal(err)
	}
	b := New(Config{Home: dir, Sandboxes: &sandbox.Sandboxes{Own: []string{own}, Cache: filepath.Join(dir, "cache")}})
	x := servers.Server{Name: "fs", Transport: servers.Stdio, Command: "x", Sandbox: &servers.Sandbox{}}
	hidden := new(unseen)
	hidden.add(docs, false)
	hidden.add(own, false)
	hidden.add(docs, true)
	for _, c := range []struct{ name, line, want string }{
		{"in words of its own", "Access denied - path outside allowed directories: " + docs + " not in /usr", `server "fs" does not see ` + docs + `, which its entry names (profile server); use --write instead of --read if it has to write there. Allow it: yaya mcp allow fs --read ` + docs},
		{"the path alone", docs, "does not see " + docs},
		{"what lies in it", "'" + docs + "/a/b' is not a repository", "does not see " + docs},
		{"another path", "no repository: " + docs + "2", ""},
		{"another path before it", docs + "2 is not " + docs, "does not see " + docs},
		{"the end of another path", "not a repository: /srv" + docs, ""},
		{"a value", "root=" + docs, "does not see " + docs},
		{"no path", "not a repository", ""},
		{"a file that is to be made there", "ENOENT: no such file or directory, open '" + docs + ".new.tmp'", ""},
		{"one in a hidden folder", "ENOENT: no such file or directory, open '" + docs + "/m.tmp'", "may have been kept from writing " + docs + "/m.tmp (profile server). If you want it to, allow it: yaya mcp allow fs --write " + docs},
		{"yaya's own", "cannot use " + own, "does not see " + own + ", which belongs to yaya itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			hidden := hidden
			if c.name == "one in a hidden folder" { // which the entry does not name itself
				hidden = new(unseen)
				hidden.add(docs, true)
			}
			got := b.complaint(x, hidden, c.line).String()
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("complaint(%q) = %q, want %q", c.line, got, c.want)
			}
		})
	}
}
