package journal_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/yaya-ai/yaya/internal/journal"
)

// A file that continues another has its ids and its chain; a part of it is found from
// any record on, and verified.
func TestParts(t *testing.T) {
	dir := t.TempDir()
	fsys := openFS(t, dir)
	if _, err := journal.First(fsys, "j"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("First without a file = %v", err)
	}
	j := mustOpen(t, fsys, journal.Options{})
	fill(t, j, 5)
	last, sum := j.Head()
	if err := errors.Join(j.Close(), os.Rename(filepath.Join(dir, "j"), filepath.Join(dir, "1"))); err != nil {
		t.Fatal(err)
	}
	o := journal.Options{First: last + 1, Prev: sum}
	j = mustOpen(t, fsys, o)
	if got, gotSum := j.Head(); got != last || gotSum != sum {
		t.Errorf("the head of an empty file is %d, %s", got, gotSum)
	}
	const total = 3000 // some 400 kB: a search has steps
	fill(t, j, total)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Open(fsys, "j", journal.Options{}); err == nil {
		t.Error("the file was opened without the sum that it continues")
	}
	j = mustOpen(t, fsys, o)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if rep, err := journal.ScanAfter(fsys, "j", sum, nil); err != nil || rep.First != 6 || rep.Last != 5+total || rep.Sum() == sum {
		t.Errorf("ScanAfter = %+v, %v", rep, err)
	}
	if first, err := journal.First(fsys, "j"); err != nil || first != 6 {
		t.Errorf("First = %d, %v", first, err)
	}
	for from := int64(1); from < 5+total+3; from += 37 {
		want := max(from, 6)
		err := journal.ReadPart(fsys, "j", from, func(id int64, _ []byte) error {
			if id != want {
				t.Fatalf("ReadPart(%d) visits %d, want %d", from, id, want)
			}
			want++
			return nil
		})
		if err != nil || want != max(from, 5+total+1) {
			t.Fatalf("ReadPart(%d) = %v, and ends before %d", from, err, want)
		}
	}
	whole, err := os.ReadFile(filepath.Join(dir, "j"))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{10, len(whole) / 2, len(whole) - 5} {
		spoilt := append([]byte{}, whole...)
		spoilt[at] ^= 1
		if err := os.WriteFile(filepath.Join(dir, "j"), spoilt, 0o600); err != nil {
			t.Fatal(err)
		}
		err := journal.ReadPart(fsys, "j", 1, func(int64, []byte) error { return nil })
		if _, ok := errors.AsType[*journal.DamageError](err); !ok {
			t.Errorf("byte %d changed: ReadPart = %v", at, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "j"), whole[:len(whole)-3], 0o600); err != nil {
		t.Fatal(err)
	}
	err = journal.ReadPart(fsys, "j", 3000, func(int64, []byte) error { return nil })
	if _, ok := errors.AsType[*journal.DamageError](err); !ok {
		t.Errorf("cut short: ReadPart = %v", err)
	}
}
