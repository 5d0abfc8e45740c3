package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/journal/journaltest"
	"github.com/yaya-ai/yaya/kernel/session"
)

// repairAnchor is the state of an anchor that a repair has written.
type repairAnchor struct {
	Reason string `json:"reason"`
	Lost   struct {
		First, Count int64
		Aside        string
		Inherited    bool
		Orphaned     bool
	} `json:"lost"`
}

// conversation makes a tape of a few messages in a directory of its own, and returns the
// name of its file below the directory, and its content.
func conversation(t *testing.T, id string, texts ...string) (dir, file string, whole []byte) {
	t.Helper()
	dir = t.TempDir()
	w := newWorld(t, dir)
	w.open(id)
	for _, text := range texts {
		w.say(id, text)
	}
	w.stop()
	file = "tapes/" + session.TapeName("/ws", id) + ".jsonl"
	whole, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return dir, file, whole
}

func put(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// REL-6, OP-20: a tape with a flipped bit is refused with the command that mends it; after
// that, the session opens with all that could be verified, says what it lost, and goes
// on. The damaged file is kept.
func TestMendFlippedBits(t *testing.T) {
	dir, file, whole := conversation(t, "s1", "one", "two", "three")
	path := filepath.Join(dir, file)
	for i := 0; i < len(whole); i += 7 {
		bad := bytes.Clone(whole)
		bad[i] ^= 1 << (i % 8)
		put(t, path, bad)
		entry := bytes.Count(whole[:i], []byte("\n")) + 1
		w := newWorld(t, dir)
		_, err := w.Find("s1", "")
		if !errors.Is(err, session.ErrDamaged) || !strings.Contains(err.Error(), "yaya repair --session s1") {
			t.Fatalf("byte %d: Find = %v, want it damaged, with the command", i, err)
		}
		aside := fmt.Sprintf("damaged/%d", i)
		done, err := w.Mend(file, aside, session.Known{ID: "s1", Workspace: "/ws"})
		if err != nil || done == nil {
			t.Fatalf("byte %d: Mend = %+v, %v, want it mended", i, done, err)
		}
		lines := int64(bytes.Count(bad, []byte("\n"))) // a flipped line end joins two lines
		if bad[len(bad)-1] != '\n' {
			lines++
		}
		if done.Session != "s1" || done.Kept != int64(entry-1) || done.Lost != lines-int64(entry-1) {
			t.Errorf("byte %d: Mend = %+v, want %d entries kept and %d lost", i, done, entry-1, lines-int64(entry-1))
		}
		if kept, err := os.ReadFile(filepath.Join(dir, done.Aside)); err != nil || !bytes.Equal(kept, bad) {
			t.Errorf("byte %d: the damaged file was not kept: %v", i, err)
		}
		want := []string{"user: one", "user: two", "user: three"}[:max(entry-2, 0)]
		equal(t, history(t, w.open("s1")), want...)
		got := entries(t, w.open("s1"))
		a, told := repairOf(t, got[len(got)-1])
		if !told || a.Lost.Aside != done.Aside || a.Lost.Count != done.Lost || a.Lost.First != max(int64(entry), 1) {
			t.Errorf("byte %d: the tape ends with %s, want what was lost", i, brief(got[len(got)-1]))
		}
		w.say("s1", "goes on")
		w.stop()
		w = newWorld(t, dir)
		equal(t, history(t, w.open("s1")), append(want, "user: goes on")...)
		w.stop()
		if _, f, err := session.Verify(w.fs); err != nil || len(f) != 0 {
			t.Fatalf("byte %d: Verify after the repair = %+v, %v, want nothing", i, f, err)
		}
		if again, err := newWorld(t, dir).Mend(file, "damaged/again", session.Known{}); again != nil || err != nil {
			t.Errorf("byte %d: Mend of a whole tape = %+v, %v, want nothing done", i, again, err)
		}
	}
}

func repairOf(t *testing.T, e session.Entry) (a repairAnchor, ok bool) {
	t.Helper()
	var anchor session.Anchor
	if e.Kind != session.KindAnchor || json.Unmarshal(e.Payload, &anchor) != nil || anchor.Name != "session/repair" {
		return a, false
	}
	if err := json.Unmarshal(anchor.State, &a); err != nil {
		t.Fatal(err)
	}
	return a, true
}

// REL-6, OP-21: a tape that was cut at the end of an entry, or emptied, is found by what is
// known beside it, and says so once it is mended.
func TestMendCutTape(t *testing.T) {
	dir, file, whole := conversation(t, "s1", "one", "two", "three")
	path := filepath.Join(dir, file)
	w := newWorld(t, dir)
	sn, err := w.open("s1").Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	w.stop()
	known := session.Known{ID: "s1", Workspace: "/ws", Counted: sn.Cursor()}
	tape := strings.TrimSuffix(filepath.Base(file), ".jsonl")
	for _, n := range []int{0, 10, bytes.IndexByte(whole, '\n') + 1, bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1, len(whole) - 3} {
		put(t, path, whole[:n])
		fsys := rootFS(t, dir)
		_, f, err := session.VerifyKnown(fsys, map[string]session.Known{tape: known})
		if damaged := slices.ContainsFunc(f, func(f session.Finding) bool { return f.Damaged }); err != nil || !damaged {
			t.Errorf("cut at %d: VerifyKnown = %+v, %v, want it damaged", n, f, err)
		}
		w := newWorld(t, dir)
		done, err := w.Mend(file, fmt.Sprintf("damaged/%d", n), known)
		if err != nil || done == nil {
			t.Fatalf("cut at %d: Mend = %+v, %v, want it mended", n, done, err)
		}
		left := int64(bytes.Count(whole[:n], []byte("\n")))
		if done.Kept != left || done.Lost != known.Counted.Seq-left {
			t.Errorf("cut at %d: Mend = %+v, want %d entries kept and %d lost", n, done, left, known.Counted.Seq-left)
		}
		equal(t, history(t, w.open("s1")), []string{"user: one", "user: two", "user: three"}[:max(left-1, 0)]...)
		got := entries(t, w.open("s1"))
		if a, told := repairOf(t, got[len(got)-1]); !told || a.Lost.Count != done.Lost {
			t.Errorf("cut at %d: the tape ends with %s, want what was lost", n, brief(got[len(got)-1]))
		}
		w.stop()
		if _, f, err := session.VerifyKnown(fsys, map[string]session.Known{tape: known}); err != nil || len(f) != 0 {
			t.Errorf("cut at %d: VerifyKnown after the repair = %+v, %v, want nothing", n, f, err)
		}
	}
}

// OP-21: without anything that tells whose it was, a tape of which nothing can be verified
// is moved away, and the session is gone.
func TestMendUnknownTape(t *testing.T) {
	dir, file, whole := conversation(t, "s1", "one")
	whole[3] ^= 1
	put(t, filepath.Join(dir, file), whole)
	w := newWorld(t, dir)
	if _, err := w.Find("s1", ""); !errors.Is(err, session.ErrDamaged) {
		t.Errorf("Find = %v, want it damaged: the name of the file tells whose it is", err)
	}
	done, err := w.Mend(file, "damaged/x", session.Known{})
	if err != nil || done == nil || done.Kept != 0 || done.Lost != 2 {
		t.Fatalf("Mend = %+v, %v, want two entries lost", done, err)
	}
	if _, err := w.Find("s1", ""); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("Find after the repair = %v, want %v", err, session.ErrNotFound)
	}
	if kept, err := os.ReadFile(filepath.Join(dir, "damaged/x", file)); err != nil || !bytes.Equal(kept, whole) {
		t.Errorf("the damaged file was not kept: %v", err)
	}
}

