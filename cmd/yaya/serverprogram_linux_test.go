package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/besidetmp"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// The question about a folder's server names the folders that the server reads because of
// its program, wherever it is shown, and a folder that joins them later is asked about
// again.
func TestFolderShowsWhatAProgramIsInstalledWith(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip(err)
	}
	script, err := os.ReadFile("testdata/shell.mjs")
	if err != nil {
		t.Fatal(err)
	}
	const says = "; reads what its program is installed with: "
	for _, c := range []struct {
		name  string
		home  bool   // the program lies in the home folder
		later string // a folder beside it that appears while the folder is trusted
	}{
		{name: "outside the home folder"},
		{name: "in the home folder", home: true, later: "lib/python3.12"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.cwd = filepath.Join(b.dir, "ws")
			app := filepath.Join(b.dir, "app")
			if !c.home {
				app = filepath.Join(besidetmp.Dir(t), "app")
			}
			tool := filepath.Join(app, "bin", "tool.mjs")
			err := errors.Join(os.MkdirAll(filepath.Dir(tool), 0o755), os.MkdirAll(b.cwd, 0o700),
				os.WriteFile(filepath.Join(app, "data.txt"), []byte("its data"), 0o600),
				os.WriteFile(filepath.Join(b.cwd, ".mcp.json"), []byte(`{"mcpServers":{"theirs":{"command":"`+tool+`"}}}`), 0o600))
			if err != nil {
				t.Fatal(err)
			}
			writeProgram(t, tool, "#!"+node+"\n"+string(script))
			shown := func(want bool) {
				t.Helper()
				out, err := b.run("trust", b.cwd)
				if got := strings.Contains(out, says+app+";"); err == nil || got != want {
					t.Errorf("the question is %q, %v; want that it names %s: %v", out, err, app, want)
				}
			}
			shown(!c.home)
			b.serve()
			shown(!c.home)
			var v admin.FolderView
			b.admin("GET", "/folders/look?path="+b.cwd, "", 200, &v)
			for where, text := range map[string]string{"the API": string(jsonOf(t, v)), "yaya mcp get": b.must("mcp", "get", "theirs")} {
				if got := strings.Contains(text, says+app+";"); got == c.home {
					t.Errorf("%s shows %s, want that it names %s: %v", where, text, app, !c.home)
				}
			}
			b.must("trust", "--yes", b.cwd)
			b.firstStart([]string{"theirs"})
			said, failed := b.sh("theirs", "cat "+app+"/data.txt")
			if reads := !failed && strings.Contains(said, "its data"); reads == c.home {
				t.Errorf("beside its program the server reads %q, want what the question has named", said)
			}
			if c.later == "" {
				return
			}
			if err := os.MkdirAll(filepath.Join(app, c.later), 0o700); err != nil {
				t.Fatal(err)
			}
			b.kill("theirs")
			b.refuses("theirs", "yaya trust "+b.cwd)
			shown(true)
			b.must("trust", "--yes", b.cwd)
			eventually.True(t, "the server reads what was agreed to", func() bool {
				said, failed := b.sh("theirs", "cat "+app+"/data.txt")
				return !failed && strings.Contains(said, "its data")
			})
		})
	}
}
