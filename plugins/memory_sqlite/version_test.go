package memory_sqlite_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/plugins/memory_sqlite"
)

// inSQL runs statements in a database and returns its version.
func inSQL(t *testing.T, path string, statements ...string) (version int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s = %v, want no error", s, err)
		}
	}
	if err := db.QueryRowContext(t.Context(), "PRAGMA user_version").Scan(&version); err != nil {
		t.Fatal(err)
	}
	return version
}

func remembers(t *testing.T, path, text string) error {
	t.Helper()
	p := memory_sqlite.New(path)
	if err := p.OnLoad(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	err := p.OnEvent(t.Context(), event.Event{Payload: event.MemoryWrite{Entry: event.MemoryEntry{Text: text}}}, nil)
	if cerr := p.OnUnload(t.Context(), nil); cerr != nil {
		t.Fatal(cerr)
	}
	return err
}

// OP-42: a memory has a version; one of a yaya that wrote none is upgraded and keeps
// its entries, one of a newer yaya is refused with what to do and stays as it is.
func TestVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	if err := remembers(t, path, "the first"); err != nil {
		t.Fatal(err)
	}
	present := inSQL(t, path)
	if present < 1 {
		t.Errorf("a new memory has version %d, want 1 at least", present)
	}
	old := filepath.Join(t.TempDir(), "memory.db")
	inSQL(t, old, `CREATE TABLE memories (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL, meta TEXT NOT NULL, written TEXT NOT NULL)`,
		`CREATE VIRTUAL TABLE words USING fts5(text, content=memories, content_rowid=n, tokenize='unicode61 remove_diacritics 2')`,
		`CREATE TRIGGER memories_in AFTER INSERT ON memories BEGIN INSERT INTO words(rowid, text) VALUES (new.n, new.text); END`,
		`INSERT INTO memories(id, text, meta, written) VALUES ('mem_1', 'written by an older yaya', 'null', '')`)
	if err := remembers(t, old, "written by this one"); err != nil {
		t.Fatal(err)
	}
	if v := inSQL(t, old); v != present {
		t.Errorf("the older memory has version %d, want %d", v, present)
	}
	db, err := sql.Open("sqlite", "file:"+old)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM words WHERE words MATCH '"written"'`).Scan(&n); err != nil || n != 2 {
		t.Errorf("%d memories are found, %v, want both", n, err)
	}
	inSQL(t, path, "PRAGMA user_version = 99")
	if err := remembers(t, path, "the second"); err == nil || !strings.Contains(err.Error(), "has version 99") || !strings.Contains(err.Error(), "run the yaya that wrote it") {
		t.Errorf("a newer memory: %v, want it refused with what to do", err)
	}
	if v := inSQL(t, path); v != 99 {
		t.Errorf("the newer memory has version %d, want 99", v)
	}
}

// OP-43: a copy is whole, and for its owner only; damage is found.
func TestCopy(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "memory.db"), filepath.Join(dir, "copy.db")
	if err := remembers(t, from, "the sky is blue"); err != nil {
		t.Fatal(err)
	}
	if err := memory_sqlite.Copy(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(to); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the copy: %v, %v", st, err)
	}
	if problem, err := memory_sqlite.Verify(t.Context(), to); problem != "" || err != nil {
		t.Errorf("Verify = %q, %v, want a whole copy", problem, err)
	}
	if got, want := inSQL(t, to), inSQL(t, from); got != want {
		t.Errorf("the copy has version %d, want %d", got, want)
	}
	if err := memory_sqlite.Copy(t.Context(), from, to); err == nil {
		t.Error("Copy overwrites a file")
	}
	if err := memory_sqlite.Copy(t.Context(), filepath.Join(dir, "missing"), filepath.Join(dir, "other")); !os.IsNotExist(err) {
		t.Errorf("Copy of a missing file = %v", err)
	}
	raw, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{"cut": raw[:len(raw)/2], "zeros": slices.Concat(raw[:4096], make([]byte, len(raw)-4096)), "text": []byte("not a database at all, but text"), "empty head": append(make([]byte, 100), raw[100:]...)} {
		if err := os.WriteFile(to, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if problem, err := memory_sqlite.Verify(t.Context(), to); problem == "" || err != nil {
			t.Errorf("%s: Verify = %q, %v, want a problem", name, problem, err)
		}
	}
}
