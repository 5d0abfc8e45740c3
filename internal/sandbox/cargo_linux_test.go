package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// cargoHost makes a home of Cargo that has fetched something.
func cargoHost(t *testing.T, home string) string {
	t.Helper()
	host := home + "/.cargo"
	for _, name := range []string{"registry/cache/r/a-1.0.0.crate", "registry/cache/r/b-1.0.0.crate", "registry/index/r/.cache/a/a", "git/db/d/HEAD", "git/checkouts/d/1/f", "bin/tool", "config.toml"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(host+"/"+name), 0o700), os.WriteFile(host+"/"+name, []byte("of the host"), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	return host
}

// A home of Cargo in a sandbox has what the host's has, at the same place, also what the
// host fetches later; and what is written there changes nothing for the host.
func TestHomeOfCargo(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			p := newPlace(t)
			b.Own = []string{p.own}
			host := cargoHost(t, p.home)
			if err := os.WriteFile(p.ws+"/Cargo.toml", nil, 0o600); err != nil {
				t.Fatal(err)
			}
			run := func(script string) {
				t.Helper()
				before := contents(t, p.home)
				pol := p.policy(t, "command")
				pol.Cache = p.dir + "/cache"
				got, err := b.start(t, pol, p.ws, nil, "sh", "-ec", script)
				if err != nil || got.code != 0 {
					t.Errorf("%s: code %d, output %q, %v", script, got.code, got.out, err)
				}
				if now := contents(t, p.home); now != before {
					t.Errorf("the home folder after %s:\n%swant:\n%s", script, now, before)
				}
			}
			run(`cd ~/.cargo; for f in registry/cache/r/a-1.0.0.crate registry/index/r/.cache/a/a git/db/d/HEAD bin/tool config.toml; do grep -q "of the host" $f; done
				test ! -e registry/src; mkdir registry/src; echo mine >registry/src/x; ! echo x >registry/cache/r/a-1.0.0.crate; rm registry/cache/r/a-1.0.0.crate; echo mine >registry/index/r/.cache/a/a; ! touch bin/x config.toml; touch .package-cache`)
			at := host + "/registry/cache/r/"
			if err := errors.Join(os.Remove(at+"b-1.0.0.crate"), os.WriteFile(at+"c-1.0.0.crate", []byte("of the host"), 0o600)); err != nil {
				t.Fatal(err)
			}
			run(`cd ~/.cargo; grep -q mine registry/src/x; grep -q mine registry/index/r/.cache/a/a; grep -q "of the host" registry/cache/r/c-1.0.0.crate; test ! -L registry/cache/r/b-1.0.0.crate`)
		})
	}
}

// What a program in a sandbox puts into its home of Cargo leads yaya nowhere else, and
// ends no later start.
func TestHostileHomeOfCargo(t *testing.T) {
	b := needs(t, Namespaces)
	for name, plant := range map[string]string{
		"links":    `rm -rf ~/.cargo/registry ~/.cargo/git; for n in registry git .host env .seeded; do rm -rf ~/.cargo/$n || true; ln -s "$1" ~/.cargo/$n || true; done`,
		"files":    `rm -rf ~/.cargo/registry ~/.cargo/git ~/.cargo/.seeded; touch ~/.cargo/registry ~/.cargo/git; mkdir ~/.cargo/env ~/.cargo/.seeded; touch ~/.cargo/env/x`,
		"deep":     `rm -rf ~/.cargo/registry/* ~/.cargo/.seeded; mkdir -p ~/.cargo/registry/index; ln -s "$1" ~/.cargo/registry/cache; ln -s "$1" ~/.cargo/registry/index/r`,
		"pipes":    `cd ~/.cargo; rm .seeded; mkfifo .seeded; rm -rf registry/cache; mkfifo registry/cache; rm registry/index/r/.cache/a/a; mkfifo registry/index/r/.cache/a/a`,
		"occupied": `cd ~/.cargo; rm .seeded; mkdir -p registry/index/r/.cache/a/.part-a/x; rm registry/index/r/.cache/a/a; mkdir registry/index/r/.cache/a/a`,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			b.Own = []string{p.own}
			host := cargoHost(t, p.home)
			run := func(script string) {
				t.Helper()
				pol := p.policy(t, "command")
				pol.Cache = p.dir + "/cache"
				if got, err := b.start(t, pol, p.ws, nil, "sh", "-c", script, "sh", p.outside); err != nil || got.code != 0 {
					t.Errorf("%s: code %d, output %q, %v", script, got.code, got.out, err)
				}
			}
			if err := os.WriteFile(p.ws+"/Cargo.toml", nil, 0o600); err != nil {
				t.Fatal(err)
			}
			before := contents(t, p.outside)
			run(plant)
			if err := os.WriteFile(host+"/env", []byte("of the host"), 0o600); err != nil {
				t.Fatal(err)
			}
			home := contents(t, p.home)
			run("grep -q host ~/.cargo/env")
			if now := contents(t, p.outside) + contents(t, p.home); now != before+home {
				t.Errorf("outside after the start:\n%swant:\n%s", now, before+home)
			}
		})
	}
}

// Where the host has no home of Cargo, or nothing can be mounted, none is in the way.
func TestNoHomeOfCargo(t *testing.T) {
	for _, c := range []struct {
		backend string
		host    bool
		want    string
	}{{Namespaces, false, "cache/cargo"}, {Landlock, false, "cache/cargo"}, {Landlock, true, ""}} {
		b := needs(t, c.backend)
		p := newPlace(t)
		b.Own = []string{p.own}
		if c.host {
			cargoHost(t, p.home)
		}
		pol := p.policy(t, "check")
		pol.Cache = p.dir + "/cache"
		got, err := b.start(t, pol, p.ws, nil, "sh", "-c", `echo "$CARGO_HOME"; cat ~/.cargo/config.toml; true`)
		want := ""
		if c.want != "" {
			want = p.dir + "/" + c.want
		}
		if err != nil || !strings.HasPrefix(got.out, want+"\n") || strings.Contains(got.out, "of the host") != c.host {
			t.Errorf("%s, with a home %v: output %q, %v; want CARGO_HOME %q", c.backend, c.host, got.out, err, want)
		}
	}
}

// Where there is no manifest, nothing is copied.
func TestSeedOfCargoIsForManifests(t *testing.T) {
	b := needs(t, Namespaces)
	for manifest, want := range map[string]bool{"Cargo.toml": true, "a/b/Cargo.toml": true, "node_modules/a/Cargo.toml": false, "a/b/c/Cargo.toml": false, "other": false} {
		p := newPlace(t)
		b.Own = []string{p.own}
		cargoHost(t, p.home)
		at := filepath.Join(p.ws, manifest)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		pol := p.policy(t, "check")
		pol.Cache = p.dir + "/cache"
		got, err := b.start(t, pol, p.ws, nil, "sh", "-c", "test -s ~/.cargo/registry/cache/r/a-1.0.0.crate")
		if err != nil || (got.code == 0) != want {
			t.Errorf("with %s: code %d, %q, %v; want packages: %v", manifest, got.code, got.out, err, want)
		}
	}
}
