package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// make makes the folders and files of a box; a name that ends in / is a folder.
func (b *box) make(names ...string) {
	b.t.Helper()
	for _, name := range names {
		at := filepath.Join(b.dir, name)
		err := os.MkdirAll(filepath.Dir(at), 0o700)
		if strings.HasSuffix(name, "/") {
			err = errors.Join(err, os.MkdirAll(at, 0o700))
		} else {
			err = errors.Join(err, os.WriteFile(at, []byte("of "+name), 0o600))
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// swap puts a link in the place of a file or folder of a box.
func (b *box) swap(name, to string) {
	b.t.Helper()
	at := filepath.Join(b.dir, name)
	if err := errors.Join(os.RemoveAll(at), os.Symlink(to, at)); err != nil {
		b.t.Fatal(err)
	}
}

// kill ends the process of a server, as a crash does.
func (b *box) kill(server string) {
	b.t.Helper()
	if err := unix.Kill(b.pidOf(server), unix.SIGKILL); err != nil {
		b.t.Fatal(err)
	}
}

// refuses waits until a server that has ended does not start again, and returns why.
func (b *box) refuses(server, want string) {
	b.t.Helper()
	var s admin.Server
	eventually.True(b.t, "the server is refused with "+want, func() bool {
		return json.Unmarshal([]byte(b.must("mcp", "get", server, "--json")), &s) == nil && s.State != "ready" && strings.Contains(s.Reason+s.LastError, want)
	})
}

// GA-1: a path that a server may write is the one that was shown: a link that a program of
// the folder puts in its place later gives the server nothing, and the start says so.
func TestSwappedPath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		server      string
		theirs, own string // members of their entries
		allow       []string
		swap, to    string // of the box
		want        []string
	}{
		{name: "a folder's write", server: "theirs", theirs: `"sandbox":{"write":["out"]}`, swap: "ws/out", to: "prize", want: []string{"/ws/out (leads to ", "/prize)", "yaya trust "}},
		{name: "a folder's read", server: "theirs", theirs: `"sandbox":{"read":["out"]}`, swap: "ws/out", to: "prize", want: []string{"/ws/out (leads to ", "yaya trust "}},
		{name: "above a folder's write", server: "theirs", theirs: `"sandbox":{"write":["sub/out"]}`, swap: "ws/sub", to: "prize", want: []string{"/ws/sub/out (leads to ", "yaya trust "}},
		{name: "where a folder's server works", server: "theirs", theirs: `"cwd":"../beside/out","args":["../../ws/shell.mjs"]`, swap: "beside/out", to: "prize", want: []string{"/beside/out", "leads to ", "yaya trust "}},
		{name: "a permit", server: "theirs", allow: []string{"--write", "beside/out"}, swap: "beside/out", to: "prize", want: []string{"/beside/out", "leads to ", "/prize", "name that"}},
		{name: "the user's own write", server: "bounded", own: `"sandbox":{"write":["DIR/beside/out"]}`, swap: "beside/out", to: "prize", want: []string{"/beside/out", "leads to ", "/prize", "name that"}},
		{name: "where the user's own server works", server: "bounded", own: `"cwd":"DIR/beside/out","sandbox":{}`, swap: "beside/out", to: "prize", want: []string{"/beside/out", "leads to ", "/prize", "name that"}},
		{name: "the package of the user's own script", server: "bounded", own: `"sandbox":{}`, swap: "own", to: "prize", want: []string{"/own/shell.mjs", "leads to ", "/prize/shell.mjs", "name that"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := shellServers(t)
			b.make("ws/out/", "ws/sub/out/", "beside/out/", "prize/out/", "prize/secret")
			script, err := os.ReadFile("testdata/shell.mjs")
			if err != nil {
				t.Fatal(err)
			}
			entry := func(base, more string) string {
				if more != "" {
					base += "," + strings.ReplaceAll(more, "DIR", b.dir)
				}
				return base
			}
			theirs := `"command":"node"`
			if !strings.Contains(c.theirs, `"args"`) {
				theirs += `,"args":["shell.mjs"]`
			}
			own := `"command":"node","args":["` + b.dir + `/own/shell.mjs"]`
			for path, data := range map[string]string{
				"prize/shell.mjs": string(script),
				"ws/.mcp.json":    `{"mcpServers":{"theirs":{` + entry(theirs, c.theirs) + `}}}`,
				"c/mcp.json":      `{"mcpServers":{"bounded":{` + entry(own, c.own) + `}}}`,
			} {
				if err := os.WriteFile(filepath.Join(b.dir, path), []byte(data), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			b.must("trust", "--yes", b.cwd)
			b.serve()
			b.firstStart([]string{"bounded", "theirs"})
			if c.allow != nil {
				b.must("mcp", "allow", c.server, c.allow[0], filepath.Join(b.dir, c.allow[1]))
				b.firstStart([]string{"bounded", "theirs"})
			}
			if said, failed := b.sh(c.server, "echo there"); failed {
				t.Fatalf("before the link: %s", said)
			}
			b.swap(c.swap, filepath.Join(b.dir, c.to))
			b.kill(c.server)
			for _, want := range c.want {
				b.refuses(c.server, want)
			}
			if said, failed := b.sh(c.server, "cat "+filepath.Join(b.dir, "prize/secret")+"; echo x > "+filepath.Join(b.dir, "prize/planted")); !failed || strings.Contains(said, "of prize") {
				t.Errorf("got %q, want no server that reads where the link leads", said)
			}
			if there(t, filepath.Join(b.dir, "prize/planted")) {
				t.Error("the server has written where the link leads")
			}
			if c.server == "theirs" && c.allow == nil {
				out, err := b.run("trust", b.cwd)
				if err == nil || !strings.Contains(out, "(leads to "+filepath.Join(b.dir, "prize")) {
					t.Errorf("the question is %q, %v; want where the link leads", out, err)
				}
			}
		})
	}
}

// GA-2: a link that was there when the folder was trusted is shown with where it leads, in
// each surface, and works; another target is another server.
func TestLinkedPath(t *testing.T) {
	t.Parallel()
	b := shellServers(t)
	b.make("prize/secret", "other/secret", "ws/sub/")
	b.swap("ws/sub/data", "../../prize")
	if err := os.WriteFile(filepath.Join(b.cwd, ".mcp.json"), []byte(`{"mcpServers":{"theirs":{"command":"node","args":["shell.mjs"],"sandbox":{"read":["sub/data"]}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	led := filepath.Join(b.cwd, "sub/data") + " (leads to " + filepath.Join(b.dir, "prize") + ")"
	if out, err := b.run("trust", b.cwd); err == nil || !strings.Contains(out, led) {
		t.Errorf("the question is %q, %v; want %q", out, err, led)
	}
	b.serve()
	if out := b.must("mcp", "get", "theirs"); !strings.Contains(out, led) {
		t.Errorf("yaya mcp get: got %q, want %q", out, led)
	}
	var v admin.FolderView
	b.admin("GET", "/folders/look?path="+b.cwd, "", 200, &v)
	if raw := string(jsonOf(t, v)); !strings.Contains(raw, led) {
		t.Errorf("the API shows %s, want %q", raw, led)
	}
	b.must("trust", "--yes", b.cwd)
	b.firstStart([]string{"own", "bounded", "theirs"})
	read := "cat " + filepath.Join(b.cwd, "sub/data/secret")
	if said, failed := b.sh("theirs", read); failed || !strings.Contains(said, "of prize/secret") {
		t.Errorf("through the link: got %q, want what it leads to", said)
	}
	if out := b.must("mcp", "get", "theirs"); !strings.Contains(out, led) {
		t.Errorf("yaya mcp get of a server that runs: got %q, want %q", out, led)
	}
	b.swap("ws/sub/data", "../../other")
	b.kill("theirs")
	b.refuses("theirs", "a path leads elsewhere than when the folder was trusted: "+filepath.Join(b.cwd, "sub/data")+" (leads to "+filepath.Join(b.dir, "other")+")")
	reads := func(want string) {
		t.Helper()
		eventually.True(t, "the server reads "+want, func() bool {
			said, failed := b.sh("theirs", read)
			return !failed && strings.Contains(said, want)
		})
	}
	b.must("trust", "--yes", b.cwd)
	reads("of other/secret")
	// A path changes while the server runs: the server starts again once the change is agreed to.
	b.swap("ws/sub/data", "../../prize")
	b.must("trust", "--yes", b.cwd)
	reads("of prize/secret")
}

// GA-1: yaya sandbox run follows no link in what it is told to give: the last program that
// ran there may have made it.
func TestSandboxRunFollowsNoLink(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	b := newBox(t)
	b.cwd = filepath.Join(b.dir, "ws")
	b.make("ws/out/", "prize/secret")
	for _, profile := range []string{"server", "command"} {
		if out, errOut, code := b.in(b.cwd, "sandbox", "run", "--profile", profile, "--write", "out", "--", "sh", "-c", "echo x > "+b.cwd+"/out/f"); code != 0 {
			t.Fatalf("%s: got %q, %q, %d; want out to be written", profile, out, errOut, code)
		}
	}
	if out, errOut, code := b.in(b.cwd, "sandbox", "run", "--", "sh", "-c", "rm -r out && ln -s ../prize out"); code != 0 {
		t.Fatalf("making the link: got %q, %q, %d", out, errOut, code)
	}
	read := []string{"--", "cat", filepath.Join(b.dir, "prize/secret")}
	for _, flag := range []string{"--read", "--write"} {
		out, errOut, code := b.in(b.cwd, append([]string{"sandbox", "run", "--profile", "server", flag, "out"}, read...)...)
		if code == 0 || strings.Contains(out, "of prize") || !strings.Contains(errOut, flag+": open "+filepath.Join(b.cwd, "out")) || !strings.Contains(errOut, "leads to "+filepath.Join(b.dir, "prize")+"; if it is meant to, name that") {
			t.Errorf("%s with a link: got %q, %q, %d; want it refused", flag, out, errOut, code)
		}
	}
	if out, errOut, _ := b.in(b.cwd, append([]string{"sandbox", "run", "--profile", "server", "--read", filepath.Join(b.dir, "prize")}, read...)...); !strings.Contains(out, "of prize/secret") {
		t.Errorf("what the link leads to, named: got %q, %q", out, errOut)
	}
}
