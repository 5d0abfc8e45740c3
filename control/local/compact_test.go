package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/controltest"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/journal/journaltest"
)

// small makes a log close its tail at its first seal with that many entries.
func small(n int64, p ...control.Projection) func(*local.Options) {
	return func(o *local.Options) { o.Segment, o.Projections = n, p }
}

// segments are the names of the files of entries, without the tail.
func (s *safe) segments() (names []string) {
	s.t.Helper()
	list, err := os.ReadDir(filepath.Join(s.dir, local.Segments))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.t.Fatalf("ReadDir of the segments = %v, want them or no folder", err)
	}
	for _, n := range list {
		names = append(names, n.Name())
	}
	return names
}

// indexes returns the indexes of all entries, as a reader without the log finds them.
func (s *safe) indexes() (out []int64) {
	s.t.Helper()
	if _, err := local.Scan(journal.Root(s.root), func(e control.Entry) error { out = append(out, e.Index); return nil }); err != nil {
		s.t.Fatal(err)
	}
	return out
}

// dense fails unless there are entries 1 to n.
func (s *safe) dense(got []int64, n int64) {
	s.t.Helper()
	for i, index := range got {
		if index != int64(i+1) {
			s.t.Fatalf("entry %d has the index %d: %v", i+1, index, got)
		}
	}
	if int64(len(got)) != n {
		s.t.Fatalf("%d entries were found, want %d", len(got), n)
	}
}

// OP-30, OP-31, REL-7: a log that grows closes its tail; a start begins with the
// snapshot and has the same state, and everybody reads segments and tail as one.
func TestCompaction(t *testing.T) {
	s := newSafe(t, t.TempDir())
	all := &controltest.Recorder{}
	for range 4 { // a start and a stop have a seal each
		rec := &controltest.Recorder{}
		l := s.open(small(10, rec))
		s.append(l, 13)
		s.close(l)
		all = rec
	}
	if got, want := fmt.Sprint(s.segments()), "[000000000001.jsonl 000000000017.jsonl 000000000032.jsonl]"; got != want {
		t.Errorf("segments are %s, want %s", got, want)
	}
	if v := s.verify(); v.Problem != nil || v.Report.First != 1 || v.Report.Last != 60 || v.Unsealed != 0 {
		t.Errorf("Verify = %+v", v)
	}
	if v, err := local.Check(journal.Root(s.root), s.keys); err != nil || v.Problem != nil || v.Report.Last != 60 || v.Newest.Entry != 60 {
		t.Errorf("Check = %+v, %v", v, err)
	}
	s.dense(s.indexes(), 60)
	again := &controltest.Recorder{}
	applied := 0
	again.Hear = func(control.Entry) { applied++ }
	l := s.open(small(1000, again))
	defer s.close(l)
	if got, want := fmt.Sprint(again.Entries()[:60]), fmt.Sprint(all.Entries()); got != want {
		t.Errorf("a start from the snapshot has\n%s\nwant\n%s", got, want)
	}
	if applied != 15 {
		t.Errorf("%d entries were applied at the start, want 14 of the tail and the new seal", applied)
	}
	for _, from := range []int64{1, 15, 16, 17, 45, 46, 47, 60} {
		var got []int64
		if err := l.Read(from, func(e control.Entry) error { got = append(got, e.Index); return nil }); err != nil {
			t.Fatal(err)
		}
		if len(got) != int(62-from) || got[0] != from || got[len(got)-1] != 61 {
			t.Errorf("Read(%d) visits %v", from, got)
		}
	}
	fsys := journal.Root(s.root)
	for name, tt := range map[string]struct {
		q    control.Query
		want string
	}{
		"newest":       {control.Query{Limit: 2}, "[58 59]"},
		"across":       {control.Query{Limit: 3, Before: 48}, "[43 44 47]"},
		"after":        {control.Query{After: 57}, "[58 59]"},
		"seals":        {control.Query{Event: control.SealEvent, Limit: 3}, "[46 60 61]"},
		"oldest":       {control.Query{Before: 4}, "[2 3]"},
		"of an actor":  {control.Query{Actor: "device2", Limit: 2}, "[55 58]"},
		"nobody's":     {control.Query{Actor: "nobody"}, "[]"},
		"no event":     {control.Query{Event: "device_*"}, "[]"},
		"more than is": {control.Query{Before: 18, Limit: 100, Actor: "device0"}, "[2 5 8 11 14 17]"},
	} {
		fromLog, err := control.AuditLog(t.Context(), l, tt.q)
		fromFile, err2 := local.AuditFile(t.Context(), fsys, tt.q)
		if err != nil || err2 != nil {
			t.Fatalf("%s: AuditLog = %v, AuditFile = %v, want no errors", name, err, err2)
		}
		for _, got := range [][]control.Audit{fromLog, fromFile} {
			indexes := []int64{}
			for _, a := range got {
				indexes = append(indexes, a.Index)
			}
			if fmt.Sprint(indexes) != tt.want {
				t.Errorf("%s: %v, want %s", name, indexes, tt.want)
			}
		}
	}
}

