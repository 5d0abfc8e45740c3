package gitread_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/gitread"
)

// A clean work tree of 50,000 files.
func BenchmarkStatusClean(b *testing.B) {
	dir := b.TempDir()
	for n := range 50_000 {
		sub := filepath.Join(dir, fmt.Sprintf("d%d/s%d", n%50, n%2500/50))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("f%d.go", n)), fmt.Appendf(nil, "package x // %d\n", n), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "x"}} {
		cmd := exec.CommandContext(b.Context(), "git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	later := time.Now().Add(time.Minute) // else every file is as new as the index, and is read
	if err := os.Chtimes(filepath.Join(dir, ".git/index"), later, later); err != nil {
		b.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	b.ReportAllocs()
	for b.Loop() {
		if st, err := gitread.ReadStatus(b.Context(), root, dir); err != nil || len(st.Changed) != 0 {
			b.Fatalf("ReadStatus = %d changes, %v; want none", len(st.Changed), err)
		}
	}
}
