package memory_sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// REL-6: a recall from a damaged memory names the command that mends it.
func TestDamagedMemoryNamesItsRemedy(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	for i := range 300 {
		w.write(event.MemoryEntry{Text: fmt.Sprintf("memory %d of the harbour %s", i, strings.Repeat("long ", 50))})
	}
	w.stop()
	path := filepath.Join(dir, "a #?%.db")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4096; i < len(raw); i++ { // the first page has the version and the tables
		raw[i] ^= 0xff
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	w = newWorld(t, dir)
	_, err = bus.Request(t.Context(), w.bus.Kernel(), event.MemoryQueried, "s1", event.MemoryQuery{Query: "harbour", K: 5}, event.MemoryAnswered.Kind())
	if err == nil || !strings.Contains(err.Error(), "yaya repair") {
		t.Errorf("got %v, want an error that names yaya repair", err)
	}
	if d := w.reg.Doctor(t.Context(), time.Second)[0]; !strings.Contains(d.Summary, "yaya repair") {
		t.Errorf("doctor says %+v, want that it names yaya repair", d)
	}
}
