package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/certs/certstest"
	"github.com/yaya-ai/yaya/internal/freeport"
	"github.com/yaya-ai/yaya/internal/sandbox"
)

// filesOutside configures a guarded server by a link, c/mcp.json, that leads through
// another one to dot/yaya/mcp.json, and has settings, servers and keys beside.
func filesOutside(t *testing.T, backend string) *box {
	t.Helper()
	b := shellServers(t)
	servers, err := os.ReadFile(filepath.Join(b.dir, "c/mcp.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"dot/yaya/mcp.json": string(servers), "dot/other": "old", "k/conf.toml": fmt.Sprintf("[sandbox]\nbackend = %q\n", backend),
		"k/servers.json": string(servers), "phrase/words": "correct horse battery staple", "d2/a": "old",
	} {
		name = filepath.Join(b.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"way": "dot/yaya", "k/link.toml": "conf.toml"} {
		if err := os.Symlink(to, filepath.Join(b.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	mcp := filepath.Join(b.dir, "c/mcp.json")
	if err := errors.Join(os.Remove(mcp), os.Symlink("../way/mcp.json", mcp)); err != nil {
		t.Fatal(err)
	}
	return b
}

// F3: no guarded server reads or changes the files that yaya is configured by, wherever
// they lie, nor puts others in their place. The files beside them are the user's.
func TestGuardedLeavesYayasFiles(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{sandbox.Namespaces, sandbox.Landlock} {
		for _, c := range []struct {
			name   string
			serve  []string // %s is the folder of the box
			files  []string // that are hidden
			links  []string
			public string // may be read
			moved  []string
		}{
			{name: "linked servers", serve: []string{"--config", "%s/k/link.toml"}, files: []string{"dot/yaya/mcp.json", "k/conf.toml"}, links: []string{"way", "k/link.toml"}, moved: []string{"dot/yaya", "dot", "k"}},
			{name: "named servers and keys", serve: []string{"--config", "%s/k/conf.toml", "--mcp-config", "%s/k/servers.json", "--tls-cert", "%s/t/cert.pem", "--tls-key", "%s/t/key.pem", "--host", "yaya.example"}, files: []string{"k/servers.json", "k/conf.toml", "t/key.pem"}, public: "t/cert.pem", moved: []string{"k", "t"}},
		} {
			t.Run(backend+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				b := filesOutside(t, backend)
				flags := []string{}
				if c.public != "" {
					if err := os.Mkdir(filepath.Join(b.dir, "t"), 0o700); err != nil {
						t.Fatal(err)
					}
					certstest.SelfSigned(t, filepath.Join(b.dir, "t"), 1)
					flags = append(flags, "--listen", freeport.Addr(t), "--local", b.addr)
				}
				for _, f := range c.serve {
					flags = append(flags, strings.ReplaceAll(f, "%s", b.dir))
				}
				b.serve(flags...)
				b.boxedAs("it runs", "ready 0 "+backend, "own")
				before := map[string]string{}
				for _, name := range append(append([]string{}, c.files...), "t/cert.pem") {
					data, _ := os.ReadFile(filepath.Join(b.dir, name)) //nolint:forbidigo // a test's own
					before[name] = string(data)
				}
				refused := func(script string) {
					t.Helper()
					if said, _ := b.sh("own", "cd "+b.dir+"; ("+script+") 2>&1 && echo DONE || echo REFUSED"); !strings.Contains(said, "REFUSED") {
						t.Errorf("%s: got %q, want it refused", script, said)
					}
				}
				for _, name := range c.files {
					refused("cat " + name)
				}
				for _, name := range append(append(append([]string{}, c.files...), c.links...), c.public) {
					if name == "" {
						continue
					}
					if name != "way" { // a folder
						refused("echo bad >>" + name)
					}
					refused("rm " + name + " </dev/null")
					refused("mv " + name + " " + name + ".away")
					refused("echo bad >d2/a && mv -fT d2/a " + name)
					refused("ln -sfn /tmp/elsewhere " + name)
				}
				for _, name := range c.moved {
					refused("mv " + name + " away")
				}
				if said, _ := b.sh("own", "cd "+b.dir+"; echo new >d2/a && echo new >dot/other && cat d2/a dot/other"); strings.TrimSpace(said) != "new\nnew" {
					t.Errorf("beside them: got %q, want that it works", said)
				}
				for name, was := range before {
					if data, _ := os.ReadFile(filepath.Join(b.dir, name)); string(data) != was { //nolint:forbidigo // a test's own
						t.Errorf("%s is %q, want it as it was: %q", name, data, was)
					}
				}
				if c.public != "" && backend == sandbox.Namespaces {
					if said, _ := b.sh("own", "cat "+filepath.Join(b.dir, c.public)); !strings.Contains(said, "BEGIN CERTIFICATE") {
						t.Errorf("the certificate: got %q, want that it can be read", said)
					}
				}
			})
		}
	}
}

// F3: a configuration folder that nobody has made is not for a server to make.
func TestGuardedMakesNoConfiguration(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{sandbox.Namespaces, sandbox.Landlock} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			b := filesOutside(t, backend)
			if err := os.RemoveAll(filepath.Join(b.dir, "c")); err != nil {
				t.Fatal(err)
			}
			b.serve("--config", filepath.Join(b.dir, "k/conf.toml"), "--mcp-config", filepath.Join(b.dir, "k/servers.json"))
			b.boxedAs("it runs", "ready 0 "+backend, "own")
			said, _ := b.sh("own", "cd "+b.dir+"; mkdir -p c; echo {} >c/mcp.json")
			if _, err := os.Lstat(filepath.Join(b.dir, "c/mcp.json")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("c/mcp.json: got %v (%s), want none", err, said)
			}
		})
	}
}

// F8: a sandbox that is made beside the running yaya keeps from its files, too, which its
// own flags and environment name.
func TestSandboxRunAsksForYayasFiles(t *testing.T) {
	t.Parallel()
	b := filesOutside(t, "auto")
	b.env = append(b.env, "YAYA_PASSPHRASE_FILE="+filepath.Join(b.dir, "phrase/words"))
	b.serve("--mcp-config", filepath.Join(b.dir, "k/servers.json"))
	for _, name := range []string{"phrase/words", "k/servers.json", "dot/yaya/mcp.json"} {
		cmd := exec.CommandContext(t.Context(), b.bin, b.args("sandbox", "run", "--profile", "guarded", "--", "sh", "-c", "cat "+name+" || echo hidden; cat d2/a")...)
		cmd.Dir, cmd.Env = b.dir, append(os.Environ(), "HOME="+b.dir, "XDG_CACHE_HOME="+filepath.Join(b.dir, "cache"))
		if out, err := cmd.Output(); err != nil || string(out) != "hidden\nold" {
			t.Errorf("%s: got %q, %v; want it hidden, and d2/a not", name, out, err)
		}
	}
}

// A link in the configuration folder that leads nowhere is refused: a server would make
// the file that yaya is configured by.
func TestLinksToNothingAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"mcp.json", "config.toml", "secrets.key"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := shellServers(t)
			link := filepath.Join(b.dir, "c", name)
			if err := errors.Join(os.RemoveAll(link), os.MkdirAll(filepath.Join(b.dir, "dot"), 0o700), os.Symlink("../dot/"+name, link)); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"serve", "--no-open", "--listen", b.addr}, {"mcp", "tools"}, {"sandbox", "run", "--profile", "guarded", "--", "true"}} {
				out, err := b.run(args...)
				if err == nil || !strings.Contains(out, link+" is a link to ../dot/"+name+", which is not there") {
					t.Errorf("yaya %s: got %q, %v; want an error that names the link", strings.Join(args, " "), out, err)
				}
			}
		})
	}
}

// A sandbox that is made where no yaya has run leaves no way to configure the first one.
func TestSandboxRunMakesNoConfiguration(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{sandbox.Namespaces, sandbox.Landlock} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			b := filesOutside(t, backend)
			if err := os.RemoveAll(filepath.Join(b.dir, "c")); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), b.bin, b.args("sandbox", "run", "--config", filepath.Join(b.dir, "k/conf.toml"), "--profile", "guarded", "--", "sh", "-c", "mkdir -p c; echo {} >c/mcp.json; echo ran")...)
			cmd.Dir, cmd.Env = b.dir, append(os.Environ(), "HOME="+b.dir, "XDG_CACHE_HOME="+filepath.Join(b.dir, "cache"))
			out, err := cmd.Output()
			if err != nil || !strings.HasSuffix(string(out), "ran\n") {
				t.Fatalf("got %q, %v; want that it runs", out, err)
			}
			if _, err := os.Lstat(filepath.Join(b.dir, "c/mcp.json")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("c/mcp.json: got %v, want none", err)
			}
		})
	}
}
