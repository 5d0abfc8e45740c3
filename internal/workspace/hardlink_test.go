package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// SEC-4: a file of yaya's own is not read under another name, either; other files with
// several names are.
func TestHardLinksOfOwnFiles(t *testing.T) {
	base := t.TempDir()
	for _, d := range []string{"data/keys", "ws"} {
		if err := os.MkdirAll(filepath.Join(base, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"data/keys/server.key", "other"} {
		if err := os.WriteFile(filepath.Join(base, f), []byte("content of "+f+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Link(filepath.Join(base, "data/keys/server.key"), filepath.Join(base, "ws/key.txt")), os.Link(filepath.Join(base, "other"), filepath.Join(base, "ws/other.txt"))); err != nil {
		t.Skip("hard links cannot be made here: ", err)
	}
	g, err := NewGuard(Own{"data folder", filepath.Join(base, "data"), "--data-dir"})
	if err != nil {
		t.Fatal(err)
	}
	w, err := g.Open(filepath.Join(base, "ws"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if text, err := w.Text("key.txt"); !errors.Is(err, ErrOwn) {
		t.Errorf("Text of a link to a key = %q, %v, want ErrOwn", text, err)
	}
	if text, err := w.Text("other.txt"); err != nil || text != "content of other\n" {
		t.Errorf("Text of another link = %q, %v, want its content", text, err)
	}
	found, _, err := w.Search(context.Background(), Query{Pattern: "content", Limit: 9})
	if err != nil || len(found) != 1 || found[0].Path != "other.txt" {
		t.Errorf("Search = %+v, %v, want other.txt alone", found, err)
	}
}
