package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/sandbox"
)

// No program in a sandbox of one yaya reads the keys of another one of the same user, nor
// makes the folders of one that is started without flags.
func TestOtherYayasAreHidden(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{sandbox.Namespaces, sandbox.Landlock} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			b := filesOutside(t, backend)
			second := []string{"--data-dir", filepath.Join(b.dir, "dot/two"), "--config-dir", filepath.Join(b.dir, "dot/conf"), "--config", filepath.Join(b.dir, "k/conf.toml")}
			other := func(args ...string) string {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), b.bin, append(append([]string{}, second...), args...)...)
				cmd.Dir, cmd.Env = b.dir, b.environ()
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("yaya %s: %v, %s", strings.Join(args, " "), err, out)
				}
				return string(out)
			}
			b.serve("--config", filepath.Join(b.dir, "k/conf.toml"))
			b.boxedAs("it runs", "ready 0 "+backend, "own")
			other("token", "create", "one")
			keys, err := os.ReadDir(filepath.Join(b.dir, "dot/two/keys"))
			if err != nil || len(keys) == 0 {
				t.Fatalf("the second yaya has %d keys, %v; want some", len(keys), err)
			}
			key := filepath.Join(b.dir, "dot/two/keys", keys[0].Name())
			b.must("mcp", "restart", "own") // its sandbox is older than the second yaya
			b.boxedAs("it runs again", "ready 0 "+backend, "own")
			refused := func(script string) {
				t.Helper()
				if said, _ := b.sh("own", "cd "+b.dir+"; ("+script+") 2>&1 && echo DONE || echo REFUSED"); !strings.Contains(said, "REFUSED") {
					t.Errorf("%s: got %q, want it refused", script, said)
				}
			}
			refused("cat " + key)
			refused("mv dot/two dot/away")
			refused("echo {} >dot/conf/mcp.json")
			refused("rm -r .local/state/yaya-folders/*.json")
			refused("mkdir -p .config/yaya && echo {} >.config/yaya/mcp.json")
			refused("mkdir -p .local/state/yaya && echo x >.local/state/yaya/x")
			if _, err := os.Lstat(filepath.Join(b.dir, ".config/yaya/mcp.json")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the configuration of a yaya without flags: got %v, want none", err)
			}
			if said, _ := b.sh("own", "cd "+b.dir+"; cat dot/other d2/a"); strings.TrimSpace(said) != "oldold" {
				t.Errorf("beside them: got %q, want that it can be read", said)
			}

			ours, err := os.ReadDir(filepath.Join(b.dir, "d/keys"))
			if err != nil || len(ours) == 0 {
				t.Fatalf("the first yaya has %d keys, %v; want some", len(ours), err)
			}
			script := "cat d/keys/" + ours[0].Name() + " " + key + " 2>/dev/null || echo hidden"
			for _, profile := range []string{"guarded", "check"} {
				args := []string{"sandbox", "run", "--profile", profile}
				if profile == "check" {
					args = append(args, "--write", filepath.Join(b.dir, "d2"))
				}
				if got := other(append(args, "--", "sh", "-c", script)...); !strings.HasSuffix(got, "hidden\n") || strings.Count(got, "\n") != 1 {
					t.Errorf("yaya sandbox run --profile %s of the second one: got %q, want both keys hidden", profile, got)
				}
			}
		})
	}
}
