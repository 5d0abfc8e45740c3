package gitread_test

import (
	"os"
	"testing"

	"github.com/yaya-ai/yaya/internal/gitread"
)

func BenchmarkStatusClean(b *testing.B) {
	dir := os.Getenv("BENCH_REPO")
	if dir == "" {
		b.Skip("BENCH_REPO names no repository")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if st, err := gitread.ReadStatus(b.Context(), root, dir); err != nil || len(st.Changed) != 0 {
			b.Fatal(len(st.Changed), err)
		}
	}
}
