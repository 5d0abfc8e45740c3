package fetch

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"
)

// folder makes a folder with these files.
func (w *world) folder(files map[string]string) string {
	w.t.Helper()
	dir := w.t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil { //nolint:gosec // some are programs
			w.t.Fatal(err)
		}
	}
	return dir
}

// trap makes a Git repository that runs a command when a client installs it, or what it depends on.
func (w *world) trap(command string) string {
	w.t.Helper()
	dir := w.folder(map[string]string{
		".npmrc":       "git=./evil.sh\nallow-git=all\nignore-scripts=false\n",
		"evil.sh":      "#!/bin/sh\n" + command + "\nexit 1\n",
		"package.json": fmt.Sprintf(`{"name":"weather","version":"1.0.0","scripts":{"prepare":%[1]q,"install":%[1]q},"dependencies":{"other":"git+file:///nonexistent/other"}}`, command),
		"plugin.toml":  description,
	})
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "-A"}, {"-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "--quiet", "-m", "x"}} {
		cmd := exec.CommandContext(w.t.Context(), "git", args...)
		cmd.Dir = dir
		cmd.Env = w.c.Env
		if said, err := cmd.CombinedOutput(); err != nil {
			w.t.Fatalf("git %v: %v: %s", args, err, said)
		}
	}
	return dir
}

// Y-103: a registry of npm that names something else than a packed file has nothing run or
// copied, be it at once or after yaya has looked.
func TestNPMNamesNoFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		address func(trap, folder string) string
	}{
		{"a repository", func(trap, _ string) string { return "git+file://" + trap }},
		{"a repository on a server", func(_, _ string) string { return "git+https://127.0.0.1:1/x/y.git" }},
		{"a folder", func(_, folder string) string { return "file://" + folder }},
		{"a path", func(_, folder string) string { return folder }},
		{"nothing", func(_, _ string) string { return "" }},
		{"another package", func(_, _ string) string { return "npm:other@1.0.0" }},
	} {
		for _, first := range []string{"at once", "later"} {
			t.Run(c.name+" "+first, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, "npm", "git")
				command, check := w.marks()
				trap := w.trap(command)
				folder := w.folder(map[string]string{"package.json": `{"name":"weather","version":"1.0.0"}`, "plugin.toml": description})
				good := tgz(t, plugin("package/", nil))
				var asked atomic.Int32
				var url string
				url = w.serve(func(rw http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/weather" {
						_, _ = rw.Write(good)
						return
					}
					address := c.address(trap, folder)
					if first == "later" && asked.Add(1) == 1 {
						address = url + "/weather.tgz"
					}
					_ = json.NewEncoder(rw).Encode(map[string]any{"name": "weather", "dist-tags": map[string]string{"latest": "1.0.0"}, "versions": map[string]any{
						"1.0.0": map[string]any{"name": "weather", "version": "1.0.0", "dist": map[string]string{"tarball": address}},
					}})
				})
				w.set("npm_config_registry", url)
				if first == "at once" {
					w.refused("npm:weather", "is not the address of a file")
				} else if f, err := w.fetch("npm:weather"); err == nil {
					t.Errorf("Fetch() = %+v, want an error", f)
				}
				check()
			})
		}
	}
}

// Y-103: clients get settings that hold them to packed files. Those for npm hold an older one, which
// knows no --allow-git, and the one that it starts in a repository.
func TestClientsFindNoGit(t *testing.T) {
	t.Parallel()
	for client, c := range map[string]struct {
		source string
		want   []string
	}{
		"npm":     {"npm:weather", []string{"\nnpm_config_git=/nonexistent/git\n", "\nnpm_config_ignore_scripts=true\n", "\nGIT_ALLOW_PROTOCOL=\n", " --git=/nonexistent/git ", " --ignore-scripts ", " --allow-git=none "}},
		"python3": {"pypi:weather", []string{"\nGIT_ALLOW_PROTOCOL=\n", " --only-binary=:all: "}},
	} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			seen := filepath.Join(t.TempDir(), "seen")
			w.set("PATH", w.folder(map[string]string{client: "#!/bin/sh\nenv > " + seen + "\necho \"$@\" >> " + seen + "\nexit 1\n"})+":/usr/bin:/bin")
			w.set("npm_config_git", "/usr/bin/git")
			w.fails(c.source, client+" failed")
			got, err := os.ReadFile(seen)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains("\n"+string(got), want) {
					t.Errorf("%s gets\n%s\nwant %q in it", client, got, strings.TrimSpace(want))
				}
			}
		})
	}
}

// The error of a client that says much has its first and its last words, and is short.
func TestLongFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	noise := "for i in 1 2 3 4 5 6 7 8 9; do echo 'a warning with many words that nobody needs \u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc' >&2; done\n"
	w.set("PATH", w.folder(map[string]string{
		"npm":     "#!/bin/sh\necho 'FIRST: the reason' >&2\n" + noise + "echo 'LAST: the reason' >&2\nexit 1\n",
		"python3": "#!/bin/sh\necho 'ERROR: No matching distribution found' >&2\n" + noise + "exit 1\n",
	})+":/usr/bin:/bin")
	_, err := w.fetch("npm:weather")
	if text := fmt.Sprint(err); len(text) > 450 || !strings.Contains(text, "FIRST: the reason") || !strings.HasSuffix(text, "LAST: the reason") || !utf8.ValidString(text) {
		t.Errorf("Fetch() = %q (%d bytes), want the first and the last line in at most 450 bytes", text, len(text))
	}
	w.fails("pypi:weather", "wheels only")
}
