package manage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/hosttest"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/folder"
)

// storeOf returns a store of trusted folders that are looked at for their servers alone.
func storeOf(data *os.Root, d *Digests) *folder.Store {
	return folder.NewStore(data, nil, func(w *workspace.Workspace) ([]folder.Item, error) { return d.Items(w, nil) })
}

// SEC-3: the digest of a folder covers every file of it that a server's command
// line names, in any way; a pipe in the place of a file does not block it.
func TestFolderItems(t *testing.T) {
	hosttest.NeedPipes(t)
	data, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	store := storeOf(data, new(Digests))
	for name, c := range map[string]struct{ server, file string }{
		"the command":          {`{"command":"./run.sh"}`, "run.sh"},
		"an argument":          {`{"command":"node","args":["srv.js"]}`, "srv.js"},
		"many arguments later": {`{"command":"node","args":["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17","srv.js"]}`, "srv.js"},
		"behind an option":     {`{"command":"node","args":["--require=./srv.js","x"]}`, "srv.js"},
		"in a shell's command": {`{"command":"sh","args":["-c","cd . && exec node 'srv.js'"]}`, "srv.js"},
		"below cwd":            {`{"command":"node","args":["srv.js"],"cwd":"sub"}`, "sub/srv.js"},
		"of a package runner":  {`{"command":"npm","args":["start"]}`, "package.json"},
		"of make":              {`{"command":"make","args":["mcp"]}`, "GNUmakefile"},
		"by a variable":        {`{"command":"sh","args":["${workspaceFolder}/run.sh"]}`, "run.sh"},
		"below a variable":     {`{"command":"sh","args":["w.sh"],"cwd":"${workspaceFolder}/sub"}`, "sub/w.sh"},
		"in its PATH":          {`{"command":"node","args":["--version"],"env":{"PATH":"${workspaceFolder}/bin:/usr/bin"}}`, "bin/node"},
		"of variables":         {`{"command":"node","envFile":".env"}`, ".env"},
		"of env -S":            {`{"command":"env","args":["-S","sh o.sh"]}`, "o.sh"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(file, content string) {
				t.Helper()
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(".mcp.json", `{"mcpServers":{"s":`+c.server+`}}`)
			large := strings.Repeat("x", 5<<20)
			write(c.file, large+"one")
			before, err := store.Status(dir)
			if err != nil {
				t.Fatal(err)
			}
			write(c.file, large+"two")
			after, err := store.Status(dir)
			if err != nil {
				t.Fatal(err)
			}
			if before.Digest() == after.Digest() {
				t.Error("another file is the same folder, want another digest")
			}
			if before.Items[0].String() == after.Items[0].String() {
				t.Errorf("the difference is not shown: %s", after.Items[0])
			}
			if err := os.Remove(filepath.Join(dir, c.file)); err != nil {
				t.Fatal(err)
			}
			hosttest.Pipe(t, filepath.Join(dir, c.file))
			if _, err := store.Status(dir); err != nil {
				t.Errorf("Status with a pipe = %v, want nil", err)
			}
		})
	}
	dir := t.TempDir()
	file := filepath.Join(dir, ".mcp.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers":{"s":{"command":"node","env":{"PLUGIN":"--require /tmp/evil.js","K":"${HOME}"}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"one/bin", "two/bin"} {
		if err := os.MkdirAll(filepath.Join(filepath.Dir(dir), d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// GA-1: also by a link to the folder of the command.
	for link, entry := range map[string]string{"l.sh": `{"command":"sh","args":["l.sh"],"prefix":""}`, "venv": `{"command":"venv/bin/x","prefix":""}`} {
		var links [2]string
		for i, to := range []string{"../one", "../two"} {
			if err := errors.Join(os.RemoveAll(filepath.Join(dir, link)), os.Symlink(to, filepath.Join(dir, link))); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(`{"mcpServers":{"s":`+entry+`}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			st, err := store.Status(dir)
			if err != nil || !strings.Contains(st.Items[0].Runs, `its tools named ""`) {
				t.Fatalf("Status = %+v, %v, want the prefix of its tools", st.Items, err)
			}
			links[i] = st.Digest()
		}
		if links[0] == links[1] {
			t.Errorf("%s: a link that leads elsewhere is the same folder, want another digest", entry)
		}
	}
	var many strings.Builder
	for i := range 65 {
		fmt.Fprintf(&many, `,"s%d":{"command":"x"}`, i)
	}
	if err := os.WriteFile(file, []byte(`{"mcpServers":{`+many.String()[1:]+`}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Status(dir); !errors.Is(err, folder.ErrTooMuch) {
		t.Errorf("65 servers: Status = %v, want ErrTooMuch", err)
	}
	if err := os.WriteFile(file, []byte(`{"mcpServers":{"s":{"command":"node","env":{"PLUGIN":"--require /tmp/evil.js","K":"${HOME}"}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	st, err := store.Status(dir)
	if err != nil || !strings.Contains(st.Items[0].Runs, `PLUGIN="--require /tmp/evil.js"`) || !strings.Contains(st.Items[0].Runs, `K="${HOME}"`) {
		t.Errorf("Status = %+v, %v, want the values of the environment", st.Items, err)
	}
	for name, replace := range map[string]func() error{
		"a pipe":              func() error { return hosttest.MakePipe(file) },
		"a link out of it":    func() error { return os.Symlink("/etc/passwd", file) },
		"a folder":            func() error { return os.Mkdir(file, 0o700) },
		"a file without JSON": func() error { return os.WriteFile(file, []byte("{"), 0o600) },
	} {
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
		if err := replace(); err != nil {
			t.Fatal(err)
		}
		if st, err := store.Status(dir); err != nil || len(st.Items) != 0 {
			t.Errorf("%s: Status = %+v, %v, want no items", name, st.Items, err)
		}
		var l Loaded
		if err := l.Project(dir, store); err != nil || len(l.Servers)+len(l.Pending) != 0 || len(l.Warnings) != 1 {
			t.Errorf("%s: project = %v with %d servers and the warnings %q, want one warning", name, err, len(l.Servers), l.Warnings)
		}
	}
}
