package local_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/controltest"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/internal/journal"
)

// R34: a replica keeps entries as they were ordered elsewhere, in their order and each once, and
// takes no others.
func TestReplica(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	open := func() (*local.Log, *controltest.Recorder) {
		t.Helper()
		seen := new(controltest.Recorder)
		l, err := local.Open(journal.Root(root), local.Options{Replica: true, Projections: []control.Projection{seen}})
		if err != nil {
			t.Fatal(err)
		}
		return l, seen
	}
	entry := func(index, term int64) control.Entry {
		return control.Entry{Index: index, Term: term, Time: time.Unix(1e9+index, 0).UTC(), Event: "test_event", Actor: "tester", Target: "x", Payload: []byte(`{"n":1}`)}
	}
	l, _ := open()
	for i, term := range []int64{1, 1, 4} {
		if err := l.Put(entry(int64(i+1), term)); err != nil {
			t.Fatal(err)
		}
	}
	for _, index := range []int64{1, 3, 5} {
		if err := l.Put(entry(index, 4)); err == nil {
			t.Errorf("entry %d was taken behind entry 3, want an error", index)
		}
	}
	if _, err := l.Append(t.Context(), control.Change{Event: "test_event", Actor: "tester"}, nil); !errors.Is(err, control.ErrUnavailable) {
		t.Errorf("Append to a replica: %v, want ErrUnavailable", err)
	}
	if err := l.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, seen := open()
	defer func() { _ = l.Close() }()
	if s := l.State(); s.Last != 3 || s.Term != 4 {
		t.Errorf("after a start the log is at entry %d of term %d, want 3 and 4", s.Last, s.Term)
	}
	for i, e := range seen.Entries() {
		if want := entry(int64(i+1), []int64{1, 1, 4}[i]); e.Index != want.Index || e.Term != want.Term || !e.Time.Equal(want.Time) || e.Event != want.Event || string(e.Payload) != string(want.Payload) {
			t.Errorf("the projection got %+v, want %+v", e, want)
		}
	}
	if n := len(seen.Entries()); n != 3 {
		t.Errorf("the projection got %d entries, want 3", n)
	}
	if _, err := local.Open(journal.Root(root), local.Options{Replica: true, Seal: &local.SealOptions{}}); err == nil {
		t.Error("a sealed replica was opened, want an error")
	}
}
