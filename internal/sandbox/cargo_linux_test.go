package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
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

// A Cargo home in a sandbox has the packages of the host's, at the same path, including
// later ones; writes there change nothing for the host.
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

// Files that a program in a sandbox puts into its Cargo home cannot lead yaya
// elsewhere or break a later start.
func TestHostileHomeOfCargo(t *testing.T) {
	b := needs(t, Namespaces)
	for name, plant := range map[string]string{
		"links":    `rm -rf ~/.cargo/registry ~/.cargo/git; for n in registry git .host env; do rm -rf ~/.cargo/$n || true; ln -s "$1" ~/.cargo/$n || true; done`,
		"files":    `rm -rf ~/.cargo/registry ~/.cargo/git; touch ~/.cargo/registry ~/.cargo/git; mkdir ~/.cargo/env; touch ~/.cargo/env/x`,
		"deep":     `rm -rf ~/.cargo/registry/*; mkdir -p ~/.cargo/registry/index; ln -s "$1" ~/.cargo/registry/cache; ln -s "$1" ~/.cargo/registry/index/r`,
		"pipes":    `cd ~/.cargo; mkfifo .seeded; rm -rf registry/cache; mkfifo registry/cache; rm registry/index/r/.cache/a/a; mkfifo registry/index/r/.cache/a/a`,
		"occupied": `cd ~/.cargo; rm registry/index/r/.cache/a/a; mkdir registry/index/r/.cache/a/a`,
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
			for _, name := range []string{"env", "registry/cache/r/new-1.0.0.crate"} { // the host has fetched something
				if err := os.WriteFile(host+"/"+name, []byte("of the host"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			home := contents(t, p.home)
			run("grep -q host ~/.cargo/env")
			if now := contents(t, p.outside) + contents(t, p.home); now != before+home {
				t.Errorf("outside after the start:\n%swant:\n%s", now, before+home)
			}
		})
	}
}

// A pipe that a program holds open where something of yaya's may be looked for keeps no
// later start waiting.
func TestPipesInHomeOfCargo(t *testing.T) {
	b := needs(t, Namespaces)
	p := newPlace(t)
	b.Own = []string{p.own}
	cargoHost(t, p.home)
	if err := os.WriteFile(p.ws+"/Cargo.toml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(script string) {
		t.Helper()
		pol := p.policy(t, "command")
		pol.Cache = p.dir + "/cache"
		if got, err := b.start(t, pol, p.ws, nil, "sh", "-c", script); err != nil || got.code != 0 {
			t.Errorf("%s: code %d, output %q, %v", script, got.code, got.out, err)
		}
	}
	run(`cd ~/.cargo; rm -f .seeded; mkfifo .seeded`)
	held, err := os.OpenFile(p.dir+"/cache-cargo/.seeded", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var waited atomic.Bool
	release := time.AfterFunc(20*time.Second, func() { waited.Store(true); _ = held.Close() })
	run("true")
	if release.Stop() {
		_ = held.Close()
	}
	if waited.Load() {
		t.Error("the start waited until the pipe was closed")
	}
}

// Starts at the same time leave whole files, and what was not put in its place is tried
// again.
func TestSeedOfCargoIsWhole(t *testing.T) {
	home, own := t.TempDir(), t.TempDir()
	host := cargoHost(t, home)
	index := host + "/registry/index/r/.cache/a/a"
	if err := os.WriteFile(index, []byte(strings.Repeat("of the host\n", 10_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(own)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	stamps := t.TempDir()
	seed := func() *cargoSeed { return &cargoSeed{host: host, own: root, seeded: stamps + "/seeded"} }
	stamp := seed().stamp()
	at := own + "/registry/index/r/.cache/a/a"
	old := time.Now().Add(-2 * partAge)
	if err := errors.Join(os.MkdirAll(at+"/x", 0o700), os.WriteFile(own+"/"+partPrefix+"old", nil, 0o600), os.Chtimes(own+"/"+partPrefix+"old", old, old), os.Chtimes(at, old, old)); err != nil {
		t.Fatal(err)
	}
	if err := seed().all(stamp); err != nil || seed().has(stamp) {
		t.Errorf("with a file that could not be put in its place: %v, seeded %v", err, seed().has(stamp))
	}
	if err := os.RemoveAll(at); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	// Both begin, and the second is whole before the first goes on.
	first, second := seed(), seed()
	pipe, rest := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		first.write("registry/index/r/.cache/a/a", pipe)
	}()
	if _, err := rest.Write(want[:100]); err != nil {
		t.Fatal(err)
	}
	second.write("registry/index/r/.cache/a/a", bytes.NewReader(want))
	if got, err := os.ReadFile(at); err != nil || !bytes.Equal(got, want) {
		t.Errorf("while another start writes: %d bytes, %v; want %d", len(got), err, len(want))
	}
	if _, err := rest.Write(want[100:]); err != nil {
		t.Errorf("Write of the rest = %v, want no error", err)
	}
	_ = rest.Close()
	<-done
	if got, err := os.ReadFile(at); err != nil || !bytes.Equal(got, want) || first.lacks || second.lacks {
		t.Errorf("after both: %d bytes, %v; want %d; lacks %v, %v", len(got), err, len(want), first.lacks, second.lacks)
	}
	if err := seed().all(stamp); err != nil || !seed().has(stamp) {
		t.Errorf("with all in its place: %v, seeded %v", err, seed().has(stamp))
	}
	if left, err := filepath.Glob(own + "/" + partPrefix + "*"); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
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

// Starts at the same time make the same places to mount at, while a program puts pipes
// there: none waits for it.
func TestMountpointsAtTheSameTime(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	stop := make(chan struct{})
	var program, starts sync.WaitGroup
	program.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = syscall.Mkfifo(dir+"/file", 0o600)
				_ = os.Remove(dir + "/file")
			}
		}
	})
	for range 4 {
		starts.Go(func() {
			for i := range 500 {
				_ = mountpoint(root, "file", false) // the program may win each time
				if err := mountpoint(root, fmt.Sprint("folder", i), true); err != nil {
					t.Errorf("mountpoint(folder%d) = %v, want nil", i, err)
				}
				if err := mountpoint(root, fmt.Sprint("other", i), false); err != nil {
					t.Errorf("mountpoint(other%d) = %v, want nil", i, err)
				}
			}
		})
	}
	starts.Wait()
	close(stop)
	program.Wait()
}
