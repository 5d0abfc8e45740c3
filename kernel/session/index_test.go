package session_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

const indexPath = "tapes/.index/sessions"

// rows lists all sessions page by page, in the order of the list.
func rows(t testing.TB, m *session.Manager, size int) (out []string) {
	t.Helper()
	var after session.Place
	for {
		infos, more, err := m.Page(after, size, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range infos {
			out = append(out, fmt.Sprintf("%s in %s of %s: %s, %d bytes", i.ID, i.Workspace, i.ParentID, i.Title, i.Size))
		}
		if !more {
			return out
		}
		after = session.Place{Changed: infos[len(infos)-1].Modified, ID: infos[len(infos)-1].ID}
	}
}

// copied copies a data directory as it is, whoever works on it.
func copied(t testing.TB, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil { //nolint:forbidigo // a test's own folder
		t.Fatal(err)
	}
	return to
}

// OP-10, REL-8: the index always agrees with the tapes: while
// yaya runs, after a stop, after a crash at any time, and after any damage to its file.
func TestIndexAgreesWithTapes(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { indexAgrees(t, rand.New(rand.NewPCG(seed, 18))) })
	}
}

func indexAgrees(t *testing.T, r *rand.Rand) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	check := func(what string) {
		t.Helper()
		got := rows(t, w.Manager, 1+r.IntN(7))
		bare := copied(t, dir)
		if err := os.RemoveAll(filepath.Join(bare, "tapes/.index")); err != nil { //nolint:forbidigo // a test's own folder
			t.Fatal(err)
		}
		o := newWorld(t, bare)
		want := rows(t, o.Manager, 1000)
		o.stop()
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("after %s: got\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	known := map[string]bool{}
	some := func() string {
		ids := slices.Sorted(maps.Keys(known))
		return ids[r.IntN(len(ids))]
	}
	check("nothing")
	for n := range 40 {
		id := fmt.Sprint("s", n)
		what := r.IntN(9)
		if len(known) == 0 {
			what = 0
		}
		switch what {
		case 0, 1:
			if _, err := w.Open(id, []string{"", "/a", "/b"}[r.IntN(3)]); err != nil {
				t.Fatal(err)
			}
			known[id] = true
		case 2, 3:
			w.say(some(), fmt.Sprint("message ", n))
		case 4:
			if _, err := w.Fork(some(), id); err != nil {
				t.Fatal(err)
			}
			known[id] = true
		case 5:
			s, err := w.Find(some(), "")
			if err == nil {
				_, err = s.Reset(r.IntN(2) == 0)
			}
			if err != nil {
				t.Fatal(err)
			}
		case 6:
			id = some()
			if _, err := w.Archive(id, ""); err != nil {
				t.Fatal(err)
			}
			delete(known, id)
		case 7: // another process, of any version, copies a tape in
			elsewhere := newWorld(t, t.TempDir())
			elsewhere.say(id, "from elsewhere")
			elsewhere.stop()
			name := "tapes/" + session.TapeName("/ws", id) + ".jsonl"
			raw, err := os.ReadFile(filepath.Join(elsewhere.dir, name)) //nolint:forbidigo // a test's own folder
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), raw, 0o600) //nolint:forbidigo // a test's own folder
			}
			if err != nil {
				t.Fatal(err)
			}
			known[id] = true
		case 8:
			w = again(t, r, w, known)
			dir = w.dir
		}
		check(fmt.Sprint("step ", n, ", ", what))
	}
}