// OP-31: without a snapshot that can be used, a start reads all entries and has the
// same state; the next seal makes another.
func TestWithoutSnapshot(t *testing.T) {
	for name, spoil := range map[string]func(path string, whole []byte) error{
		"removed": func(path string, _ []byte) error { return os.Remove(path) },
		"emptied": func(path string, _ []byte) error { return os.WriteFile(path, nil, 0o600) },
		"cut":     func(path string, whole []byte) error { return os.WriteFile(path, whole[:len(whole)/2], 0o600) },
		"changed": func(path string, whole []byte) error {
			return os.WriteFile(path, bytes.Replace(whole, []byte("device0"), []byte("device9"), 1), 0o600)
		},
		"unsigned": func(path string, whole []byte) error {
			return os.WriteFile(path, whole[:bytes.LastIndex(whole, []byte(`,"sig"`))], 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSafe(t, t.TempDir())
			before := &controltest.Recorder{}
			for range 2 {
				before = &controltest.Recorder{}
				l := s.open(small(10, before))
				s.append(l, 13)
				s.close(l)
			}
			path := filepath.Join(s.dir, local.StateFile)
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := spoil(path, whole); err != nil {
				t.Fatal(err)
			}
			if v := s.verify(); (v.Problem == nil) != (name == "removed") {
				t.Errorf("Verify says %v", v.Problem)
			}
			got := &controltest.Recorder{}
			l := s.open(small(10, got))
			if n := len(before.Entries()); fmt.Sprint(got.Entries()[:n]) != fmt.Sprint(before.Entries()) {
				t.Errorf("the state is %v, want %v", got.Entries()[:n], before.Entries())
			}
			s.close(l)
			if v := s.verify(); v.Problem != nil {
				t.Errorf("after the next start, Verify says %v", v.Problem)
			}
		})
	}
}

// OP-32, SEC-14: a start notices segments that were removed, cut or exchanged without
// reading them, and verify every changed bit.
func TestChangedSegmentsAreNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil  func(s *safe, seg string, whole []byte) error
		start  string
		verify string
	}{
		"removed": {func(s *safe, seg string, _ []byte) error { return os.Remove(seg) }, "entries 17 to 31 are missing", "entries 17 to 31 are missing"},
		"cut": {func(_ *safe, seg string, whole []byte) error {
			return os.WriteFile(seg, whole[:bytes.LastIndexByte(whole[:len(whole)-1], '\n')+1], 0o600)
		}, "bytes and had", "entries 31 to 31 are missing"},
		"rehashed": {func(_ *safe, seg string, whole []byte) error {
			return os.WriteFile(seg, bytes.ReplaceAll(whole, []byte("device0"), []byte("device9")), 0o600)
		}, "", "does not match its sum"},
		"all": {func(s *safe, _ string, _ []byte) error {
			return os.RemoveAll(filepath.Join(s.dir, local.Segments))
		}, "entries 1 to 16 are missing", "entries 1 to 46 are missing"},
		"all and the snapshot": {func(s *safe, _ string, _ []byte) error {
			return errors.Join(os.RemoveAll(filepath.Join(s.dir, local.Segments)), os.Remove(filepath.Join(s.dir, local.StateFile)))
		}, "entries 1 to 46 are missing", "entries 1 to 46 are missing"},
		"the tail": {func(s *safe, _ string, _ []byte) error { return os.Remove(s.log()) }, "the log was cut", "the log was cut"},
		"everything": {func(s *safe, _ string, _ []byte) error {
			return os.RemoveAll(filepath.Dir(s.log()))
		}, "the log was removed", "the log was removed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSafe(t, t.TempDir())
			for range 4 {
				l := s.open(small(10, &controltest.Recorder{}))
				s.append(l, 13)
				s.close(l)
			}
			seg := filepath.Join(s.dir, local.Segments, "000000000017.jsonl")
			whole, err := os.ReadFile(seg)
			if err != nil {
				t.Fatal(err)
			}
			if err := tt.spoil(s, seg, whole); err != nil {
				t.Fatal(err)
			}
			v, err := local.Verify(journal.Root(s.root), s.keys)
			got := fmt.Sprint(err)
			if v.Problem != nil {
				got = v.Problem.Error()
			}
			if !strings.Contains(got, tt.verify) {
				t.Errorf("Verify says %q, want %q", got, tt.verify)
			}
			l, err := s.try(small(10, &controltest.Recorder{}))
			if err == nil {
				s.close(l)
			}
			if (err == nil) != (tt.start == "") || (err != nil && !strings.Contains(err.Error(), tt.start)) {
				t.Errorf("a start = %v, want %q", err, tt.start)
			}
		})
	}
}

