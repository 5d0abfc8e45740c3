package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/mcpbridge/clients"
)

// A client's file that somebody changes between the question and the answer stays as
// it is; a backup never replaces another.
func TestClientFilesAreNotOverwritten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp.json")
	write := func(data string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(data), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	write("{}")
	f := clientFile{Client: clients.Client{Name: "Cursor"}, path: path, data: []byte("{}"), found: true}
	write(`{"theirs":1}`)
	if _, err := changeFile(t.Context(), f, []byte(`{"ours":1}`)); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("a file that was changed: got %v, want it refused", err)
	}
	f.found = false
	if _, err := changeFile(t.Context(), f, []byte(`{"ours":1}`)); err == nil {
		t.Error("a file that was not there before was replaced")
	}
	f.found = true
	var backups []string
	for _, data := range []string{"{}", `{"a":1}`} {
		write(data)
		f.data = []byte(data)
		backup, err := changeFile(t.Context(), f, []byte(`{"ours":1}`))
		if err != nil {
			t.Fatal(err)
		}
		backups = append(backups, backup)
	}
	for i, want := range []string{"{}", `{"a":1}`} {
		if got, err := os.ReadFile(backups[i]); err != nil || string(got) != want {
			t.Errorf("backup %d: got %q, %v, want %q", i, got, err, want)
		}
	}
	if last, err := lastBackup(path); err != nil || string(last) != `{"a":1}` {
		t.Errorf("the newest backup: got %q, %v", last, err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("permissions: got %v, %v, want 0640", st, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
		t.Errorf("left behind: %v, %v, want the file and two backups", left, err)
	}
}
