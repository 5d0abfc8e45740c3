package session_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/journal/journaltest"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// write writes a file of a session.
func (w *world) write(id, name, content string) {
	w.t.Helper()
	file := filepath.Join(w.dir, "sessions", event.Folder(id), name)
	err := os.MkdirAll(filepath.Dir(file), 0o700)                      //nolint:forbidigo // a test's own folder
	err = errors.Join(err, os.WriteFile(file, []byte(content), 0o600)) //nolint:forbidigo // a test's own folder
	if err != nil {
		w.t.Fatal(err)
	}
}

// files returns the files below a folder of the data directory.
func files(t testing.TB, dir, below string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, below), func(name string, d os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() && !strings.Contains(name, ".index") {
			rel, _ := filepath.Rel(dir, name)
			out = append(out, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// OP-14, OP-112, REL-7: a deleted session leaves nothing, whether or not it was open, nor do its
// sub-agents; one whose turn runs cannot be deleted, nor one that somebody does not agree to.
func TestDelete(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	w.say("keep", "hello")
	for _, id := range []string{"s1", "s2"} {
		w.say(id, "hello")
		if _, err := w.open(id).SetQueue([]session.Prompt{{ID: "p1", Text: "later"}}, ""); err != nil {
			t.Fatal(err)
		}
		w.write(id, "attachments/a.png", "x")
		w.write(id, "artifacts/turn_1/art_1", "x")
	}
	w.stop()
	w = newWorld(t, dir)
	s := w.open("s1")
	publish(w, event.TurnWasStarted, "s1", event.TurnStarted{TurnID: "turn_1"})
	if _, err := w.Delete("s1", "", nil); !errors.Is(err, session.ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
	publish(w, event.TurnWasCompleted, "s1", event.TurnCompleted{TurnID: "turn_1"})
	no := errors.New("no")
	if _, err := w.Delete("s1", "", func() error { return no }); !errors.Is(err, no) {
		t.Errorf("got %v, want the refusal", err)
	}
	for _, id := range []string{"s1", "s2"} {
		if kept, err := w.Delete(id, "", nil); err != nil || kept {
			t.Errorf("got %v, %v; want it deleted and not kept", kept, err)
		}
		if _, err := w.Find(id, ""); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	}
	if _, err := s.Messages(); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	if got := files(t, dir, "tapes"); len(got) != 1 {
		t.Errorf("got %v, want one tape", got)
	}
	if got := files(t, dir, "sessions"); len(got) != 0 {
		t.Errorf("got %v, want no files", got)
	}
	if got := rows(t, w.Manager, 10); len(got) != 1 || !strings.HasPrefix(got[0], "keep ") {
		t.Errorf("got %v, want keep alone", got)
	}
	w.say("s1", "a new one") // the id is free
	if got := history(t, w.open("s1")); len(got) != 1 {
		t.Errorf("got %v, want a new session", got)
	}
}

// OP-14: a damaged session can be deleted.
func TestDeleteDamaged(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	for range 3 {
		w.say("s1", "hello")
	}
	w.stop()
	file := filepath.Join(dir, files(t, dir, "tapes")[0])
	raw, err := os.ReadFile(file) //nolint:forbidigo // a test's own folder
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)/2] ^= 1
	if err := os.WriteFile(file, raw, 0o600); err != nil { //nolint:forbidigo // a test's own folder
		t.Fatal(err)
	}
	w = newWorld(t, dir)
	if _, err := w.Delete("s1", "", nil); err != nil {
		t.Errorf("Delete of a damaged session = %v, want no error", err)
	}
	if got := files(t, dir, "tapes"); len(got) != 0 {
		t.Errorf("got %v, want nothing", got)
	}
}

// OP-15, REL-10: a fork has the attachments and artifacts of its parent, whatever becomes
// of the parent; its conversation can still be read, and is removed from the archive with
// the last fork.
func TestForkKeepsFiles(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	w.say("s1", "hello")
	w.write("s1", "attachments/a.png", "x")
	w.write("s1", "attachments/.unfinished", "x")
	w.write("s1", "artifacts/turn_1/art_1", "x")
	for _, id := range []string{"f1", "f2"} {
		if _, err := w.Fork("s1", id); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := w.Delete("s1", "", nil); err != nil || !kept {
		t.Errorf("got %v, %v, want that the tape is kept", kept, err)
	}
	for _, id := range []string{"f1", "f2"} {
		want := []string{"sessions/" + id + "/artifacts/turn_1/art_1", "sessions/" + id + "/attachments/a.png"}
		if got := files(t, dir, "sessions/"+id); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if got := history(t, w.open(id)); len(got) != 1 {
			t.Errorf("got %v, want the parent's history", got)
		}
	}
	all, _, err := w.Archives("", 10)
	if err != nil || len(all) != 0 {
		t.Errorf("got %v, %v, want no archived sessions", all, err)
	}
	for n, id := range []string{"f1", "f2"} {
		if _, err := w.PruneArchives(time.Now()); err != nil {
			t.Fatal(err)
		}
		if got := files(t, dir, "tapes/.archive"); len(got) != 1 {
			t.Errorf("before the end of fork %d: got %v, want the parent's tape", n+1, got)
		}
		if _, err := w.Delete(id, "", nil); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := w.PruneArchives(time.Time{}); err != nil || n != 1 {
		t.Errorf("got %d, %v, want 1", n, err)
	}
	if got := append(files(t, dir, "tapes"), files(t, dir, "sessions")...); len(got) != 0 {
		t.Errorf("got %v, want nothing", got)
	}
}

// OP-16, REL-7: archived sessions are listed page by page, and pruned by age, but not those
// that a fork, or a fork of one, still reads.
func TestArchives(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	w.say("a", "first")
	for _, f := range [][2]string{{"a", "b"}, {"b", "c"}} {
		if _, err := w.Fork(f[0], f[1]); err != nil {
			t.Fatal(err)
		}
	}
	w.say("d", "alone")
	for _, id := range []string{"a", "b", "d"} {
		if _, err := w.Archive(id, ""); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	after := ""
	for {
		page, more, err := w.Archives(after, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range page {
			got = append(got, fmt.Sprint(a.SessionID, " ", a.Title, " ", a.Needed))
			after = a.Name
		}
		if !more {
			break
		}
	}
	if want := []string{"d alone false", "b  true", "a first true"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if n, err := w.PruneArchives(time.Now().Add(-time.Hour)); err != nil || n != 0 {
		t.Errorf("got %d, %v, want 0: they are young", n, err)
	}
	if n, err := w.PruneArchives(time.Now().Add(time.Hour)); err != nil || n != 1 {
		t.Errorf("got %d, %v, want 1", n, err)
	}
	if got := history(t, w.open("c")); len(got) != 1 {
		t.Errorf("got %v, want the history of the archived ones", got)
	}
}

// OP-14, OP-112: killed at any step of a deletion, the session is there as a whole with its
// queue, or gone: its files go at the next sweep, the marker of its queue at the next start.
func TestDeleteInterrupted(t *testing.T) {
	for n := 1; ; n++ {
		dir := t.TempDir()
		w := newWorld(t, dir)
		w.say("s1", "hello")
		if _, err := w.open("s1").SetQueue([]session.Prompt{{ID: "p1", Text: "later"}}, ""); err != nil {
			t.Fatal(err)
		}
		w.write("s1", "attachments/a.png", "x")
		rows(t, w.Manager, 1)
		w.stop()
		steps, failed, armed := 0, false, false
		disk := &journaltest.Faults{Before: func(s journaltest.Step) error {
			if !armed {
				return nil
			}
			if steps++; steps >= n { // from here on nothing reaches the disk
				failed = true
				return errors.New("the disk is gone")
			}
			return nil
		}}
		w = newWorld(t, dir, func(c *session.Config) { disk.FS = c.FS; c.FS = disk })
		armed = true
		_, err := w.Delete("s1", "", nil)
		armed = false
		w.stop()
		w = newWorld(t, dir)
		if err := w.Sweep(); err != nil {
			t.Fatal(err)
		}
		resumed := 0
		if err := w.WithQueue(t.Context(), func(*session.Session) { resumed++ }); err != nil {
			t.Fatal(err)
		}
		marks := files(t, dir, "tapes/.queued")
		_, gone := w.Find("s1", "")
		left := files(t, dir, "sessions")
		switch {
		case errors.Is(gone, session.ErrNotFound) && len(left)+len(marks)+resumed == 0:
		case gone == nil && len(left) == 1 && len(marks) == 1 && resumed == 1 && err != nil:
		default:
			t.Errorf("step %d: %v: the session: %v, its files: %v, markers of queues: %v, queues that go on: %d", n, err, gone, left, marks, resumed)
		}
		w.stop()
		if !failed {
			if n < 5 {
				t.Errorf("only %d steps", n)
			}
			return
		}
	}
}

// age makes the files below a folder of the data directory older.
func (w *world) age(below string, by time.Duration) {
	w.t.Helper()
	for _, f := range files(w.t, w.dir, below) {
		at := time.Now().Add(-by)
		if err := os.Chtimes(filepath.Join(w.dir, f), at, at); err != nil {
			w.t.Fatal(err)
		}
	}
}

// OP-17, REL-7: old artifacts go when no tape refers to them, archived tapes included; those
// of sessions in use, attachments, and whatever is young stay.
func TestPruneFiles(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	w.say("s1", "see art_REFERRED")
	w.say("s2", "see art_BEFORE")
	if _, err := w.open("s2").Reset(true); err != nil {
		t.Fatal(err)
	}
	for _, f := range [][2]string{
		{"s1", "artifacts/turn_1/art_REFERRED"}, {"s1", "artifacts/turn_1/art_LOST"}, {"s1", "attachments/a.png"}, {"s1", "session.json"},
		{"s2", "artifacts/art_BEFORE"}, {"s2", "artifacts/art_LOST"},
		{"_bridge:a:1", "artifacts/art_OLD"},
		{"gone", "session.json"}, {"gone", "artifacts/art_OLD"},
	} {
		w.write(f[0], f[1], "x")
	}
	w.age("sessions", 48*time.Hour)
	w.write("s1", "artifacts/turn_1/art_YOUNG", "x")
	w.write("_bridge:a:1", "artifacts/art_YOUNG", "x")
	n, err := w.PruneFiles(time.Now().Add(-24 * time.Hour))
	if err != nil || n != 5 {
		t.Errorf("got %d, %v, want 5", n, err)
	}
	bridge := "sessions/" + event.Folder("_bridge:a:1")
	want := []string{
		bridge + "/artifacts/art_YOUNG", "sessions/s1/artifacts/turn_1/art_REFERRED", "sessions/s1/artifacts/turn_1/art_YOUNG", "sessions/s1/attachments/a.png", "sessions/s1/session.json",
		"sessions/s2/artifacts/art_BEFORE",
	}
	if got := files(t, dir, "sessions"); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// OP-18: sessions that have not changed for a while are stale, but not those that somebody
// works with, nor sub-agents, which go with theirs.
func TestStale(t *testing.T) {
	w := newWorld(t, t.TempDir())
	rows(t, w.Manager, 1) // from here on the index has the times, not the file system
	for _, id := range []string{"s1", "s2", "s3"} {
		w.say(id, "hello")
	}
	between := time.Now()
	w.say("s3", "again")
	defer w.open("s2").Pin()()
	got, err := w.Stale(between)
	if err != nil || len(got) != 1 || got[0].ID != "s1" {
		t.Errorf("got %+v, %v, want s1", got, err)
	}
	if got, err := w.Stale(time.Now().Add(-time.Hour)); err != nil || len(got) != 0 {
		t.Errorf("got %+v, %v, want none", got, err)
	}
}

// A deletion and an archive tell others to remove what they keep of the session. A reset does not, whether or not
// its tape is kept: the session goes on.
func TestEnded(t *testing.T) {
	w := newWorld(t, t.TempDir())
	var ended []string
	w.SetEnded(func(id string) error { ended = append(ended, id); return nil })
	for _, id := range []string{"deleted", "archived", "reset"} {
		w.say(id, "hello")
	}
	for _, keep := range []bool{false, true} {
		if _, err := w.open("reset").Reset(keep); err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.Delete("deleted", "", nil)
	if _, aerr := w.Archive("archived", ""); err != nil || aerr != nil || !slices.Equal(ended, []string{"deleted", "archived"}) {
		t.Errorf("ended: %q, %v, %v; want the deleted session and the archived one", ended, err, aerr)
	}
}

// A session is deleted, or archived, although others cannot remove all that they keep of it: the log says so, since
// nobody can do it again.
func TestEndedInVain(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t, t.TempDir(), func(c *session.Config) { c.Log = zerolog.New(&log) })
	w.SetEnded(func(id string) error { return errors.New("files of " + id + " stay") })
	w.say("deleted", "hello")
	w.say("archived", "hello")
	_, err := w.Delete("deleted", "", nil)
	if _, aerr := w.Archive("archived", ""); err != nil || aerr != nil {
		t.Errorf("Delete = %v, Archive = %v, want no errors", err, aerr)
	}
	for _, want := range []string{"files of deleted stay", "files of archived stay"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log is %s, want %q", log.String(), want)
		}
	}
}

// A session that is gone has ended, although a tape of a sub-agent could not be deleted, or the disk has not
// confirmed the removal: nobody can delete it again.
func TestEndedInAnyCase(t *testing.T) {
	no := errors.New("no")
	sub := "s1" + event.AgentSeparator + "a1"
	for _, failing := range []string{"rename tapes/.deleted/" + session.TapeName("/ws", sub) + "~" + event.Folder(sub), "syncdir tapes/.deleted"} {
		armed := false
		disk := &journaltest.Faults{Before: func(s journaltest.Step) error {
			if armed && s.Op+" "+s.Name == failing {
				return no
			}
			return nil
		}}
		w := newWorld(t, t.TempDir(), func(c *session.Config) { disk.FS = c.FS; c.FS = disk })
		w.say("s1", "hello")
		if _, err := w.Fork("s1", sub); err != nil {
			t.Fatal(err)
		}
		var ended []string
		w.SetEnded(func(id string) error { ended = append(ended, id); return nil })
		armed = true
		_, err := w.Delete("s1", "", nil)
		armed = false
		if !errors.Is(err, no) || !slices.Equal(ended, []string{"s1"}) {
			t.Errorf("%s fails: Delete = %v, and %q ended; want the error, and s1", failing, err, ended)
		}
		if _, err := w.Find("s1", ""); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%s fails: Find = %v, want ErrNotFound", failing, err)
		}
	}
}