// OP-33: entries behind the newest seal that were cut off are noticed, with and without
// a crash in between.
func TestCutBehindTheNewestSeal(t *testing.T) {
	dir := t.TempDir()
	s := newSafe(t, dir)
	s.close(s.open())
	l := s.open()
	s.append(l, 3)
	// A copy has the state that a crash would leave.
	crashed := t.TempDir()
	if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	s.close(l)
	c := newSafe(t, crashed)
	if err := os.Chmod(filepath.Join(crashed, "keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(crashed, "keys", local.SealKeyFile), 0o600); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(c.log())
	if err != nil {
		t.Fatal(err)
	}
	lines := linesOf(whole)
	for cut := 1; cut <= 3; cut++ {
		if err := os.WriteFile(c.log(), []byte(strings.Join(lines[:len(lines)-cut], "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if v := c.verify(); v.Problem == nil || !strings.Contains(v.Problem.Problem, "the log was cut") {
			t.Errorf("%d entries less: Verify says %v", cut, v.Problem)
		}
		if _, err := c.try(); err == nil || !strings.Contains(err.Error(), "the log was cut") {
			t.Errorf("%d entries less: a start = %v", cut, err)
		}
	}
	if err := os.WriteFile(c.log(), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	// A line that a crash has cut short says nothing.
	f, err := os.OpenFile(filepath.Join(crashed, "keys", local.LastFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString("\n{\"entry\":99")
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	c.close(c.open())
	if v := c.verify(); v.Problem != nil {
		t.Errorf("the whole log: %v", v.Problem)
	}
}

// OP-34: whichever step of a compaction fails, no entry is lost, the log goes on or says
// that it does not, and a later seal compacts it.
func TestCompactionThatFails(t *testing.T) {
	for step := 1; step <= 14; step++ {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			s := newSafe(t, t.TempDir())
			compacting, steps := false, 0
			faults := &journaltest.Faults{FS: journal.Root(s.root)}
			faults.Before = func(st journaltest.Step) error {
				compacting = compacting || strings.Contains(st.Name, "state")
				if compacting {
					if steps++; steps == step {
						return syscall.EIO
					}
				}
				return nil
			}
			var log bytes.Buffer
			edit := func(o *local.Options) {
				o.Segment, o.Projections, o.Log = 10, []control.Projection{&controltest.Recorder{}}, zerolog.New(&log)
			}
			if _, err := local.Prepare(faults, journal.Root(s.keys)); err != nil {
				t.Fatal(err)
			}
			o := local.Options{Seal: &local.SealOptions{Keys: s.keys}}
			edit(&o)
			l, err := local.Open(faults, o)
			if err != nil {
				t.Fatal(err)
			}
			s.append(l, 13)
			s.close(l)
			l, err = local.Open(faults, o) // compacts
			if err != nil {
				t.Fatal(err)
			}
			var acked int64
			for range 3 {
				e, err := l.Append(t.Context(), change, nil)
				if err == nil {
					acked = e.Index
				} else if !errors.Is(err, control.ErrUnavailable) {
					t.Fatalf("Append = %v, want no error or %v", err, control.ErrUnavailable)
				}
			}
			if err := l.Close(); err != nil && acked > 0 {
				t.Fatalf("Close after entry %d was acknowledged = %v, want no error", acked, err)
			}
			if steps >= step && acked == 0 && !strings.Contains(log.String(), "start yaya again") {
				t.Errorf("nothing was said: %s", &log)
			}
			if v := s.verify(); v.Problem != nil || v.Report.Last < acked {
				t.Fatalf("%+v, %d were acknowledged", v, acked)
			}
			l = s.open(edit)
			s.append(l, 10)
			s.close(l)
			s.close(s.open(edit))
			v := s.verify()
			if v.Problem != nil {
				t.Fatalf("verify finds %v, want no problem", v.Problem)
			}
			s.dense(s.indexes(), v.Report.Last)
			if len(s.segments()) == 0 {
				t.Error("the log was never compacted")
			}
		})
	}
}

// OP-35: readers of all kinds miss nothing and see nothing twice while the log closes
// its tail again and again.
func TestReadersWhileCompacting(t *testing.T) {
	const total = 100
	s := newSafe(t, t.TempDir())
	l := s.open(small(7, &controltest.Recorder{}))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	var followed, tailed []int64
	wg.Go(func() {
		err := l.Follow(ctx, 1, func(e control.Entry) error { followed = append(followed, e.Index); return nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Follow = %v, want %v", err, context.Canceled)
		}
	})
	tail := local.NewTail(journal.Root(s.root))
	next := func() {
		if err := tail.Next(func(e control.Entry) error { tailed = append(tailed, e.Index); return nil }); err != nil {
			t.Errorf("Next of the tail = %v, want no error", err)
		}
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			next()
		}
	})
	wg.Go(func() {
		for ctx.Err() == nil {
			if v, err := local.Verify(journal.Root(s.root), s.keys); err != nil || v.Problem != nil {
				t.Errorf("Verify beside the writer: %v, %v", v.Problem, err)
				return
			}
			if v, err := local.Check(journal.Root(s.root), s.keys); err != nil || v.Problem != nil {
				t.Errorf("Check beside the writer: %v, %v", v.Problem, err)
				return
			}
		}
	})
	wg.Go(func() {
		for ctx.Err() == nil {
			if _, err := local.AuditFile(ctx, journal.Root(s.root), control.Query{Limit: 20}); err != nil && ctx.Err() == nil {
				t.Errorf("AuditFile beside the writer = %v, want no error", err)
				return
			}
			var got []int64
			if err := l.Read(1, func(e control.Entry) error { got = append(got, e.Index); return nil }); err != nil {
				t.Errorf("Read beside the writer = %v, want no error", err)
				return
			}
			for i, index := range got {
				if index != int64(i+1) {
					t.Errorf("Read visits %v", got)
					return
				}
			}
		}
	})
	for range total {
		s.append(l, 1)
		l.SealNow()
	}
	last := l.State().Last
	stop()
	wg.Wait()
	s.close(l)
	next()
	s.dense(tailed, last+1)
	if len(followed) == 0 || int64(len(followed)) > last {
		t.Errorf("%d entries were followed", len(followed))
	}
	for i, index := range followed {
		if index != int64(i+1) {
			t.Fatalf("followed %v", followed)
		}
	}
	if len(s.segments()) < 15 {
		t.Errorf("%d segments prove little", len(s.segments()))
	}
}

// A tail that begins behind the snapshot has the state and what comes after.
func TestResumedTail(t *testing.T) {
	s := newSafe(t, t.TempDir())
	want := &controltest.Recorder{}
	for range 3 {
		want = &controltest.Recorder{}
		l := s.open(small(10, want))
		s.append(l, 13)
		s.close(l)
	}
	got := &controltest.Recorder{}
	tail, err := local.Resume(journal.Root(s.root), got)
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	if err := tail.Next(func(e control.Entry) error { read++; return got.Apply(e) }); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got.Entries()) != fmt.Sprint(want.Entries()) || read != 14 {
		t.Errorf("%d entries were read, want 14, and the state has %d entries, want %d", read, len(got.Entries()), len(want.Entries()))
	}
}

// OP-34, REL-7: kill -9 before every step of a start, a compaction and a stop, and in
// the middle of writes: nothing that was acknowledged is lost, the next start goes on,
// and the snapshot has what the entries led to.
func TestKilledWhileCompacting(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		t.Run(map[bool]string{true: "fresh", false: "the same"}[fresh], func(t *testing.T) {
			dir := t.TempDir()
			killed, ended := 0, 0
			for at := 1; at <= 90 && ended < 3; at++ {
				if fresh { // which has a tail that is due
					dir = t.TempDir()
					s := newSafe(t, dir)
					l := s.open(func(o *local.Options) { o.Projections = []control.Projection{&controltest.Recorder{}} })
					s.append(l, 4)
					s.close(l)
				}
				acked, dead := killedAt(t, dir, at, segmentChild+"=yes")
				if dead {
					killed++
				} else {
					ended++
				}
				s := newSafe(t, dir)
				if v := s.verify(); v.Problem != nil || v.Report.Last < acked {
					t.Fatalf("step %d: %+v, %d entries were acknowledged", at, v, acked)
				}
				if v, err := local.Check(journal.Root(s.root), s.keys); err != nil || v.Problem != nil {
					t.Fatalf("step %d: Check = %v, %v", at, v.Problem, err)
				}
				if !fresh && at%5 > 0 {
					continue
				}
				rec := &controltest.Recorder{}
				l := s.open(small(3, rec))
				s.append(l, 1)
				s.close(l)
				all := s.indexes()
				s.dense(all, s.verify().Report.Last)
				got := rec.Entries()
				if len(got) != len(all) || got[len(got)-1].Index != all[len(all)-1] {
					t.Fatalf("step %d: the state has %d entries, want %d", at, len(got), len(all))
				}
			}
			if killed < 30 || (fresh && ended == 0) {
				t.Errorf("%d kills and %d ends prove little", killed, ended)
			}
		})
	}
}
