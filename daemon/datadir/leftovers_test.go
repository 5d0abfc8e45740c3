package datadir_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/daemon/datadir"
	"github.com/yaya-ai/yaya/internal/journal"
)

// REL-14, OP-27: the rest of files that a crash interrupted is removed; a file that a
// process may be writing, or that is not surely yaya's, stays.
func TestLeftovers(t *testing.T) {
	p := newPlace(t)
	before := p.files()
	ended := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	since := time.Now().Add(-time.Hour)
	dead, own := ended.Process.Pid, os.Getpid()
	gone := []string{
		fmt.Sprintf(".config.json.%d.tmp", dead), fmt.Sprintf("sessions/s1/.session.json.%d.tmp", dead), fmt.Sprintf("trust/.x.json.%d.tmp", dead),
		fmt.Sprintf(".eras.json.%d.tmp", own), "tapes/x.jsonl.new", "keys/.audit.head.tmp", "sessions/s1/attachments/.att_x",
	}
	stays := []string{
		fmt.Sprintf(".secrets.sealed.%d.tmp", os.Getppid()), fmt.Sprintf(".permits.json.%d.tmp", own), fmt.Sprintf("notes.%d.tmp", dead), ".x.0.tmp", ".x.tmp", "x.jsonl.new",
		"tapes/locked.jsonl.new", "sessions/s2/attachments/.att_y", "sessions/s1/attachments/att_z.txt", fmt.Sprintf("damaged/x/.y.%d.tmp", dead),
	}
	for _, name := range slices.Concat(gone, stays) {
		p.write(name, []byte("x"))
	}
	for _, name := range []string{fmt.Sprintf(".eras.json.%d.tmp", own), "keys/.audit.head.tmp", "sessions/s1/attachments/.att_x"} { // older than this process
		if err := os.Chtimes(filepath.Join(p.dir, name), since, since.Add(-time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := journal.Root(p.root).Open("tapes/locked.jsonl.new", journal.Append)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	removed, err := datadir.Tidy(t.Context(), p.root, since)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(removed)
	slices.Sort(gone)
	if !slices.Equal(removed, gone) {
		t.Errorf("Tidy removed %q, want %q", removed, gone)
	}
	want := slices.Concat(before, stays)
	slices.Sort(want)
	if after := p.files(); !slices.Equal(slices.Sorted(slices.Values(after)), want) {
		t.Errorf("the files are %q, want %q", after, want)
	}
}
