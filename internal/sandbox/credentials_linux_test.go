package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/besidetmp"
)

// SEC-1: a command sees no credentials: not in the home folder, not where variables of the
// environment move them, and everything else of the same folders.
func TestCredentialsAreHidden(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			dir := besidetmp.Dir(t)
			home, elsewhere := filepath.Join(dir, "home"), filepath.Join(dir, "elsewhere")
			var all []string
			put := func(name, text string) {
				t.Helper()
				if info, err := os.Stat(name); err == nil && info.IsDir() {
					name = filepath.Join(name, "file")
				}
				if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text+" "+name+"\n"), 0o600)); err != nil {
					t.Fatal(err)
				}
				all = append(all, name)
			}
			for _, name := range credentials {
				put(filepath.Join(home, name), "secret")
			}
			visible := []string{".claude/settings.json", ".codex/config.toml", ".cargo/config.toml", ".cache/huggingface/hub/model", ".gradle/caches/x", ".config/other"}
			for _, name := range visible {
				put(filepath.Join(home, name), "visible")
			}
			for variable, names := range moved {
				at := filepath.Join(elsewhere, variable)
				value := at
				if variable == "KUBECONFIG" {
					value = filepath.Join(elsewhere, "other") + ":" + at
				}
				t.Setenv(variable, value)
				for _, name := range names {
					put(filepath.Join(at, name), "secret")
				}
			}
			for variable, name := range map[string]string{"XDG_CONFIG_HOME": "gh/hosts.yml", "XDG_DATA_HOME": "keyrings/login", "XDG_CACHE_HOME": "huggingface/token"} {
				t.Setenv(variable, filepath.Join(elsewhere, variable))
				put(filepath.Join(elsewhere, variable, name), "secret")
				put(filepath.Join(elsewhere, variable, "other"), "visible")
			}
			p := profile(t, "command")
			p.Home = home
			if err := os.MkdirAll(filepath.Join(dir, "ws"), 0o700); err != nil {
				t.Fatal(err)
			}
			if _, err := p.Work(filepath.Join(dir, "ws")); err != nil {
				t.Fatal(err)
			}
			got, err := b.start(t, p, filepath.Join(dir, "ws"), nil, append([]string{"sh", "-c", `cat "$@" 2>/dev/null; true`, "sh"}, all...)...)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(got.out) {
				if strings.HasPrefix(line, "secret") {
					t.Errorf("a command reads %q, want it hidden", line)
				}
			}
			for _, name := range visible {
				if want := "visible " + filepath.Join(home, name); !strings.Contains(got.out, want) {
					t.Errorf("a command does not read %s, want it to", name)
				}
			}
		})
	}
}

// A variable that names a folder above the home folder hides nothing: a command would see no
// file at all.
func TestWideVariables(t *testing.T) {
	for variable := range moved {
		t.Setenv(variable, "")
	}
	base := len(credentialPaths("/home/me"))
	for _, value := range []string{"/", "/home", "/home/me", "relative", ""} {
		t.Setenv("KUBECONFIG", value)
		if got := len(credentialPaths("/home/me")); got != base {
			t.Errorf("KUBECONFIG=%q: got %d paths, want the %d without it", value, got, base)
		}
	}
	t.Setenv("KUBECONFIG", "/home/me/kube:/srv/kube")
	if got := len(credentialPaths("/home/me")); got != base+2 {
		t.Errorf("two files: got %d paths, want %d", got, base+2)
	}
}

// The documentation names everything that is hidden.
func TestCredentialsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/SANDBOX.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range credentials {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/SANDBOX.md does not name `%s`", name)
		}
	}
	for variable := range moved {
		if !strings.Contains(string(text), "`"+variable+"`") {
			t.Errorf("docs/SANDBOX.md does not name `%s`", variable)
		}
	}
}
