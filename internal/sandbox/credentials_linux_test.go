package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
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

// A sandbox hides credentials that a variable names in every form in which programs read it:
// relative to the folder of yaya and to that of the program, as a list, with ~, and in npm's
// other spelling.
func TestMovedCredentials(t *testing.T) {
	for variable := range moved {
		t.Setenv(variable, "")
	}
	base := credentialPaths("/home/me", "/srv/ws")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	up := filepath.Dir(here)
	for _, c := range []struct {
		name, variable, value string
		want                  []string
	}{
		{"the root folder", "KUBECONFIG", "/", nil},
		{"a folder above the home folder", "KUBECONFIG", "/home", nil},
		{"the home folder", "KUBECONFIG", "/home/me", nil},
		{"nothing", "KUBECONFIG", "", nil},
		{"two files", "KUBECONFIG", "/home/me/kube:/srv/kube", []string{"/home/me/kube", "/srv/kube", "/home/me/kube:/srv/kube"}},
		{"a file whose name has a colon", "NETRC", "/srv/a:b", []string{"/srv/a", filepath.Join(here, "b"), "/srv/ws/b", "/srv/a:b"}},
		{"a relative file", "NETRC", "secret", []string{filepath.Join(here, "secret"), "/srv/ws/secret"}},
		{"a relative file above", "KUBECONFIG", "../k", []string{filepath.Join(up, "k"), "/srv/k"}},
		{"relative files of a list", "KUBECONFIG", "../k:/srv/kube", []string{filepath.Join(up, "k"), "/srv/k", "/srv/kube", filepath.Join(up, "k:/srv/kube"), "/srv/k:/srv/kube"}},
		{"this folder", "GH_CONFIG_DIR", ".", nil},
		{"a folder above this one", "GH_CONFIG_DIR", "..", nil},
		{"a file of the home folder", "PGPASSFILE", "~/pass", []string{"/home/me/pass"}},
		{"the home folder by ~", "PGPASSFILE", "~", nil},
		{"files in a relative folder", "HF_HOME", "hf", []string{filepath.Join(here, "hf/token"), filepath.Join(here, "hf/stored_tokens"), "/srv/ws/hf/token", "/srv/ws/hf/stored_tokens"}},
		{"npm's other spelling", "npm_config_userconfig", "/srv/npmrc", []string{"/srv/npmrc"}},
		{"a mixed spelling", "npm_config_USERCONFIG", "/srv/npmrc", []string{"/srv/npmrc"}},
		{"another spelling that no program reads", "kubeconfig", "/srv/kube", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(c.variable, c.value)
			got := slices.DeleteFunc(credentialPaths("/home/me", "/srv/ws"), func(name string) bool { return slices.Contains(base, name) })
			got = slices.DeleteFunc(got, func(name string) bool { return passwdHome() != "" && strings.HasPrefix(name, passwdHome()+"/pass") })
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("%s=%s: hides %q, want %q", c.variable, c.value, got, c.want)
			}
		})
	}
}

// A command does not read what a relative variable names, seen from its folder.
func TestRelativeCredentialsAreHidden(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			dir := besidetmp.Dir(t)
			ws := filepath.Join(dir, "ws")
			err := os.Mkdir(ws, 0o700)
			for _, name := range []string{"k", "ws/netrc", "npmrc", "other"} {
				err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte("content of "+name+"\n"), 0o600))
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv("KUBECONFIG", "../k")
			t.Setenv("NETRC", "netrc")
			t.Setenv("npm_config_userconfig", filepath.Join(dir, "npmrc"))
			p := profile(t, "command")
			if _, err := p.Work(ws); err != nil {
				t.Fatal(err)
			}
			got, err := b.start(t, p, ws, nil, "sh", "-c", "cat ../k netrc ../npmrc ../other 2>/dev/null; true")
			if want := "content of other\n"; err != nil || got.out != want {
				t.Errorf("a command reads %q, %v; want %q", got.out, err, want)
			}
		})
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