// OP-22: a fork never sees entries that its parent got after a repair, although they have
// the ids of lost ones; a fork of the repaired session does. Forks that lost what they had
// inherited say so, and a fork whose parent is gone can be opened again.
func TestMendParent(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	w.open("p")
	w.say("p", "one")
	early, err := w.Fork("p", "early")
	if err != nil {
		t.Fatal(err)
	}
	w.say("p", "two")
	w.say("p", "three")
	if _, err := w.Fork("p", "late"); err != nil {
		t.Fatal(err)
	}
	w.say("late", "its own")
	if _, err := w.Fork("late", "later"); err != nil {
		t.Fatal(err)
	}
	w.stop()
	file := "tapes/" + session.TapeName("/ws", "p") + ".jsonl"
	path := filepath.Join(dir, file)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, path, bytes.Replace(data, []byte("two"), []byte("tw0"), 1))
	w = newWorld(t, dir)
	if _, err := w.Find("late", ""); !errors.Is(err, session.ErrDamaged) || !strings.Contains(err.Error(), "repair --session p") {
		t.Errorf("a fork of a damaged session: Find = %v, want the command for its parent", err)
	}
	if err := w.View("late", "", 0, func(session.Entry) error { return nil }); !errors.Is(err, session.ErrDamaged) {
		t.Errorf("a fork of a damaged session: View = %v, want it damaged", err)
	}
	done, err := w.Mend(file, "damaged/x", session.Known{})
	if err != nil || done == nil || !slices.Equal(done.Forks, []string{"late"}) {
		t.Fatalf("Mend = %+v, %v, want the fork late to have lost entries", done, err)
	}
	for range 4 { // more than were lost
		w.say("p", "afterwards")
	}
	fresh, err := w.Fork("p", "fresh")
	if err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		equal(t, history(t, early), "user: one")
		equal(t, history(t, w.open("late")), "user: one", "user: its own")
		equal(t, history(t, w.open("later")), "user: one", "user: its own")
		equal(t, history(t, fresh), "user: one", "user: afterwards", "user: afterwards", "user: afterwards", "user: afterwards")
		for _, id := range []string{"late", "later"} {
			for _, e := range entries(t, w.open(id)) {
				if strings.Contains(string(e.Payload), "afterwards") {
					t.Errorf("%s sees %s", id, brief(e))
				}
			}
		}
	}
	early = w.open("early")
	check()
	w.stop()
	w = newWorld(t, dir)
	early, fresh = w.open("early"), w.open("fresh")
	check()
	got := entries(t, w.open("late"))
	if a, told := repairOf(t, got[len(got)-1]); !told || !a.Lost.Inherited || a.Lost.First != 3 || a.Lost.Count != 2 {
		t.Errorf("the fork ends with %s, want what it lost of its parent", brief(got[len(got)-1]))
	}
	w.stop()

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w = newWorld(t, dir)
	if _, err := w.Find("late", ""); !errors.Is(err, session.ErrDamaged) || !strings.Contains(err.Error(), "repair --session late") {
		t.Errorf("a fork without its parent: Find = %v, want the command", err)
	}
	_, f, err := session.Verify(w.fs)
	if err != nil || len(f) != 3 { // early, late and fresh; later has its parent
		t.Fatalf("Verify = %+v, %v, want three forks without their parent", f, err)
	}
	for _, x := range f {
		if done, err := w.Mend(x.File, "damaged/y", session.Known{}); err != nil || done == nil {
			t.Errorf("Mend(%s) = %+v, %v, want it mended", x.File, done, err)
		}
	}
	equal(t, history(t, w.open("late")), "user: its own")
	equal(t, history(t, w.open("later")), "user: its own")
	if n := len(entries(t, w.open("later"))); n == 0 {
		t.Error("the fork of the fork has no entries")
	}
	if err := w.View("late", "", 0, func(session.Entry) error { return nil }); err != nil {
		t.Errorf("View of an orphan = %v, want its own entries", err)
	}
	if _, f, err := session.Verify(w.fs); err != nil || len(f) != 0 {
		t.Errorf("Verify after the repair = %+v, %v, want nothing", f, err)
	}
}

