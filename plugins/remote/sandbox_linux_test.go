package remote

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// boxed loads a plugin in the profile plugin of a yaya whose data folder is that of the world.
func (w *world) boxed(mode string, env map[string]string, more ...string) *Plugin {
	w.t.Helper()
	if best := sandbox.Probe().Best; best != sandbox.Namespaces {
		w.t.Skipf("the sandbox is %s here", best)
	}
	p := w.make(w.folder("tool", mode, more...))
	home := filepath.Join(w.dir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		w.t.Fatal(err)
	}
	p.cfg.Sandboxes = &sandbox.Sandboxes{
		Own: []string{w.dir}, Home: home, Cache: filepath.Join(w.dir, "cache"),
		Settings: func() sandbox.Settings { return sandbox.Settings{Mode: sandbox.Prefer, Backend: "auto"} },
	}
	p.cfg.Env = func(name string) (string, bool) {
		if v, ok := env[name]; ok {
			return v, true
		}
		if name == "PATH" {
			return os.LookupEnv(name)
		}
		return "", false
	}
	w.Load(w.t.Context(), false, p)
	if s := w.status(); s.Status != plugin.Loaded {
		w.t.Fatalf("got %+v, want it %s; the log:\n%s", s, plugin.Loaded, w.logged())
	}
	return p
}

// says returns what the program has said on standard error, once it has said a word.
func (p *Plugin) says(t *testing.T, word string) (said string) {
	t.Helper()
	eventually.True(t, "the plugin has said "+word, func() bool {
		said = p.conn.p.Stderr()
		return strings.Contains(said, word)
	})
	return said
}

// PL-08, R26: a plugin can do what its permissions say, and nothing else, though its files lie
// in yaya's own folder.
func TestPermissions(t *testing.T) {
	for _, c := range []struct {
		name string
		more []string
		want map[string]bool
	}{
		{"none", []string{"[permissions]", `env = ["SECRET_FILE", "LISTENER"]`}, map[string]bool{"read": false, "write": false, "state": true, "dial": false, "env": false}},
		{"named", []string{"[permissions]", `env = ["SECRET_FILE", "LISTENER", "UNNAMED"]`, `read = ["%s"]`}, map[string]bool{"read": true, "write": false, "state": true, "dial": false, "env": true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			outside, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			secret := filepath.Join(outside, "secret")
			if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = listener.Close() }()
			for i, line := range c.more {
				c.more[i] = strings.ReplaceAll(line, "%s", outside)
			}
			p := w.boxed("curious", map[string]string{"SECRET_FILE": secret, "LISTENER": listener.Addr().String(), "UNNAMED": "x"}, c.more...)
			if res := w.call(t.Context(), "poke", `{}`, nil); !res.OK {
				t.Fatalf("poke = %+v, want it to work", res)
			}
			said := p.says(t, "env=")
			for what, want := range c.want {
				if !strings.Contains(said, fmt.Sprintf("%s=%v\n", what, want)) {
					t.Errorf("the plugin says\n%swant %s=%v", said, what, want)
				}
			}
		})
	}
}

// Y-110: a plugin does not see the files around its own, nor another plugin's state.
func TestOthersAreHidden(t *testing.T) {
	w := newWorld(t)
	other := filepath.Join(w.dir, "other", "state")
	if err := os.MkdirAll(other, 0o700); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(other, "token")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := w.boxed("curious", map[string]string{"SECRET_FILE": secret}, "[permissions]", `env = ["SECRET_FILE"]`)
	w.call(t.Context(), "poke", `{}`, nil)
	if said := p.says(t, "env="); !strings.Contains(said, "read=false\n") {
		t.Errorf("the plugin says\n%swant read=false", said)
	}
}

// A plugin that asks for what is yaya's own does not start.
func TestOwnIsNotPermitted(t *testing.T) {
	w := newWorld(t)
	keys := filepath.Join(w.dir, "keys")
	if err := os.MkdirAll(keys, 0o700); err != nil {
		t.Fatal(err)
	}
	p := w.make(w.folder("tool", "curious", "[permissions]", fmt.Sprintf("read = [%q]", keys)))
	p.cfg.Sandboxes = &sandbox.Sandboxes{Own: []string{w.dir}, Home: filepath.Join(w.dir, "home"), Settings: func() sandbox.Settings { return sandbox.Settings{Mode: sandbox.Prefer, Backend: "auto"} }}
	w.Load(t.Context(), false, p)
	if s := w.status(); s.Status != plugin.Failed || !strings.Contains(s.Error, "belongs to yaya itself") {
		t.Errorf("got %+v, want %s because the folder is yaya's", s, plugin.Failed)
	}
}

// Memory is bounded by the profile: the program ends, and yaya does not.
func TestBomb(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a gigabyte")
	}
	w := newWorld(t)
	p := w.boxed("bomb", nil)
	p.mu.Lock()
	first := p.conn
	p.mu.Unlock()
	res := w.call(t.Context(), "poke", `{}`, nil)
	said := first.p.Stderr()
	if res.OK || strings.Contains(said, "megabytes=") {
		t.Errorf("poke = %+v, and the plugin says\n%swant it to end before it has 3 GiB", res, said)
	}
	if os.Geteuid() != 0 && strings.Contains(said, "processes=200\n") { // the kernel exempts root
		t.Errorf("the plugin says\n%swant fewer than 200 processes", said)
	}
}
