package mcpbridge

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

func TestHostDenied(t *testing.T) {
	for _, c := range []struct {
		name, server string
		denial       sandbox.Denial
		want         string
	}{
		{"a host", "fetch", sandbox.Denial{Host: "example.com", Port: 443, Allow: "example.com"}, `server "fetch" was kept from reaching example.com:443 (profile server). Allow it: yaya mcp allow fetch --host example.com`},
		{"a name with a blank", "my fetch", sandbox.Denial{Host: "::1", Port: 80, Allow: "::1"}, `server "my fetch" was kept from reaching [::1]:80 (profile server). Allow it: yaya mcp allow 'my fetch' --host ::1`},
		{"nothing would help", "fetch", sandbox.Denial{Host: "example.com", Port: 443, Why: "no TLS"}, `server "fetch" was kept from reaching example.com:443 (profile server): no TLS`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := hostDenied(c.server, c.denial).String(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// A host that a server may reach, and could not, is reported without a remedy.
func TestHostUnreached(t *testing.T) {
	want := `server "fetch" could not reach example.internal:443 (profile server): example.internal could not be resolved`
	if got := hostUnreached("fetch", "example.internal", 443, "example.internal could not be resolved").String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Only the child knows that a file was kept from it: what it says on standard error is
// taken for that where the sandbox can be the reason, and nowhere else.
func TestFileDenied(t *testing.T) {
	dir := t.TempDir()
	own, there := filepath.Join(dir, "own"), filepath.Join(dir, "there")
	for _, d := range []string{own, there, filepath.Join(dir, "w"), filepath.Join(dir, "p", "out")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(own, "keys"), nil, 0o600), os.Symlink(own, filepath.Join(dir, "p", "link")), os.Symlink("/nonexistent/x", filepath.Join(dir, "p", "dead"))); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"there/f", "home/.ssh/id"} {
		f = filepath.Join(dir, f)
		if err := errors.Join(os.MkdirAll(filepath.Dir(f), 0o700), os.WriteFile(f, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	home := filepath.Join(dir, "home")
	b := New(Config{Home: home, Sandboxes: &sandbox.Sandboxes{Own: []string{own}, Cache: filepath.Join(dir, "cache")}})
	x := servers.Server{Name: "s", Transport: servers.Stdio, Command: "x", File: filepath.Join(dir, "p", ".mcp.json"), Project: true, Sandbox: &servers.Sandbox{Write: []string{filepath.Join(dir, "w")}}}
	for _, c := range []struct {
		name, line, want string
	}{
		{"node reads", "Error: EACCES: permission denied, open '" + there + "/f'", "reading " + there + "/f (profile server). If you want it to, allow it: yaya mcp allow s --read " + there + "/f"},
		{"python writes", "OSError: [Errno 30] Read-only file system: '" + there + "/f'", "writing " + there + "/f (profile server). If you want it to, allow it: yaya mcp allow s --write " + there + "/f"},
		{"the shell writes", "sh: 1: cannot create " + there + "/z: Permission denied", "writing " + there + "/z"},
		{"in its own folder it can read", "sh: 1: cannot create " + dir + "/p/z: Permission denied", "writing " + dir + "/p/z"},
		{"a file that is not there yet", "sh: 1: cannot create " + there + "/new/z: Permission denied", "writing " + there + "/new/z (profile server). If you want it to, allow it: yaya mcp allow s --write " + there},
		{"one beside what is yaya's own", "sh: 1: cannot create " + dir + "/z: Permission denied", "writing " + dir + "/z (profile server): it does not exist; create it, then allow it"},
		{"what holds yaya's own", "ls: cannot open directory '" + dir + "': Permission denied", dir + " holds " + own + ", which is yaya's own"},
		{"credentials", "cat: " + home + "/.ssh/id: No such file or directory", "reading " + home + "/.ssh/id (profile server), which holds credentials. If you want it to, allow it: yaya mcp allow s --read " + home + "/.ssh/id"},
		{"hidden", "cat: " + there + ": No such file or directory", "reading " + there},
		{"not there for anybody", "cat: " + dir + "/nowhere: No such file or directory", ""},
		{"yaya's own", "cat: " + own + "/keys: No such file or directory", own + "/keys, which belongs to yaya itself"},
		{"what it may write", "sh: 1: cannot create " + dir + "/w/z: Permission denied", ""},
		{"of the system", "cat: /etc/shadow: Permission denied", ""},
		{"another word", "see " + there + " for more", ""},
		{"no path", "Permission denied (publickey)", ""},
		{"a relative path of no folder", "touch: cannot touch 'nowhere/it': Read-only file system", ""},
		// GF-1: programs report a file by the name that they were given.
		{"a relative path", "touch: cannot touch 'out/it': Read-only file system", "writing " + dir + "/p/out/it"},
		{"a relative path of node", "Error: EROFS: read-only file system, open 'it.txt'", "writing " + dir + "/p/it.txt (profile server). If you want it to, allow it: yaya mcp allow s --write " + dir + "/p"},
		{"a relative path of python", "[Errno 30] Read-only file system: 'out/it'", "writing " + dir + "/p/out/it"},
		{"a relative path of the shell", "sh: 1: cannot create it: Permission denied", "writing " + dir + "/p/it"},
		{"a relative path that leads out", "touch: cannot touch '../../x': Read-only file system", ""},
		{"a program", "touch: Permission denied", ""},
		{"a word", "ssh: publickey: Permission denied", ""},
		{"yaya's own, by a link", "cat: " + dir + "/p/link/keys: Permission denied", dir + "/p/link/keys, which belongs to yaya itself"},
		{"yaya's own, by a relative link", "cat: link/keys: Permission denied", dir + "/p/link/keys, which belongs to yaya itself"},
		{"a path of many parts", "cat: " + dir + strings.Repeat("/p/..", 64) + "/p/z: Permission denied", ""},
		{"a long path", "cat: " + dir + "/" + strings.Repeat("p", 1024) + ": Permission denied", ""},
		{"the root of a process", "EACCES: permission denied, open '" + strings.Repeat("/proc/self/root", 20) + own + "/keys'", ""},
		{"a link to nothing", "cat: dead: Permission denied", "writing " + dir + "/p/dead"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := b.fileDenied(x, c.line).String()
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("fileDenied(%q) = %q, want %q", c.line, got, c.want)
			}
			if got != "" && !strings.HasPrefix(got, `server "s" may have been kept from `) {
				t.Errorf("fileDenied(%q) = %q, want that it may have been", c.line, got)
			}
		})
	}
	guarded := servers.Server{Name: "s", Transport: servers.Stdio, Command: "x"}
	if got := b.fileDenied(guarded, "cat: "+there+"/f: Permission denied"); got.What != "" {
		t.Errorf("a guarded server is kept from nothing of that: got %q", got)
	}
}

func TestCachesAreOfOneServer(t *testing.T) {
	seen := map[string]string{}
	for _, x := range []servers.Server{{Name: "a", File: "/p/.mcp.json"}, {Name: "a", File: "/q/.mcp.json"}, {Name: "b", File: "/p/.mcp.json"}, {Name: "../../x", File: "/p"}, {Name: strings.Repeat("é", 128), File: "/p"}} {
		name := cacheOf(x)
		if other, taken := seen[name]; taken || strings.ContainsAny(name, "/.") || len(name) > 100 {
			t.Errorf("cacheOf(%q of %s) = %q, want a name of its own without a path (also of %s)", x.Name, x.File, name, other)
		}
		seen[name] = x.File
	}
}

// The folders of PATH are shown as what outweighs nothing hidden, never as what the user
// has named.
func TestRuntimesOfServer(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{".fly/bin", ".nvm/v22/bin", "bin"} {
		if err := os.MkdirAll(filepath.Join(home, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	path := strings.Join([]string{filepath.Join(home, ".fly/bin"), filepath.Join(home, ".nvm/v22/bin"), "relative", filepath.Join(home, "nowhere"), filepath.Join(home, "bin")}, ":")
	b := New(Config{Home: home, Env: func(name string) (string, bool) { return path, name == "PATH" }})
	var got []string
	all := b.runtimes()
	defer func() { _ = sandbox.Close(all) }()
	for _, p := range all {
		got = append(got, p.String())
	}
	if want := []string{home + "/.fly/bin", home + "/.nvm/v22", home + "/bin"}; strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("runtimes() = %q, want %q", got, want)
	}
}

// Where there are no sandboxes, what a folder brings does not start.
func TestProjectNeedsSandbox(t *testing.T) {
	b := New(Config{})
	for _, c := range []struct {
		x    servers.Server
		want bool // it starts
	}{
		{servers.Server{Name: "s", Transport: servers.Stdio, Command: "true"}, true},
		{servers.Server{Name: "s", Transport: servers.Stdio, Command: "true", Project: true}, false},
		{servers.Server{Name: "s", Transport: servers.Stdio, Command: "true", Project: true, Sandbox: &servers.Sandbox{Profile: servers.SandboxOff}}, false},
	} {
		if _, err := b.enter(c.x, c.x, new(unseen), nil); (err == nil) != c.want {
			t.Errorf("enter(%+v): %v, want it to start: %v", c.x, err, c.want)
		}
	}
}
