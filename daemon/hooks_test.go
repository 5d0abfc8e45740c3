package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
)

// hookFolder is a folder with a hook, and what it brings.
func hookFolder(t *testing.T, command string) (dir string, digest func() (string, error)) {
	t.Helper()
	dir = t.TempDir()
	putFile(t, dir, ".yaya/hooks.toml", fmt.Sprintf("[[hooks]]\nevent = \"pre_tool\"\ncommand = %q\n", command))
	seen := new(manage.Digests)
	return dir, func() (string, error) {
		w, err := (*workspace.Guard)(nil).Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = w.Close() }()
		items, err := hookItems(w, true, seen)
		return folder.Subject{Folder: dir, Items: items}.Digest(), err
	}
}

func putFile(t *testing.T, dir, name, content string) {
	t.Helper()
	at := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// SEC-3: the digest of a folder covers the files that its hooks run, whatever their size.
func TestHookItemsCoverFiles(t *testing.T) {
	large := strings.Repeat("#", workspace.MaxFile+1)
	for name, c := range map[string]struct{ command, file string }{
		"a script":                {"./guard.sh", "guard.sh"},
		"an argument":             {"sh 'guard.sh' || exit 2", "guard.sh"},
		"a name with a space":     {`sh "the guard.sh"`, "the guard.sh"},
		"behind an option":        {"run --hook=./guard.sh", "guard.sh"},
		"with Claude Code's name": {`"$CLAUDE_PROJECT_DIR"/.claude/guard.sh`, ".claude/guard.sh"},
		"and its braces":          {`${CLAUDE_PROJECT_DIR}/guard.sh`, "guard.sh"},
		"of make":                 {"make guard", "Makefile"},
		"its own file":            {"true", ".yaya/hooks.toml"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, digest := hookFolder(t, c.command)
			own, err := os.ReadFile(filepath.Join(dir, ".yaya/hooks.toml"))
			if err != nil {
				t.Fatal(err)
			}
			if c.file != ".yaya/hooks.toml" {
				own = []byte(large)
			}
			putFile(t, dir, c.file, string(own))
			was, err := digest()
			if err != nil {
				t.Fatal(err)
			}
			if again, err := digest(); again != was || err != nil {
				t.Errorf("without a change the digest is %s, %v, want %s", again, err, was)
			}
			putFile(t, dir, c.file, string(own)+"timeout = \"1s\"\n")
			if now, err := digest(); now == was || err != nil {
				t.Errorf("after a change of %s the digest is %s, %v, want another", c.file, now, err)
			}
		})
	}
}

// R9: a folder does not make yaya look up any number of files.
func TestHookItemsAreBounded(t *testing.T) {
	dir, digest := hookFolder(t, "true")
	var words, file strings.Builder
	for i := range 800 {
		fmt.Fprintf(&words, "f%d ", i)
	}
	for i := range 20 {
		fmt.Fprintf(&file, "[[hooks]]\nname = \"h%d\"\nevent = \"pre_tool\"\ncommand = %q\n", i, words.String())
	}
	putFile(t, dir, ".yaya/hooks.toml", file.String())
	if _, err := digest(); !errors.Is(err, folder.ErrTooMuch) {
		t.Errorf("hooks with 16,000 words: %v, want ErrTooMuch", err)
	}
	putFile(t, dir, ".yaya/hooks.toml", "[[hooks")
	if _, err := digest(); err != nil {
		t.Errorf("hooks that cannot be read: %v, want an item that says so", err)
	}
}
