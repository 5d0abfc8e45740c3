package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/yaya-ai/yaya/internal/journal"
)

// FuzzOpen: any file is read without harm: either it is refused as damaged and
// stays untouched, or it is open and accepts records.
func FuzzOpen(f *testing.F) {
	dir := f.TempDir()
	fsys := openFS(f, dir)
	path := filepath.Join(dir, "j")
	j, err := journal.Open(fsys, "j", journal.Options{})
	if err != nil {
		f.Fatal(err)
	}
	fill(f, j, 3)
	if err := j.Close(); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{whole, whole[:len(whole)-1], whole[:10], nil, []byte("\n"), []byte("{\"id\":1,\n"), append(whole, 0, 0, 0), []byte(`{"id":9223372036854775807,"a":1}` + "\n")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		seen := int64(0)
		rep, serr := journal.Scan(fsys, "j", func(int64, []byte) error { seen++; return nil })
		if serr == nil && (rep.Last-rep.First+1 != seen && rep.Size > 0 || rep.Size+rep.Torn != int64(len(data))) {
			t.Fatalf("%+v after %d records of %d bytes", rep, seen, len(data))
		}
		j, err := journal.Open(fsys, "j", journal.Options{})
		if (err == nil) != (serr == nil) {
			t.Fatalf("scan says %v, open says %v", serr, err)
		}
		if err != nil {
			if _, ok := errors.AsType[*journal.DamageError](err); !ok {
				t.Fatalf("refused without a place: %v", err)
			}
			if now, _ := os.ReadFile(path); string(now) != string(data) {
				t.Fatal("a damaged file was touched")
			}
			return
		}
		id, err := j.Append([]byte(`"a":1`))
		if err == nil {
			err = j.Sync(t.Context(), id)
		}
		if err := errors.Join(err, j.Close()); err != nil {
			t.Fatal(err)
		}
		if rep, err := journal.Scan(fsys, "j", nil); err != nil || rep.Torn != 0 || rep.Last != id {
			t.Fatalf("after a record: %+v, %v", rep, err)
		}
	})
}
