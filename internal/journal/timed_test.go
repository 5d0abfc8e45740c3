package journal_test

import (
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/journal"
)

// OP-64: every fsync of a journal is timed.
func TestTimed(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var n, negative atomic.Int32
	fs := journal.Timed(journal.Root(root), func(took time.Duration) {
		n.Add(1)
		if took < 0 {
			negative.Add(1)
		}
	})
	j, err := journal.Open(fs, "x.jsonl", journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		before := n.Load()
		id, err := j.Append(record(1))
		if err == nil {
			err = j.Sync(t.Context(), id)
		}
		if err != nil {
			t.Fatal(err)
		}
		if n.Load() == before || negative.Load() > 0 {
			t.Errorf("an fsync was observed %d times, want once or more, and no negative time", n.Load()-before)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}
