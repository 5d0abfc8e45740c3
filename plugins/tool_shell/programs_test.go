//go:build unix

package tool_shell_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/racing"
)

// Programs that agents run work in the sandbox of a command without a setting, and
// again in that of a check where they need no network.
func TestProgramsOfAgents(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	backend := works(t)[0]
	for _, tt := range []struct {
		program string
		files   map[string]string
		command string
		want    string
		check   string
	}{
		{"git", nil, "git init -q . && git config user.name x && git config user.email x@example.com && git add -A && git commit -q --allow-empty -m first && git log --format=%s", "first", "git status --short && git log --format=%s"},
		{"make", map[string]string{"Makefile": "test: a\n\t@cat a\na:\n\t@echo made >a\n"}, "make -s -j2 test", "made", "make -s test"},
		{"npm", map[string]string{
			"package.json":     `{"name":"a","version":"1.0.0","scripts":{"test":"node -p 'require(\"b\")'"}}`,
			"lib/package.json": `{"name":"b","version":"1.0.0","main":"b.js"}`, "lib/b.js": "module.exports = 6 * 7",
		}, "npm install --silent --no-audit --no-fund ./lib && npm test --silent", "42", "npm test --silent"},
		{"python3", map[string]string{"a.py": "import tempfile, multiprocessing, subprocess\ntempfile.mkdtemp(); multiprocessing.Lock()\nprint('it', subprocess.check_output(['echo', 'works'], text=True))\n"}, "python3 a.py", "it works", "python3 a.py"},
		// TestGoTestOfAgents has go test.
		{"go", map[string]string{"go.mod": "module a\n\ngo 1.24\n", "a.go": "package main\n\nfunc main() { println(\"it works\") }\n"}, "go run .", "it works", "go run . && go vet ./..."},
		{"cargo", map[string]string{"Cargo.toml": "[package]\nname=\"a\"\nversion=\"0.1.0\"\nedition=\"2021\"\n", "src/main.rs": "fn main(){println!(\"it works\")}\n"}, "cargo run -q", "it works", "cargo run -q --offline"},
	} {
		t.Run(tt.program, func(t *testing.T) {
			path, err := exec.LookPath(tt.program)
			if err == nil {
				err = exec.CommandContext(t.Context(), path, "--version").Run()
			}
			if err != nil && tt.program != "go" {
				t.Skip(err)
			}
			if tt.program == "python3" {
				wholeSandbox(t) // its locks need /dev/shm
			}
			boxed(t, backend).works(tt.files, tt.command, tt.want, tt.check)
		})
	}
}

// go test compiles half of the standard library first, which is in no cache here.
func TestGoTestOfAgents(t *testing.T) {
	if testing.Short() || racing.Enabled {
		t.Skip("it takes minutes of a busy machine: make scale runs it")
	}
	w := boxed(t, works(t)[0])
	w.c.config["timeout"] = `"15m"`
	w.works(map[string]string{"go.mod": "module a\n\ngo 1.24\n", "a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n"}, "go test ./...", "ok", "go test -count=1 ./...")
}

// works runs a command on files in the sandbox, and then another one as their check.
func (w *world) works(files map[string]string, command, want, check string) {
	w.t.Helper()
	for name, text := range files {
		must(w.t, os.MkdirAll(filepath.Dir(filepath.Join(w.dir, name)), 0o755))
		w.write(name, text)
	}
	if res := w.shell(command); !res.OK || !strings.Contains(res.Text(), want) {
		w.t.Errorf("%s: got %q, want %q", command, res.Text(), want)
	}
	w.c.config["verify"] = `["` + check + `"]`
	w.agree()
	if res, err := w.call(w.t.Context(), "verify", nil, nil); err != nil || !res.OK {
		w.t.Errorf("%s as a check: got %q, %v", check, res.Text(), err)
	}
}
