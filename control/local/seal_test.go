package local_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/controltest"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/journal/journaltest"
)

// safe is a data directory with a sealed log.
type safe struct {
	t    testing.TB
	dir  string
	root *os.Root
	keys *os.Root
}

func newSafe(t testing.TB, dir string) *safe {
	t.Helper()
	s := &safe{t: t, dir: dir}
	var err error
	if s.root, err = os.OpenRoot(dir); err != nil {
		t.Fatal(err)
	}
	if err := s.root.MkdirAll("keys", 0o700); err != nil {
		t.Fatal(err)
	}
	if s.keys, err = s.root.OpenRoot("keys"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.keys.Close(); s.root.Close() })
	return s
}

func (s *safe) log() string  { return filepath.Join(s.dir, local.File) }
func (s *safe) head() string { return filepath.Join(s.dir, "keys", local.HeadFile) }

func (s *safe) try(edit ...func(*local.Options)) (*local.Log, error) {
	if _, err := local.Prepare(journal.Root(s.root), journal.Root(s.keys)); err != nil {
		return nil, err
	}
	o := local.Options{Node: "k", Seal: &local.SealOptions{Keys: s.keys}}
	for _, f := range edit {
		f(&o)
	}
	return local.Open(journal.Root(s.root), o)
}

func (s *safe) open(edit ...func(*local.Options)) *local.Log {
	s.t.Helper()
	l, err := s.try(edit...)
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

func (s *safe) close(l *local.Log) {
	s.t.Helper()
	if err := l.Close(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *safe) append(l *local.Log, n int) {
	s.t.Helper()
	for i := range n {
		if _, err := l.Append(context.Background(), control.Change{Event: "test_event", Actor: fmt.Sprint("device", i%3), Target: "t"}, nil); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *safe) verify() local.Verdict {
	s.t.Helper()
	v, err := local.Verify(journal.Root(s.root), s.keys)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// seals are the payloads of the seals in the log.
func (s *safe) seals() (out []string) {
	s.t.Helper()
	_, err := local.Scan(journal.Root(s.root), func(e control.Entry) error {
		if e.Event == control.SealEvent {
			var p struct {
				At      string
				Through int64
			}
			if err := e.Decode(&p); err != nil {
				return err
			}
			out = append(out, fmt.Sprint(p.At, ":", p.Through))
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// SEC-14: a seal comes with each start and stop, every 1,000 entries, and a minute
// after an entry; not without entries.
func TestSealsAreMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSafe(t, t.TempDir())
		l := s.open()
		time.Sleep(time.Hour) // nothing happens
		s.append(l, 1)
		time.Sleep(59 * time.Second)
		s.append(l, 1)
		if got, want := fmt.Sprint(s.seals()), "[start:0]"; got != want {
			t.Errorf("before the minute has passed: got %s, want %s", got, want)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got, want := fmt.Sprint(s.seals()), "[start:0 :3]"; got != want {
			t.Errorf("a minute after an entry: got %s, want %s", got, want)
		}
		time.Sleep(time.Hour)
		s.append(l, 1001)
		if got, want := fmt.Sprint(s.seals()), "[start:0 :3 :1004]"; got != want {
			t.Errorf("after 1,001 entries: got %s, want %s", got, want)
		}
		if v := s.verify(); v.Problem != nil || v.Unsealed != 1 || v.Newest.Entry != 1005 || v.From != 1 {
			t.Errorf("beside the writer: got %+v", v)
		}
		s.close(l)
		s.close(s.open())
		if got, want := fmt.Sprint(s.seals()), "[start:0 :3 :1004 stop:1006 start:1007 stop:1008]"; got != want {
			t.Errorf("after another start: got %s, want %s", got, want)
		}
		if v := s.verify(); v.Problem != nil || v.Unsealed != 0 || v.Newest.Entry != 1009 {
			t.Errorf("at the end: got %+v", v)
		}
	})
}

var idOf = regexp.MustCompile(`^\{"id":\d+,`)

// rehash gives records ids and a chain that is right, as whoever can write the file
// can.
func rehash(lines []string) []byte {
	var out bytes.Buffer
	prev := journal.NoSum
	for i, l := range lines {
		body := idOf.ReplaceAllString(l, `{"id":`+strconv.Itoa(i+1)+`,`)
		body = body[:strings.LastIndex(body, `,"prev":"`)] + `,"prev":"` + prev
		sum := sha256.Sum256([]byte(body))
		prev = hex.EncodeToString(sum[:16])
		out.WriteString(body + `","sum":"` + prev + "\"}\n")
	}
	return out.Bytes()
}

func linesOf(data []byte) []string {
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// reseal replaces seals by ones of another key, over the chain as it is.
func reseal(t testing.TB, lines []string) []byte {
	other := newSafe(t, t.TempDir())
	l := other.open()
	for _, line := range lines {
		var r struct{ Event, Actor, Target string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Event != control.SealEvent {
			if _, err := l.Append(t.Context(), control.Change{Event: r.Event, Actor: r.Actor, Target: r.Target}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	other.close(l)
	data, err := os.ReadFile(other.log())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func isSeal(line string) bool { return strings.Contains(line, `"event":"log_sealed"`) }

// SEC-14: a rewritten log with a newly computed chain is detected, at 100
// places each, by verify and by the next start.
func TestRewrittenAuditIsNamed(t *testing.T) {
	s := newSafe(t, t.TempDir())
	for range 4 {
		l := s.open()
		s.append(l, 15)
		s.close(l)
	}
	whole, err := os.ReadFile(s.log())
	if err != nil {
		t.Fatal(err)
	}
	lines := linesOf(whole)
	r := rand.New(rand.NewPCG(1, 2))
	entry := func() int { // not a seal
		for {
			if i := r.IntN(len(lines)); !isSeal(lines[i]) {
				return i
			}
		}
	}
	without := func(i int) []string { return append(append([]string{}, lines[:i]...), lines[i+1:]...) }
	for name, tt := range map[string]struct {
		attack func() []byte // nil removes the log
		want   string
	}{
		"actors are changed": {func() []byte {
			i := entry()
			l := append([]string{}, lines...)
			l[i] = regexp.MustCompile(`"actor":"device\d"`).ReplaceAllString(l[i], `"actor":"thief"`)
			return rehash(l)
		}, "were changed after they had been sealed"},
		"cut at a record's end": {func() []byte {
			return []byte(strings.Join(lines[:1+r.IntN(len(lines)-1)], "\n") + "\n")
		}, "the log was cut"},
		"emptied":             {func() []byte { return []byte{} }, "the log was emptied"},
		"removed":             {func() []byte { return nil }, "the log was removed"},
		"an entry is removed": {func() []byte { return rehash(without(entry())) }, "the log was chained again: this seal was entry"},
		"an entry is inserted": {func() []byte {
			i := entry()
			return rehash(append(append(append([]string{}, lines[:i]...), lines[entry()]), lines[i:]...))
		}, "the log was chained again: this seal was entry"},
		"two are exchanged": {func() []byte {
			l := append([]string{}, lines...)
			for i := entry(); ; i = entry() {
				if !isSeal(l[i+1]) && l[i][strings.Index(l[i], `"ts"`):] != l[i+1][strings.Index(l[i+1], `"ts"`):] {
					l[i], l[i+1] = l[i+1], l[i]
					return rehash(l)
				}
			}
		}, "were changed after they had been sealed"},
		"a seal's time is changed": {func() []byte {
			l := append([]string{}, lines...)
			for i := r.IntN(len(l)); ; i = (i + 1) % len(l) {
				if isSeal(l[i]) {
					l[i] = strings.Replace(l[i], `"ts":"20`, `"ts":"19`, 1)
					return rehash(l)
				}
			}
		}, "the seal was not made with the seal key"},
		"seals are left out": {func() []byte {
			var l []string
			for _, line := range lines {
				if !isSeal(line) {
					l = append(l, line)
				}
			}
			return rehash(l[:1+r.IntN(len(l)-1)])
		}, "the log was chained again: none of its seals is there"},
		"seals are left out, and as many entries are there": {func() []byte {
			l := append([]string{}, lines...)
			for i := range l {
				if isSeal(l[i]) {
					l[i] = lines[1]
				}
			}
			return rehash(l)
		}, "the log was chained again: none of its seals is there"},
		"the newest seal is another entry": {func() []byte {
			l := append([]string{}, lines...)
			l[len(l)-1] = lines[entry()]
			return rehash(l)
		}, "the log was chained again: this is not the newest seal"},
		"chained and sealed with another key": {func() []byte { return reseal(t, lines) }, "the seal was not made with the seal key"},
		"appended to while stopped": {func() []byte {
			return rehash(append(append([]string{}, lines...), lines[entry()]))
		}, "was appended after yaya had stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			times := 100
			if strings.Contains(name, "another key") {
				times = 1
			}
			for n := range times {
				if err := errors.Join(os.MkdirAll(filepath.Dir(s.log()), 0o700), os.WriteFile(s.log(), whole, 0o600)); err != nil {
					t.Fatal(err)
				}
				data := tt.attack()
				if data == nil {
					if err := os.RemoveAll(filepath.Dir(s.log())); err != nil {
						t.Fatal(err)
					}
				} else {
					if err := os.WriteFile(s.log(), data, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				v, err := local.Verify(journal.Root(s.root), s.keys)
				if err != nil || v.Problem == nil || !strings.Contains(v.Problem.Problem, tt.want) || v.Problem.Remedy == "" {
					t.Fatalf("time %d: Verify = %+v, %v, want %q", n, v.Problem, err, tt.want)
				}
				if n >= 3 { // starts are slow
					continue
				}
				l, err := s.try()
				if err == nil {
					l.Close()
				}
				if sealErr, ok := errors.AsType[*local.SealError](err); !ok || !strings.Contains(sealErr.Problem, tt.want) {
					t.Fatalf("time %d: a start = %v, want %q", n, err, tt.want)
				}
			}
		})
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(s.log()), 0o700), os.WriteFile(s.log(), whole, 0o600)); err != nil {
		t.Fatal(err)
	}
	if v := s.verify(); v.Problem != nil {
		t.Errorf("the log as it was: got %v", v.Problem)
	}
	s.close(s.open())
}

// SEC-14: a part that is missing beside others is named, and so is what to do.
func TestMissingPartsAreNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil  func(s *safe) error
		start  string // "" starts
		verify string // "" finds nothing
	}{
		"nothing":             {func(*safe) error { return nil }, "", ""},
		"the seal key":        {func(s *safe) error { return s.keys.Remove(local.SealKeyFile) }, "the key that seals the audit is missing", "the key that seals the audit is missing"},
		"both":                {func(s *safe) error { return errors.Join(s.keys.Remove(local.SealKeyFile), os.Remove(s.head())) }, "the key that seals the audit is missing", "the key that seals the audit is missing"},
		"the head file":       {func(s *safe) error { return os.Remove(s.head()) }, "", "the head file is missing"},
		"a damaged head file": {func(s *safe) error { return os.WriteFile(s.head(), []byte("{"), 0o600) }, "the head file is damaged", "the head file is damaged"},
		"another head": {func(s *safe) error {
			data, err := os.ReadFile(s.head())
			return errors.Join(err, os.WriteFile(s.head(), bytes.Replace(data, []byte(`"entry":`), []byte(`"entry":1`), 1), 0o600))
		}, "the head file was changed", "the head file was changed"},
		"the folder of the log": {func(s *safe) error { return os.RemoveAll(filepath.Dir(s.log())) }, "the log was removed", "the log was removed"},
		"the log, and there is another key": {func(s *safe) error {
			return errors.Join(os.Remove(s.log()), os.Remove(s.head()), s.keys.Rename(local.SealKeyFile, "server.key"))
		}, "the log was removed", "the log was removed"},
		"all of it": {func(s *safe) error {
			return errors.Join(os.RemoveAll(filepath.Dir(s.log())), os.Remove(s.head()), s.keys.Remove(local.SealKeyFile))
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSafe(t, t.TempDir())
			l := s.open()
			s.append(l, 3)
			s.close(l)
			if err := tt.spoil(s); err != nil {
				t.Fatal(err)
			}
			got := ""
			if v := s.verify(); v.Problem != nil {
				got = v.Problem.Problem
			}
			if (got == "") != (tt.verify == "") || !strings.Contains(got, tt.verify) {
				t.Errorf("Verify = %q, want %q", got, tt.verify)
			}
			l, err := s.try()
			if err == nil {
				s.close(l)
			}
			if (err == nil) != (tt.start == "") || (err != nil && !strings.Contains(err.Error(), tt.start)) {
				t.Errorf("a start = %v, want %q", err, tt.start)
			}
			if err == nil {
				if v := s.verify(); v.Problem != nil {
					t.Errorf("after a start: got %v", v.Problem)
				}
			}
		})
	}
}

// A start without the head file, or with what an older yaya has appended, goes on
// when a person has removed the head file, and the log says so forever.
func TestResumedWithoutHead(t *testing.T) {
	s := newSafe(t, t.TempDir())
	l := s.open()
	s.append(l, 3)
	s.close(l)
	old, err := local.Open(journal.Root(s.root), local.Options{}) // which seals nothing
	if err != nil {
		t.Fatal(err)
	}
	s.append(old, 2)
	s.close(old)
	if _, err := s.try(); err == nil || !strings.Contains(err.Error(), "remove keys/audit.head") {
		t.Fatalf("a start after an older yaya = %v, want the remedy", err)
	}
	if err := os.Remove(s.head()); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	for range 2 {
		s.close(s.open(func(o *local.Options) { o.Log = zerolog.New(&log) }))
		if v := s.verify(); v.Problem != nil || len(v.Resumed) != 1 || v.Resumed[0] != 8 {
			t.Errorf("got %+v, want one seal that says that it has resumed", v)
		}
	}
	if got := strings.Count(log.String(), "audit.head is missing"); got != 1 {
		t.Errorf("it was logged %d times, want 1: %s", got, &log)
	}
}

// A log of a yaya without seals gets a key and a first seal, which says from where on
// it vouches.
func TestLogWithoutSealsIsTakenOver(t *testing.T) {
	s := newSafe(t, t.TempDir())
	old, err := local.Open(journal.Root(s.root), local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.append(old, 5)
	s.close(old)
	if v := s.verify(); v.Problem != nil || v.Newest.Entry != 0 || v.Unsealed != 5 {
		t.Errorf("before: got %+v", v)
	}
	s.close(s.open())
	s.close(s.open())
	if v := s.verify(); v.Problem != nil || v.From != 6 || v.Newest.Entry != 9 {
		t.Errorf("afterwards: got %+v", v)
	}
	data, err := os.ReadFile(s.log())
	if err != nil {
		t.Fatal(err)
	}
	l := linesOf(data)
	l[2] = strings.Replace(l[2], `"device2"`, `"thief"`, 1)
	if err := os.WriteFile(s.log(), rehash(l), 0o600); err != nil {
		t.Fatal(err)
	}
	if v := s.verify(); v.Problem == nil {
		t.Error("a change after the first seal was not found")
	}
}

// A seal that cannot be made costs no entry, is tried again every minute, and leaves
// the head file behind the log, never ahead.
func TestSealThatFails(t *testing.T) {
	for _, where := range []string{"log", "head"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSafe(t, t.TempDir())
				s.close(s.open())
				var failing atomic.Bool
				before := func(st journaltest.Step) error {
					if failing.Load() && st.Op == "write" {
						return syscall.ENOSPC
					}
					return nil
				}
				logFS := &journaltest.Faults{FS: journal.Root(s.root)}
				headFS := &journaltest.Faults{FS: journal.Root(s.keys)}
				if where == "log" {
					logFS.Before = before
				} else {
					headFS.Before = before
				}
				failing.Store(true)
				l, err := local.Open(logFS, local.Options{Seal: &local.SealOptions{Keys: s.keys, FS: headFS}})
				if err != nil {
					t.Fatal(err)
				}
				_, err = l.Append(t.Context(), change, nil)
				if where == "log" {
					if !errors.Is(err, control.ErrUnavailable) || !errors.Is(err, syscall.ENOSPC) {
						t.Errorf("Append = %v, want it refused", err)
					}
				} else if err != nil {
					t.Errorf("Append = %v, want it done", err)
				}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if v := s.verify(); v.Problem != nil {
					t.Errorf("while it fails: %v", v.Problem)
				}
				if got := len(s.seals()); got > 3 {
					t.Errorf("%d seals were made while the disk failed", got)
				}
				failing.Store(false)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				s.append(l, 1)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if v := s.verify(); v.Problem != nil || v.Unsealed != 0 {
					t.Errorf("afterwards: got %+v", v)
				}
				s.close(l)
				s.close(s.open())
			})
		})
	}
}

// Nobody makes seals but the log.
func TestSealEventIsReserved(t *testing.T) {
	s := newSafe(t, t.TempDir())
	l := s.open()
	defer s.close(l)
	if _, err := l.Append(t.Context(), control.Change{Event: control.SealEvent, Actor: "a"}, nil); !errors.Is(err, control.ErrInvalid) {
		t.Errorf("Append = %v, want it refused", err)
	}
	s.append(l, 1)
	got, err := control.AuditLog(t.Context(), l, control.Query{})
	if err != nil || len(got) != 1 {
		t.Errorf("the audit = %v, %v, want the entry and no seal", got, err)
	}
	for name, q := range map[string]control.Query{"asked for": {Event: control.SealEvent}, "all": {Seals: true}} {
		if got, err := control.AuditLog(t.Context(), l, q); err != nil || len(got) == 0 || got[0].Event != control.SealEvent {
			t.Errorf("%s: got %v, %v, want seals", name, got, err)
		}
	}
}

const (
	sealChild    = "YAYA_TEST_SEAL_CHILD"
	segmentChild = "YAYA_TEST_SEGMENT_CHILD" // whose tail is closed after a few entries
)

// killedAt works on a sealed log in another process, which is killed at a step. It
// returns the last entry that was acknowledged, and whether the step was reached.
func killedAt(t *testing.T, dir string, at int, env ...string) (acked int64, killed bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(append(os.Environ(), env...), fmt.Sprintf("%s=%d:%s", sealChild, at, dir))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(io.LimitReader(out, 1<<20))
	for lines.Scan() {
		if _, err := fmt.Sscanf(lines.Text(), "ack %d", &acked); err != nil {
			t.Fatalf("step %d: %s", at, lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil {
		if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL {
			t.Fatalf("step %d: %v", at, err)
		}
		return acked, true
	}
	return acked, false
}

// sealingChild works on a sealed log until it is killed.
func sealingChild(dir string, at int) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	if err := root.MkdirAll("keys", 0o700); err != nil {
		return err
	}
	keys, err := root.OpenRoot("keys")
	if err != nil {
		return err
	}
	var steps atomic.Int64 // of both folders
	killing := func(fsys journal.FS) journal.FS {
		f := journaltest.KillAt(fsys, at)
		before := f.Before
		f.Before = func(s journaltest.Step) error {
			s.N = int(steps.Add(1))
			return before(s)
		}
		f.Partial = func(s journaltest.Step) int { return s.Len / 2 }
		return f
	}
	data, head := killing(journal.Root(root)), killing(journal.Root(keys))
	if _, err := local.Prepare(data, head); err != nil {
		return err
	}
	o := local.Options{Seal: &local.SealOptions{Keys: keys, FS: head}}
	if os.Getenv(segmentChild) != "" {
		small(3, &controltest.Recorder{})(&o)
	}
	l, err := local.Open(data, o)
	if err != nil {
		return err
	}
	for range 3 {
		e, err := l.Append(context.Background(), change, nil)
		if err != nil {
			return err
		}
		fmt.Println("ack", e.Index)
	}
	if err := l.Close(); err != nil {
		journaltest.Kill() // the last write was cut short
	}
	return nil
}

// SEC-14: kill -9 before every step of sealing, and in the middle of writes, of a
// fresh directory and then again and again of the same one: the log is what was
// sealed, holds what was acknowledged, and the next start goes on.
func TestKilledWhileSealing(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		t.Run(map[bool]string{true: "fresh", false: "the same"}[fresh], func(t *testing.T) {
			dir := t.TempDir()
			killed, ended := 0, 0
			for at := 1; at <= 60 && (!fresh || ended == 0); at++ {
				if fresh {
					dir = t.TempDir()
				}
				acked, dead := killedAt(t, dir, at)
				if dead {
					killed++
				} else {
					ended++
				}
				s := newSafe(t, dir)
				v := s.verify()
				if v.Problem != nil {
					t.Fatalf("step %d: Verify = %v, want nothing", at, v.Problem)
				}
				if v.Report.Last < acked {
					t.Fatalf("step %d: %d entries, %d were acknowledged", at, v.Report.Last, acked)
				}
				if fresh {
					s.close(s.open())
					if v := s.verify(); v.Problem != nil || len(v.Resumed) != 0 || v.Unsealed != 0 {
						t.Fatalf("step %d: after the next start: %+v", at, v)
					}
				}
			}
			if killed < 20 || (fresh && ended == 0) {
				t.Errorf("%d kills and %d ends prove little", killed, ended)
			}
			if s := newSafe(t, dir); !fresh {
				s.close(s.open())
				if v := s.verify(); v.Problem != nil || len(v.Resumed) != 0 {
					t.Errorf("at the end: %+v", v)
				}
			}
		})
	}
}

// A tail misses nothing, waits for what is half written, and names a log that was cut
// or removed under it.
func TestTail(t *testing.T) {
	s := newSafe(t, t.TempDir())
	tail := local.NewTail(journal.Root(s.root))
	var got []int64
	next := func() error {
		return tail.Next(func(e control.Entry) error { got = append(got, e.Index); return nil })
	}
	if err := next(); err != nil || len(got) != 0 {
		t.Errorf("without a log: got %v, %v", got, err)
	}
	l := s.open()
	s.append(l, 3)
	if err := next(); err != nil || fmt.Sprint(got) != "[1 2 3 4]" {
		t.Errorf("got %v, %v; want [1 2 3 4]", got, err)
	}
	s.close(l)
	whole, err := os.ReadFile(s.log())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.log(), whole[:len(whole)-10], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := next(); err != nil || len(got) != 4 {
		t.Errorf("half a record: got %v, %v", got, err)
	}
	if err := os.WriteFile(s.log(), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := next(); err != nil || fmt.Sprint(got) != "[1 2 3 4 5]" {
		t.Errorf("the rest: got %v, %v", got, err)
	}
	for name, spoil := range map[string]func() error{
		"cut":      func() error { return os.Truncate(s.log(), int64(len(whole))-1) },
		"removed":  func() error { return os.Remove(s.log()) },
		"replaced": func() error { return os.WriteFile(s.log(), append(rehash(linesOf(whole)[1:]), whole...), 0o600) },
	} {
		if err := spoil(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("got %v, want no error, or %v", err, fs.ErrNotExist)
		}
		if _, ok := errors.AsType[*journal.DamageError](next()); !ok {
			t.Errorf("%s: nothing was said", name)
		}
		if err := os.WriteFile(s.log(), whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
