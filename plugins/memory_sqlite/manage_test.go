package memory_sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/plugins/memory_sqlite"
)

func listed(t *testing.T, path string, q memory_sqlite.Filter, limit int) string {
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
	if n, err := memory_sqlite.Remove(t.Context(), path, memory_sqlite.Filter{}); n != 0 || err != nil || listed(t, path, memory_sqlite.Filter{}, 10) != "" {
		t.Fatalf("Remove without a file = %d, %v, want 0", n, err)
	}
	for _, e := range []event.MemoryEntry{
		{ID: "a", Text: "apples in one", Meta: map[string]string{"folder": "/one", "session_id": "s"}},
		{ID: "b", Text: "pears in one", Meta: map[string]string{"folder": "/one", "session_id": "s::agent::1"}},
		{ID: "c", Text: "apples in two", Meta: map[string]string{"folder": "/two", "session_id": "s_"}},
		{ID: "u", Text: "plums in one", Meta: map[string]string{"folder": "/one", "session_id": "é::agent::1"}},
		{ID: "d", Text: "apples of nobody"},
		{ID: "e' OR '1'='1", Text: "pears of nobody", Meta: map[string]string{"folder": "' OR '1'='1"}},
	} {
		if err := p.OnEvent(t.Context(), event.Event{Payload: event.MemoryWrite{Entry: e}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), `INSERT INTO memories(id, text, meta, written) VALUES ('bad', 'quinces', '{not json', '2026-11-29T22:00:00Z')`); err != nil {
		t.Fatal(err)
	}
	many := []string{"c"}
	for i := range 40_000 {
		many = append(many, fmt.Sprint("m", i))
	}
	for _, tt := range []struct {
		filter memory_sqlite.Filter
		limit  int
		want   string
	}{
		{memory_sqlite.Filter{}, 10, "e' OR '1'='1 d u c b a bad"},
		{memory_sqlite.Filter{}, 2, "e' OR '1'='1 d"},
		{memory_sqlite.Filter{Folder: "/one"}, 10, "u b a"},
		{memory_sqlite.Filter{Folder: "/"}, 10, ""},
		{memory_sqlite.Filter{Folder: "' OR '1'='1"}, 10, "e' OR '1'='1"},
		{memory_sqlite.Filter{Session: "s"}, 10, "b a"},
		{memory_sqlite.Filter{Session: "s_"}, 10, "c"},
		{memory_sqlite.Filter{Session: "%"}, 10, ""},
		{memory_sqlite.Filter{Session: "é"}, 10, "u"},
		{memory_sqlite.Filter{IDs: many}, 10, "c"},
		{memory_sqlite.Filter{Session: "s", Folder: "/two"}, 10, ""},
		{memory_sqlite.Filter{IDs: []string{"a", "d", "x"}, Folder: "/one"}, 10, "a"},
	} {
		if got := listed(t, path, tt.filter, tt.limit); got != tt.want {
			t.Errorf("List(%+v) = %q, want %q", tt.filter, got, tt.want)
		}
	}
	if n, err := memory_sqlite.Remove(t.Context(), path, memory_sqlite.Filter{IDs: []string{"a", "x"}}); n != 1 || err != nil {
		t.Errorf("Remove of a = %d, %v, want 1", n, err)
	}
	hits, err := p.Recall(t.Context(), event.MemoryQuery{Query: "apples", K: 5, Folder: "/one"})
	if err != nil || len(hits) > 0 {
		t.Errorf("what was removed is recalled: %v, %v", hits, err)
	}
	if n, err := memory_sqlite.Remove(t.Context(), path, memory_sqlite.Filter{Session: "s"}); n != 1 || err != nil {
		t.Errorf("Remove of a session = %d, %v, want 1", n, err)
	}
	if got := strings.Fields(listed(t, path, memory_sqlite.Filter{Folder: "/two"}, 10)); !slices.Equal(got, []string{"c"}) {
		t.Errorf("the other folder has %q, want c", got)
	}
	if n, err := memory_sqlite.Remove(t.Context(), path, memory_sqlite.Filter{}); n != 5 || err != nil || listed(t, path, memory_sqlite.Filter{}, 10) != "" {
		t.Errorf("Remove of all = %d, %v, want 5", n, err)
	}
}

// A removal leaves the database to others in between, and ends with its context. So does the one of old memories.
func TestRemovalOfMany(t *testing.T) {
	for name, remove := range map[string]func(context.Context, *memory_sqlite.Plugin, string) (int, error){
		"Remove": func(ctx context.Context, _ *memory_sqlite.Plugin, path string) (int, error) {
			return memory_sqlite.Remove(ctx, path, memory_sqlite.Filter{})
		},
		"Forget": func(ctx context.Context, p *memory_sqlite.Plugin, _ string) (int, error) {
			return p.Forget(ctx, time.Now().Add(time.Hour))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "memory.db")
			synctest.Test(t, func(t *testing.T) {
				p := memory_sqlite.New(path)
				const all, atOnce = 1000, 250
				if err := p.Fill(t.Context(), all); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				removed, done := 0, make(chan error, 1)
				go func() {
					n, err := remove(ctx, p, path)
					removed = n
					done <- err
				}()
				synctest.Wait() // it has paused
				if got := p.Count(t.Context()); got != all-atOnce {
					t.Errorf("%d memories are left at the first pause, want %d", got, all-atOnce)
				}
				if err := p.OnEvent(t.Context(), event.Event{Payload: event.MemoryWrite{Entry: event.MemoryEntry{ID: "new", Text: "written meanwhile"}}}, nil); err != nil {
					t.Errorf("a memory that is written meanwhile: %v", err)
				}
				cancel()
				if err := <-done; !errors.Is(err, context.Canceled) || removed != atOnce {
					t.Errorf("the removal that is cancelled = %d, %v; want %d", removed, err, atOnce)
				}
				if n, err := remove(t.Context(), p, path); n != all-atOnce+1 || err != nil {
					t.Errorf("the removal of the rest = %d, %v, want %d", n, err, all-atOnce+1)
				}
				if err := p.OnUnload(t.Context(), nil); err != nil {
					t.Errorf("OnUnload = %v, want no error", err)
				}
			})
		})
	}
}

// A file of a newer yaya, a damaged one and a locked one are not changed.
func TestManageRefuses(t *testing.T) {
	for name, change := range map[string]string{
		"version 99":             `PRAGMA user_version = 99`,
		"no such table":          `DROP TABLE memories`,
		"another process has be": `BEGIN IMMEDIATE`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "memory.db")
			p := memory_sqlite.New(path)
			if err := errors.Join(p.Fill(t.Context(), 3), p.OnUnload(t.Context(), nil)); err != nil {
				t.Fatal(err)
			}
			db, err := sql.Open("sqlite", "file:"+path)
			if err != nil {
				t.Fatal(err)
			}
			db.SetMaxOpenConns(1)
			defer func() { _ = db.Close() }()
			if _, err := db.ExecContext(t.Context(), change); err != nil {
				t.Fatal(err)
			}
			if _, err := memory_sqlite.Remove(t.Context(), path, memory_sqlite.Filter{}); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), path) {
				t.Errorf("Remove = %v, want %q and the file", err, name)
			}
			if _, err := memory_sqlite.List(t.Context(), path, memory_sqlite.Filter{}, 10); strings.HasPrefix(change, "BEGIN") != (err == nil) {
				t.Errorf("List = %v", err)
			}
		})
	}
}
