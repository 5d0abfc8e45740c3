package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// R8: a repository's own folder is not shown, whatever way leads there; its
// configuration may hold credentials.
func TestGitIsNotShown(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const canary = "https://user:canary@example.com"
	write("a.txt", "plain\n")
	write("sub/b.txt", "plain\n")
	write(".gitignore", "*.o\n")
	for _, repo := range []string{".git", ".GIT", "sub/.git", ".git/modules/sub", "data", "bare.git", ".git "} {
		write(repo+"/config", canary)
		write(repo+"/logs/HEAD", canary)
		write(repo+"/x.go", "package x\n\nfunc Canary() {}\n")
		write(repo+"/HEAD", "ref: refs/heads/main\n")
		write(repo+"/objects/x", "")
		write(repo+"/refs/x", "")
	}
	write("wt/.git", "gitdir: ../data canary\n") // of a worktree, or a folder of its own
	for name, target := range map[string]string{"dir": ".git", "file": ".git/config", "chain": "file", "up": "sub/../.git/config", "sub/out": "../.git", "todata": "data/config", "fine": "sub/b.txt", "loop": "loop", "round": "sub/../a.txt"} {
		if err := os.Symlink(target, filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(dir, ".git", "config"), filepath.Join(dir, "hard")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(dir, "a.txt"), filepath.Join(dir, "hard.txt")); err != nil {
		t.Fatal(err)
	}
	w, err := (*Guard)(nil).Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, p := range []string{
		".git/config", "./.git/config", "sub/../.git/config", ".git//config", ".git/./config", ".GIT/config", ".Git/config", ".git /config", "sub/.git/config", ".git/modules/sub/config", ".git/logs/HEAD",
		"wt/.git", "data/config", "data/logs/HEAD", "bare.git/config", "dir/config", "file", "chain", "up", "sub/out/config", "todata", "hard", filepath.Join(dir, ".git", "config"),
	} {
		if got, err := w.Text(p); !errors.Is(err, ErrGit) {
			t.Errorf("Text(%q) = %q, %v, want %v", p, got, err, ErrGit)
		}
		if got, _, err := w.Search(t.Context(), Query{Pattern: "canary", Path: p, Limit: 9}); len(got) > 0 || (err == nil && p != "hard") {
			t.Errorf("Search in %q = %v, %v, want %v", p, got, err, ErrGit)
		}
	}
	for _, p := range []string{".git", "dir", "sub/out", "data", "bare.git", ".GIT"} {
		if got, _, err := w.Tree(t.Context(), p, 9, 99); !errors.Is(err, ErrGit) {
			t.Errorf("Tree(%q) = %v, %v, want %v", p, got, err, ErrGit)
		}
		if got, _, err := w.Symbols(t.Context(), p, 99); !errors.Is(err, ErrGit) {
			t.Errorf("Symbols(%q) = %v, %v, want %v", p, got, err, ErrGit)
		}
	}
	if got, _, err := w.Search(t.Context(), Query{Pattern: "(?i)canary", Limit: 99}); err != nil || len(got) > 0 {
		t.Errorf("Search = %v, %v, want nothing", got, err)
	}
	if got, _, err := w.Symbols(t.Context(), ".", 99); err != nil || len(got) > 0 {
		t.Errorf("Symbols = %v, %v, want nothing", got, err)
	}
	all, _, err := w.Tree(t.Context(), ".", 9, 999)
	if err != nil || strings.Contains(strings.ToLower(Format(all)), "config") {
		t.Errorf("Tree = %s, %v", Format(all), err)
	}
	// The rest is there as it was.
	for _, p := range []string{"a.txt", "sub/b.txt", "fine", "round", "hard.txt", ".gitignore"} {
		if got, err := w.Text(p); err != nil || got == "" {
			t.Errorf("Text(%q) = %q, %v, want it", p, got, err)
		}
	}
	if _, err := w.Text("loop"); err == nil {
		t.Error("Text of a link to itself succeeded")
	}
}
