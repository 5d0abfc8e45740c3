package workspace

import (
	"slices"
	"testing"
	"time"
)

// The table of mounts is read once as long as nothing changes, and again when it is old: renames
// change it unnoticed. One that cannot be read is not used any longer.
func TestMountTable(t *testing.T) {
	var m mountTable
	first := m.points()
	if !slices.Contains(first, "/proc") {
		t.Skipf("/proc is not among the mounts %q", first)
	}
	kept := false
	for range 100 { // other programs may mount something at any time
		m.all, m.read = append(slices.Clone(first), "/marked"), time.Now()
		if kept = slices.Contains(m.points(), "/marked"); kept {
			break
		}
	}
	if !kept {
		t.Error("the table is read each time, want it read once")
	}
	m.read = time.Now().Add(-lasts - time.Millisecond)
	if got := m.points(); slices.Contains(got, "/marked") || len(got) == 0 {
		t.Errorf("an old table gives %q, want what is mounted now", got)
	}
	if err := m.file.Close(); err != nil {
		t.Fatal(err)
	}
	m.read = time.Time{}
	if got := m.points(); len(got) != 0 {
		t.Errorf("a table that cannot be read gives %q, want nothing", got)
	}
}
