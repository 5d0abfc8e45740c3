package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shared are files that the user's package managers run later, outside any sandbox.
var shared = []string{
	".npm/_npx/0f/node_modules/tool/index.js", ".cache/uv/archive-v0/x/tool.py", ".cache/pip/wheels/x.whl", ".cache/go-build/00/x-d", "go/pkg/mod/a.example@v1.0.0/a.go",
	".cargo/registry/src/a/lib.rs", ".cargo/bin/tool", ".local/share/uv/tools/tool/bin/tool", ".local/bin/tool", ".bun/install/cache/a/index.js", ".bashrc", ".profile", ".gitconfig",
}

// A program in a sandbox that changes everything in caches changes no program that
// runs outside or in another sandbox.
func TestPoisonedCaches(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		for _, name := range []string{"server", "command", "check", "plugin", "browser"} {
			t.Run(backend+"/"+name, func(t *testing.T) {
				b := needs(t, backend)
				p := newPlace(t)
				b.Own = []string{p.own}
				other := p.dir + "/caches/other/npm/_npx/0f/index.js"
				targets := []string{other}
				for _, s := range shared {
					targets = append(targets, filepath.Join(p.home, s))
				}
				for _, at := range targets {
					if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte("console.log('original')"), 0o600)); err != nil {
						t.Fatal(err)
					}
				}
				before, theirs := contents(t, p.home), contents(t, p.dir+"/caches/other")
				pol := p.policy(t, name)
				pol.Cache = p.dir + "/caches/mine"
				// As a program does that looks for caches, by their names and by the environment.
				script := `for f in "$@" $npm_config_cache/_npx/0f/index.js $UV_CACHE_DIR/x $GOCACHE/x; do mkdir -p "${f%/*}"; chmod u+w "$f" "${f%/*}"; echo 'console.log("poisoned")' > "$f"; rm -f "$f.gone"; ln -s /bin/sh "$f.link"; done 2>/dev/null; test -s "$npm_config_cache/_npx/0f/index.js" && echo has a cache`
				got, err := b.start(t, pol, p.ws, nil, append([]string{"sh", "-c", script, "sh"}, targets...)...)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(got.out, "has a cache") {
					t.Errorf("the program has no cache of its own: %q", got.out)
				}
				for top, want := range map[string]string{p.home: before, p.dir + "/caches/other": theirs} {
					if got := contents(t, top); got != want {
						t.Errorf("%s after the sandbox:\n%swant:\n%s", top, got, want)
					}
				}
				if data, err := os.ReadFile(pol.Cache + "/npm/_npx/0f/index.js"); err != nil || !strings.Contains(string(data), "poisoned") {
					t.Errorf("its own cache holds %q, %v; want what it wrote", data, err)
				}
			})
		}
	}
}

// contents lists a folder, with what its files hold.
func contents(t *testing.T, top string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %s %q\n", strings.TrimPrefix(path, top), d.Type(), data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Outside, the real npx runs the same program as before a sandboxed npx was told to
// change it.
func TestPoisonedNpx(t *testing.T) {
	if _, err := exec.LookPath("npx"); err != nil {
		t.Skip(err)
	}
	b := needs(t, Namespaces)
	p := newPlace(t)
	pkg := p.dir + "/pkg"
	tool := pkg + "/index.js"
	for name, data := range map[string]string{tool: "#!/usr/bin/env node\nconsole.log('original')\n", pkg + "/package.json": `{"name":"tool","version":"1.0.0","bin":"index.js"}`} {
		if err := errors.Join(os.MkdirAll(pkg, 0o700), os.WriteFile(name, []byte(data), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	pack := exec.CommandContext(t.Context(), "npm", "pack", "--silent", pkg)
	pack.Dir = p.dir
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("npm pack = %v, want no error: %s", err, out)
	}
	npx := func() string {
		cmd := exec.CommandContext(t.Context(), "npx", "--offline", "-y", "--package", p.dir+"/tool-1.0.0.tgz", "tool")
		cmd.Dir = p.outside
		cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(strings.ToLower(kv), "npm_config_") }), "HOME="+p.home, "npm_config_update_notifier=false")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("npx: %v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if got := npx(); got != "original" {
		t.Fatalf("npx says %q", got)
	}
	found, err := filepath.Glob(p.home + "/.npm/_npx/*/node_modules/tool/index.js")
	if err != nil || len(found) != 1 {
		t.Fatalf("npx keeps its tool at %q, %v", found, err)
	}
	pol := p.policy(t, "command")
	pol.Cache = p.dir + "/caches/mine"
	script := `echo 'console.log("poisoned")' > "$1"; mv "$HOME/.npm" "$HOME/.npm2"; sed -i s/original/poisoned/ "$1"; npx --offline -y --package "$2" tool 2>&1; true`
	got, err := b.start(t, pol, p.ws, []string{"npm_config_update_notifier=false"}, "sh", "-c", script, "sh", found[0], p.dir+"/tool-1.0.0.tgz")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got.out, "original") {
		t.Errorf("npx in the sandbox says %q, want that it works with a cache of its own", got.out)
	}
	if got := npx(); got != "original" {
		t.Errorf("npx outside says %q after the sandbox, want original", got)
	}
}