// OP-23: a tape that another process has open is not touched.
func TestMendOpenTape(t *testing.T) {
	dir, file, whole := conversation(t, "s1", "one")
	w := newWorld(t, dir)
	w.open("s1")
	whole[len(whole)/2] ^= 1
	path := filepath.Join(dir, file)
	put(t, path, whole)
	if _, err := newWorld(t, dir).Mend(file, "damaged/x", session.Known{}); !errors.Is(err, journal.ErrLocked) {
		t.Errorf("Mend = %v, want %v", err, journal.ErrLocked)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, whole) {
		t.Errorf("the tape was touched: %v", err)
	}
}

const mendChild = "YAYA_TEST_MEND_CHILD"

func mendingChild(spec string) {
	n, rest, _ := strings.Cut(spec, ":")
	file, dir, _ := strings.Cut(rest, ":")
	at, err := strconv.Atoi(n)
	var root *os.Root
	if err == nil {
		root, err = os.OpenRoot(dir)
	}
	var m *session.Manager
	if err == nil {
		m, err = session.OpenManager(session.Config{FS: journaltest.KillAt(journal.Root(root), at), Workspace: "/ws", Log: zerolog.Nop()})
	}
	if err == nil {
		_, err = m.Mend(file, fmt.Sprintf("damaged/%d", at), session.Known{ID: "s1", Workspace: "/ws"})
	}
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// OP-23: kill -9 before every step of a repair, and in the middle of writes: the tape is
// the damaged one or the mended one, and the next repair does the rest.
func TestKilledWhileMending(t *testing.T) {
	for name, i := range map[string]int{"in the first entry": 5, "in the last": -20} {
		t.Run(name, func(t *testing.T) {
			kills := 0
			for at := 1; at < 60; at++ {
				dir, file, bad := conversation(t, "s1", "one", "two")
				bad[(len(bad)+i)%len(bad)] ^= 1
				path := filepath.Join(dir, file)
				put(t, path, bad)
				cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
				cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d:%s:%s", mendChild, at, file, dir))
				out, err := cmd.Output()
				if err == nil {
					break
				}
				if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL {
					t.Fatalf("step %d: %v: %s", at, err, out)
				}
				kills++
				kept, err := filepath.Glob(filepath.Join(dir, "damaged", "*", file))
				if err != nil {
					t.Fatal(err)
				}
				now, err := os.ReadFile(path)
				if err != nil && len(kept) == 0 {
					t.Fatalf("step %d: the tape is gone", at)
				}
				w := newWorld(t, dir)
				if bytes.Equal(now, bad) {
					if _, err := w.Find("s1", ""); !errors.Is(err, session.ErrDamaged) {
						t.Errorf("step %d: Find = %v, want it damaged", at, err)
					}
				}
				if _, err := os.Stat(path); err == nil {
					if _, err := w.Mend(file, "damaged/again", session.Known{ID: "s1", Workspace: "/ws"}); err != nil {
						t.Fatalf("step %d: the next repair: %v", at, err)
					}
				}
				w.say("s1", "goes on")
				w.stop()
				if _, f, err := session.Verify(w.fs); err != nil || len(f) != 0 {
					t.Errorf("step %d: Verify = %+v, %v, want nothing", at, f, err)
				}
			}
			if kills < 5 {
				t.Errorf("%d kills prove little", kills)
			}
		})
	}
}
