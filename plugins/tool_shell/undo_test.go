//go:build unix

package tool_shell_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/yaya-ai/yaya/internal/workspace"
)

// AGT-4: undo restores files and folders in whose place a command has put something else.
func TestUndoOfChangedKinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	files := map[string]string{"f": "file", "g": "other", "d/x": "one", "d/y": "two"}
	for name, text := range files {
		p := filepath.Join(w.dir, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		must(t, os.WriteFile(p, []byte(text), 0o600))
	}
	for _, command := range []string{
		"rm f; mkdir f; echo q > f/in",
		"rm -rf d; echo x > d",
		"rm f; ln -s g f",
		"rm f; mkfifo f",
	} {
		if res := w.shell(command); !res.OK {
			t.Fatalf("%s: %+v, want OK", command, res)
		}
		done, err := w.undo.Undo(t.Context(), "s", func(dir string) (*workspace.Workspace, error) { return (*workspace.Guard)(nil).Open(dir) })
		if err != nil || len(done.Without) > 0 {
			t.Errorf("%s: Undo = %+v, %v; want all files covered", command, done, err)
		}
		for name, text := range files {
			p := filepath.Join(w.dir, filepath.FromSlash(name))
			info, err := os.Lstat(p)
			if err != nil || !info.Mode().IsRegular() {
				t.Fatalf("%s: %s is %v, %v; want a file", command, name, info, err)
			}
			if got, err := os.ReadFile(p); err != nil || string(got) != text {
				t.Errorf("%s: %s is %q, %v; want %q", command, name, got, err, text)
			}
		}
	}
}
