package clients

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
	f := File{Client: Client{Name: "Cursor"}, Path: path, Data: []byte("{}"), Found: true}
	write(`{"theirs":1}`)
	if _, err := f.Change(t.Context(), Edit{Data: []byte(`{"ours":1}`)}); err == nil || !strings.Contains(err.Error(), "changed in the meantime") {
		t.Errorf("a file that was changed: got %v, want it refused", err)
	}
	f.Found = false
	if _, err := f.Change(t.Context(), Edit{Data: []byte(`{"ours":1}`)}); err == nil {
		t.Error("a file that was not there before was replaced")
	}
	f.Found = true
	var made []string
	for _, data := range []string{"{}", `{"a":1}`} {
		write(data)
		f.Data = []byte(data)
		backup, err := f.Change(t.Context(), Edit{Data: []byte(`{"ours":1}`)})
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, backup)
	}
	for i, want := range []string{"{}", `{"a":1}`} {
		if got, err := os.ReadFile(made[i]); err != nil || string(got) != want {
			t.Errorf("backup %d: got %q, %v, want %q", i, got, err, want)
		}
	}
	if all, err := backups(path); err != nil || !slices.Equal(all, made) {
		t.Errorf("the backups: got %q, %v, want %q", all, err, made)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("permissions: got %v, %v, want 0640", st, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
		t.Errorf("left behind: %v, %v, want the file and two backups", left, err)
	}
}
