package conform

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/kernel/tool"
)

// blocks returns the code of a language in docs/PLUGINS.md.
func blocks(t *testing.T, mark string) (out []string) {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join(root, "docs", "PLUGINS.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(doc), "\n```"+mark+"\n")
	for found {
		var code string
		code, rest, _ = strings.Cut(rest, "\n```\n")
		out = append(out, code+"\n")
		_, rest, found = strings.Cut(rest, "\n```"+mark+"\n")
	}
	return out
}

// The plugins of docs/PLUGINS.md answer, and the tests beside them pass.
func TestDocumentedPlugins(t *testing.T) {
	if testing.Short() {
		t.Skip("-short starts no other programs")
	}
	for _, c := range []struct {
		mark, file, run string
		language        *language
		test            string
		args            []string
	}{
		{"python", "main.py", `["python3", "main.py"]`, &python, "test_main.py", []string{"-B", "-m", "unittest", "test_main"}},
		{"js", "main.mjs", `["node", "main.mjs"]`, &javaScript, "main.test.mjs", []string{"--test", "main.test.mjs"}},
		{"go", "main.go", `["./weather"]`, nil, "", nil},
	} {
		t.Run(c.mark, func(t *testing.T) {
			t.Parallel()
			code := blocks(t, c.mark)
			files := t.TempDir()
			write := func(name, text string) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(files, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("plugin.toml", fmt.Sprintf("name = \"weather\"\nversion = \"1.0.0\"\ncategory = \"tool\"\nrun = %s\n", c.run))
			write(c.file, code[0])
			var folder string
			if c.language == nil {
				out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(files, "weather"), filepath.Join(files, c.file)).CombinedOutput() //nolint:gosec // its own files
				real, linkErr := filepath.EvalSymlinks(files)
				if err := errors.Join(err, linkErr); err != nil {
					t.Fatalf("go build: %v\n%s", err, out)
				}
				folder = real
			} else {
				c.language.need(t)
				write(c.test, code[1])
				folder = c.language.bundle(t, files)
				cmd := exec.CommandContext(t.Context(), c.language.program, c.args...) //nolint:gosec // one of two
				cmd.Dir = folder
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("the documented test: got %v, want no error:\n%s", err, out)
				}
			}
			h := newHouse(t, nil)
			h.load(folder)
			call := tool.Call{ID: "c1", Name: "forecast", Args: []byte(`{"place":"Oslo"}`), SessionID: "s1", Origin: tool.OriginCLI, Caller: tool.Caller{Principal: "owner"}}
			if res := h.Dispatch.Call(t.Context(), h.Tools.Snapshot(), call); !res.OK || res.Text() != "Rain in Oslo" {
				t.Errorf("forecast = %+v, want %q", res, "Rain in Oslo")
			}
		})
	}
}
