package memory_sqlite_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/plugins/memory_sqlite"
)

func listed(t *testing.T, path string, q memory_sqlite.Which, limit int) string {
	t.Helper()
	all, err := memory_sqlite.List(t.Context(), path, q, limit)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range all {
		if m.Written.IsZero() {
			t.Errorf("%s has no time", m.ID)
		}
		ids = append(ids, m.ID)
	}
	return strings.Join(ids, " ")
}

// Memories are listed and removed one by one, by folder and by session, and what was removed is not recalled.
func TestManage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	p := memory_sqlite.New(path) // which a daemon has open meanwhile
	defer func() {
		if err := p.OnUnload(t.Context(), nil); err != nil {
			t.Errorf("OnUnload = %v, want no error", err)
		}
	}()
	if n, err := memory_sqlite.Remove(t.Context(), path, memory_sqlite.Which{}); n != 0 || err != nil || listed(t, path, memory_sqlite.Which{}, 10) != "" {
		t.Fatalf("Remove without a file = %d, %v, want 0", n, err)
	}
	for _, e := range []event.MemoryEntry{
		{ID: "a", Text: "apples in one", Meta: map[string]string{"folder": "/one", "session_id": "s"}},
		{ID: "b", Text: "pears in one", Meta: map[string]string{"folder": "/one", "session_id": "s::agent::1"}},
		{ID: "c", Text: "apples in two", Meta: map[string]string{"folder": "/two", "session_id": "s_"}},
		{ID: "d", Text: "apples of nobody"},
		{ID: "e' OR '1'='1", Text: "pears of nobody", Meta: map[string]string{"folder": "' OR '1'='1"}},
	} {
		if err := p.OnEvent(t.Context(), event.Event{Payload: event.MemoryWrite{Entry: e}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		which memory_sqlite.Which
		limit int
		want  string
	}{
		{memory_sqlite.Which{}, 10, "e' OR '1'='1 d c b a"},
		{memory_sqlite.Which{}, 2, "e' OR '1'='1 d"},
		{memory_sqlite.Which{Folder: "/one"}, 10, "b a"},
		{memory_sqlite.Which{Folder: "/"}, 10, ""},
		{memory_sqlite.Which{Folder: "' OR '1'='1"}, 10, "e' OR '1'='1"},
		{memory_sqlite.Which{Session: "s"}, 10, "b a"},
		{memory_sqlite.Which{Session: "s_"}, 10, "c"},
		{memory_sqlite.Which{Session: "%"}, 10, ""},
		{memory_sqlite.Which{Session: "s", Folder: "/two"}, 10, ""},
		{memory_sqlite.Which{IDs: []string{"a", "d", "x"}, Folder: "/one"}, 10, "a"},
	} {
		if got := listed(t, path, tt.which, tt.limit); got != tt.want {
			t.Errorf("List(%+v) = %q, want %q", tt.which, got, tt.want)
		}
	}
	if n, err := memory_sqlite.Remove(t.Context(), path, memory_sqlite.Which{IDs: []string{"a", "x"}}); n != 1 || err != nil {
		t.Errorf("Remove of a = %d, %v, want 1", n, err)
	}
	hits, err := p.Recall(t.Context(), event.MemoryQuery{Query: "apples", K: 5, Folder: "/one"})
	if err != nil || len(hits) > 0 {
		t.Errorf("what was removed is recalled: %v, %v", hits, err)
	}
	if n, err := memory_sqlite.Remove(t.Context(), path, memory_sqlite.Which{Session: "s"}); n != 1 || err != nil {
		t.Errorf("Remove of a session = %d, %v, want 1", n, err)
	}
	if got := strings.Fields(listed(t, path, memory_sqlite.Which{Folder: "/two"}, 10)); !slices.Equal(got, []string{"c"}) {
		t.Errorf("the other folder has %q, want c", got)
	}
	if n, err := memory_sqlite.Remove(t.Context(), path, memory_sqlite.Which{}); n != 3 || err != nil || listed(t, path, memory_sqlite.Which{}, 10) != "" {
		t.Errorf("Remove of all = %d, %v, want 3", n, err)
	}
}
