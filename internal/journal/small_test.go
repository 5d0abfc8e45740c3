package journal_test

import (
	"runtime"
	"testing"

	"github.com/yaya-ai/yaya/internal/journal"
)

// Reading a small journal takes little memory: sessions are read when somebody begins to follow them.
func TestSmallReads(t *testing.T) {
	j := mustOpen(t, openFS(t, t.TempDir()), journal.Options{})
	defer j.Close()
	fill(t, j, 20)
	if got := len(ids(t, j, 1)); got != 20 {
		t.Fatalf("read %d records, want 20", got)
	}
	const times = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		ids(t, j, 1)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / times; each > 32<<10 {
		t.Errorf("a read of 20 records takes %d bytes of memory, want at most 32 KiB", each)
	}
}