// again stops a world in one of the ways in which it can end, and starts the next.
func again(t *testing.T, r *rand.Rand, w *world, known map[string]bool) *world {
	t.Helper()
	dir := w.dir
	if r.IntN(2) == 0 { // killed: what is on the disk now is what is left
		dir = copied(t, dir)
	}
	w.stop()
	file := filepath.Join(dir, indexPath)
	raw, err := os.ReadFile(file) //nolint:forbidigo // a test's own folder
	if err != nil {
		t.Fatal(err)
	}
	switch r.IntN(5) {
	case 0:
		raw[r.IntN(len(raw))] ^= 1 << r.IntN(8)
	case 1:
		raw = raw[:r.IntN(len(raw))]
	case 2:
		raw = append(raw, "00000000 + what nobody wrote"...)
	}
	if err := os.WriteFile(file, raw, 0o600); err != nil { //nolint:forbidigo // a test's own folder
		t.Fatal(err)
	}
	w = newWorld(t, dir)
	if r.IntN(2) == 0 {
		// Right after a crash a page has all sessions; what it says of them may be some seconds old.
		listed := map[string]bool{}
		for _, row := range rows(t, w.Manager, 3) {
			id, _, _ := strings.Cut(row, " ")
			listed[id] = true
		}
		for id := range known {
			if !listed[id] {
				t.Errorf("session %s is not listed right after the end", id)
			}
		}
		if len(listed) != len(known) {
			t.Errorf("got %v, want %v", listed, known)
		}
	}
	if err := w.Index(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// readingFS counts the tapes that are opened.
type readingFS struct {
	journal.FS
	tapes atomic.Int64
}

func (r *readingFS) Open(name string, mode journal.Mode) (journal.File, error) {
	if strings.HasSuffix(name, ".jsonl") {
		r.tapes.Add(1)
	}
	return r.FS.Open(name, mode)
}

// OP-11, OP-100, REL-8: a page right after a start comes from the index, as do all after it;
// no tape is read for them, nor is one after a crash. Then those that have changed are read in
// the background.
func TestPagesReadNoTape(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	for n := range 50 {
		w.say(fmt.Sprint("s", n), "hello")
	}
	want := rows(t, w.Manager, 7)
	if len(want) != 50 || !strings.HasPrefix(want[0], "s49 ") {
		t.Fatalf("got %d: %v; want 50 rows, s49 first", len(want), want)
	}
	one := func() {
		t.Helper()
		if got, ok, err := w.Info("s9"); !ok || err != nil || got.ID != "s9" || got.Title != "hello" || got.Workspace != "/ws" || got.Size == 0 {
			t.Errorf("Info = %+v, %v, %v, want session s9", got, ok, err)
		}
		if got, ok, err := w.Info("nobody"); ok || err != nil {
			t.Errorf("Info of an unknown id = %+v, %v, %v, want none", got, ok, err)
		}
	}
	one()
	w.stop()
	count := &readingFS{}
	reading := func(c *session.Config) { count.FS, c.FS = c.FS, count }
	w = newWorld(t, dir, reading)
	if got := rows(t, w.Manager, 7); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	one()
	if n := count.tapes.Load(); n != 0 {
		t.Errorf("%d tapes were read for pages, want 0", n)
	}
	w.say("s7", "again")
	crashed := copied(t, dir)
	w.stop()
	count = &readingFS{}
	w = newWorld(t, crashed, reading)
	if got := rows(t, w.Manager, 7); len(got) != 50 {
		t.Errorf("got %d sessions after a crash, want 50", len(got))
	}
	if n := count.tapes.Load(); n != 0 {
		t.Errorf("%d tapes were read for pages after a crash, want 0", n)
	}
	if err := w.Index(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := rows(t, w.Manager, 7); len(got) != 50 || !strings.HasPrefix(got[0], "s7 ") {
		t.Errorf("got %v, want 50 sessions, and s7 first", got)
	}
	// A copy has times of its own, so nothing is believed.
	if n := count.tapes.Load(); n == 0 {
		t.Error("nothing was compared after a crash")
	}
	w.stop()
}

// OP-11: a session that changes moves to the front, and a page that goes on behind a
// place neither repeats nor leaves out what has not changed.
func TestPagesWhileSessionsChange(t *testing.T) {
	w := newWorld(t, t.TempDir())
	for n := range 30 {
		w.say(fmt.Sprintf("s%02d", n), "hello")
	}
	seen := map[string]int{}
	var after session.Place
	for n := 0; ; n++ {
		infos, more, err := w.Page(after, 4, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range infos {
			seen[i.ID]++
			after = session.Place{Changed: i.Modified, ID: i.ID}
		}
		if !more {
			break
		}
		w.say(fmt.Sprintf("s%02d", n%3), "again") // the oldest, which come last
	}
	for n := range 30 {
		id := fmt.Sprintf("s%02d", n)
		if want := 1; n >= 3 && seen[id] != want {
			t.Errorf("%s was listed %d times, want %d", id, seen[id], want)
		}
	}
	if got := rows(t, w.Manager, 100); !strings.HasPrefix(got[0], "s0") {
		t.Errorf("got %s first, want one that changed", got[0])
	}
}

// OP-12: marks filter lists, and outlive a restart.
func TestMarks(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	rows(t, w.Manager, 1)
	for n := range 10 {
		id := fmt.Sprint("s", n)
		w.say(id, "hello")
		w.Mark(id, []string{"red", "green"}[n%2], time.Now())
	}
	w.Mark("s0", "not a word", time.Now())
	w.Mark("nobody", "red", time.Now())
	check := func() {
		t.Helper()
		ids, err := w.Marked(func(_, mark string) bool { return mark == "red" })
		slices.Sort(ids)
		if err != nil || !slices.Equal(ids, []string{"s0", "s2", "s4", "s6", "s8"}) {
			t.Errorf("got %v, %v; want [s0 s2 s4 s6 s8]", ids, err)
		}
		infos, more, err := w.Page(session.Place{}, 3, func(_, mark string) bool { return mark == "red" })
		if err != nil || !more || len(infos) != 3 || infos[0].ID != "s8" || infos[0].Mark != "red" {
			t.Errorf("got %+v, %v, %v; want 3 infos with more to come, the red s8 first", infos, more, err)
		}
	}
	check()
	w.stop()
	w = newWorld(t, dir)
	check()
}

// OP-10: two processes on one data directory both list everything; the one that came
// first writes the index, and the other does when it has gone.
func TestIndexOfTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	a := newWorld(t, dir)
	a.say("first", "hello")
	rows(t, a.Manager, 10)
	b := newWorld(t, dir)
	b.say("second", "hello")
	for _, w := range []*world{a, b} {
		if got := rows(t, w.Manager, 10); len(got) != 2 {
			t.Errorf("got %v, want two sessions", got)
		}
	}
	a.stop()
	b.say("third", "hello")
	b.stop()
	c := newWorld(t, dir)
	if got := rows(t, c.Manager, 10); len(got) != 3 {
		t.Errorf("got %v, want three sessions", got)
	}
}

// OP-101, REL-8: a start reads no tape of a session in which nothing is open. After an
// unclean end it reads those that the index, which is some seconds old, does not know as
// they are, and it ends the turn that the end has left.
func TestRepairReadsWhatChanged(t *testing.T) {
	for name, clean := range map[string]bool{"clean end": true, "unclean end": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := newWorld(t, dir)
			for n := range 30 {
				w.say(fmt.Sprint("s", n), "hello")
				if _, err := bus.Publish(w.bus.Kernel(), event.TurnWasCompleted, fmt.Sprint("s", n), event.TurnCompleted{TurnID: "t"}); err != nil {
					t.Fatal(err)
				}
			}
			rows(t, w.Manager, 100)
			w.stop()
			count := &readingFS{}
			reading := func(c *session.Config) { count.FS, c.FS = c.FS, count }
			repaired := func() (ids []string) {
				t.Helper()
				w = newWorld(t, dir, reading)
				if err := w.Repair(t.Context(), func(s *session.Session) { ids = append(ids, s.ID()) }); err != nil {
					t.Fatal(err)
				}
				return ids
			}
			if ids := repaired(); len(ids) != 0 || count.tapes.Load() != 0 {
				t.Errorf("after a clean end Repair visited %v and opened %d tapes, want none", ids, count.tapes.Load())
			}
			w.stop()
			old, err := os.ReadFile(filepath.Join(dir, indexPath)) //nolint:forbidigo // a test's own folder
			if err != nil {
				t.Fatal(err)
			}
			w = newWorld(t, dir)
			rows(t, w.Manager, 100)
			w.say("s7", "again")
			if _, err := bus.Publish(w.bus.Kernel(), event.TurnWasStarted, "s7", event.TurnStarted{TurnID: "t2"}); err != nil {
				t.Fatal(err)
			}
			w.stop()
			if !clean {
				if err := errors.Join(os.WriteFile(filepath.Join(dir, indexPath), old, 0o600), os.Remove(filepath.Join(dir, "tapes/.index/clean"))); err != nil { //nolint:forbidigo // a test's own folder
					t.Fatal(err)
				}
			}
			count.tapes.Store(0)
			if ids := repaired(); !slices.Equal(ids, []string{"s7"}) || count.tapes.Load() > 10 {
				t.Errorf("Repair visited %v and opened %d tapes, want s7 alone", ids, count.tapes.Load())
			}
			last := ""
			if err := w.View("s7", "", 0, func(e session.Entry) error { last = string(e.Payload); return nil }); err != nil || !strings.Contains(last, event.TurnHasFailed.Name()) {
				t.Errorf("the tape ends with %s, %v, want the end of the turn", last, err)
			}
			w.stop()
			count.tapes.Store(0)
			if ids := repaired(); len(ids) != 0 || count.tapes.Load() != 0 {
				t.Errorf("the next Repair visited %v and opened %d tapes, want none", ids, count.tapes.Load())
			}
		})
	}
}

// OP-100: right after an unclean end a page has the sessions whose rows were not yet in the
// file of the index, and not those whose tapes are gone.
func TestPageAfterUncleanEnd(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	for n := range 5 {
		w.say(fmt.Sprint("s", n), "hello")
	}
	rows(t, w.Manager, 100)
	w.stop()
	old, err := os.ReadFile(filepath.Join(dir, indexPath)) //nolint:forbidigo // a test's own folder
	if err != nil {
		t.Fatal(err)
	}
	w = newWorld(t, dir)
	rows(t, w.Manager, 100)
	w.say("late", "hello")
	w.stop()
	for _, err := range []error{
		os.WriteFile(filepath.Join(dir, indexPath), old, 0o600),                        //nolint:forbidigo // a test's own folder
		os.Remove(filepath.Join(dir, "tapes/.index/clean")),                            //nolint:forbidigo // a test's own folder
		os.Remove(filepath.Join(dir, "tapes", session.TapeName("/ws", "s2")+".jsonl")), //nolint:forbidigo // a test's own folder
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	w = newWorld(t, dir)
	var got []string
	for _, row := range rows(t, w.Manager, 2) {
		id, _, _ := strings.Cut(row, " ")
		got = append(got, id)
	}
	slices.Sort(got)
	if want := []string{"late", "s0", "s1", "s3", "s4"}; !slices.Equal(got, want) {
		t.Errorf("the page has %v, want %v", got, want)
	}
}
