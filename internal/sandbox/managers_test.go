package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// The folders of PATH show the files that programs consist of, and nothing that is
// hidden: neither a folder of credentials beside a bin folder, nor one that was linked
// to.
func TestRuntimes(t *testing.T) {
	top := real(t.TempDir())
	home := filepath.Join(top, "home")
	for _, name := range []string{
		".docker/bin/docker", ".docker/config.json", ".fly/bin/flyctl", ".fly/config.yml", ".pulumi/bin/pulumi", ".pulumi/credentials.json", ".unknown/bin/x", ".unknown/token",
		".cargo/bin/cargo", ".cargo/credentials.toml", ".cargo/registry/a", ".rustup/settings.toml", ".nvm/versions/node/v22/bin/node", ".nvm/versions/node/v22/lib/a", ".pyenv/shims/python", ".pyenv/versions/a",
		".local/bin/x", ".local/share/uv/tools/a", ".local/share/keyrings/k", ".local/share/mise/shims/node", ".local/share/mise/installs/a", "go/bin/x", "go/pkg/a", "bin/x", "notes", "own/bin/yaya", "own/key", "cache/bin/x", "cache/other",
		"venv/pyvenv.cfg", "venv/bin/python", "venv/lib/a", "project/bin/x", "project/secret",
		"../pyenv/shims/python", "../pyenv/libexec/pyenv", "../pyenv/versions/3/bin/python", "../pyenv/versions/3/lib/python3.12/os.py", "../asdf/shims/node", "../asdf/installs/node/22/bin/node",
		"../shims/x", "../beside", "../tool/bin/x", "../tool/token", "lib/node_modules/a", "shims/x", "versions/a",
	} {
		at := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte("x"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(home, ".docker"), filepath.Join(home, "linked")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path    string
		command       string // "" for one of the system
		shown, hidden []string
		named         string // in read, which the user wrote
	}{
		{"a bin folder in credentials", ".docker/bin", "", nil, []string{".docker/config.json", ".docker/bin/docker"}, ""},
		{"and by a link", "linked/bin", "", nil, []string{".docker/config.json", ".docker/bin/docker"}, ""},
		{"one beside a token", ".fly/bin", "", []string{".fly/bin/flyctl"}, []string{".fly/config.yml"}, ""},
		{"another", ".pulumi/bin", "", []string{".pulumi/bin/pulumi"}, []string{".pulumi/credentials.json"}, ""},
		{"one that nobody knows", ".unknown/bin", "", []string{".unknown/bin/x"}, []string{".unknown/token"}, ""},
		{"cargo", ".cargo/bin", "", []string{".cargo/bin/cargo", ".cargo/registry/a", ".rustup/settings.toml"}, []string{".cargo/credentials.toml"}, ""},
		{"the folder of cargo itself", ".cargo", "", nil, []string{".cargo/credentials.toml"}, ""},
		{"a version manager", ".nvm/versions/node/v22/bin", "", []string{".nvm/versions/node/v22/bin/node", ".nvm/versions/node/v22/lib/a"}, nil, ""},
		{"shims", ".pyenv/shims", "", []string{".pyenv/shims/python", ".pyenv/versions/a"}, nil, ""},
		{"mise", ".local/share/mise/shims", "", []string{".local/share/mise/installs/a"}, []string{".local/share/keyrings/k"}, ""},
		{"links of tools", ".local/bin", "", []string{".local/bin/x", ".local/share/uv/tools/a"}, []string{".local/share/keyrings/k"}, ""},
		{"go", "go/bin", "", []string{"go/bin/x"}, []string{"go/pkg/a"}, ""},
		{"the home's bin", "bin", "", []string{"bin/x"}, []string{"notes"}, ""},
		{"the home", "", "", nil, []string{"notes", "bin/x", ".docker/config.json"}, ""},
		{"yaya's own", "own/bin", "", nil, []string{"own/bin/yaya", "own/key"}, ""},
		{"caches of others", "cache/bin", "", nil, []string{"cache/bin/x", "cache/other"}, ""},
		{"what the user names", ".docker/bin", "", []string{".docker/config.json"}, nil, ".docker"},
		{"a program beside a token", "bin", ".fly/bin/flyctl", []string{".fly/bin/flyctl"}, []string{".fly/config.yml"}, ""},
		{"a program that nobody knows", "bin", ".unknown/bin/x", []string{".unknown/bin/x"}, []string{".unknown/token"}, ""},
		{"a program of a project", "bin", "project/bin/x", []string{"project/bin/x"}, []string{"project/secret"}, ""},
		{"a version manager outside the home folder", "../pyenv/shims", "", []string{"../pyenv/shims/python", "../pyenv/libexec/pyenv", "../pyenv/versions/3/bin/python"}, nil, ""},
		{"another", "../asdf/shims", "", []string{"../asdf/installs/node/22/bin/node"}, nil, ""},
		{"one of its versions", "../pyenv/versions/3/bin", "", []string{"../pyenv/versions/3/lib/python3.12/os.py"}, []string{"../pyenv/libexec/pyenv"}, ""},
		{"a program of one", "bin", "../pyenv/shims/python", []string{"../pyenv/libexec/pyenv", "../pyenv/versions/3/bin/python"}, nil, ""},
		{"scripts without versions", "../shims", "", []string{"../shims/x"}, []string{"../beside"}, ""},
		{"a program outside the home folder", "../tool/bin", "", []string{"../tool/bin/x"}, []string{"../tool/token"}, ""},
		{"libraries in the home folder itself", "bin", "", []string{"bin/x"}, []string{"lib/node_modules/a", "notes"}, ""},
		{"versions in the home folder itself", "shims", "", []string{"shims/x"}, []string{"versions/a", "notes"}, ""},
		{"a program of a venv", "bin", "venv/bin/python", []string{"venv/lib/a"}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := profile(t, "server")
			p.Home, p.Hide = home, []string{filepath.Join(home, "cache")}
			for _, name := range Runtimes(home, filepath.Join(home, c.path)) {
				if at, err := Open(name); err == nil {
					p.Runtimes = append(p.Runtimes, at)
				}
			}
			if c.named != "" {
				at, err := Open(filepath.Join(home, c.named))
				if err != nil {
					t.Fatal(err)
				}
				p.Read = append(p.Read, at)
			}
			t.Cleanup(func() { _ = closeAll(p) })
			plan := &inside.Plan{Path: "/bin/sh", Strict: true, Mounts: true}
			if c.command != "" {
				plan.Path = filepath.Join(home, c.command)
			}
			r := &Run{box: &Box{Own: []string{filepath.Join(home, "own")}}, policy: p}
			if err := r.addRules(plan); err != nil {
				t.Fatal(err)
			}
			for want, names := range map[inside.Access][]string{inside.Read: c.shown, inside.Hide: c.hidden} {
				for _, name := range names {
					got := inside.Effective(plan.Rules, filepath.Join(home, name), plan.Otherwise())
					if (got == inside.Read) != (want == inside.Read) {
						t.Errorf("PATH=%s: %s is %v, want %v", c.path, name, got, want)
					}
				}
			}
		})
	}
}
