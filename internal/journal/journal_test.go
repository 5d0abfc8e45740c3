package journal_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/hosttest"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/journal/journaltest"
)

const childEnv = "YAYA_TEST_JOURNAL_CHILD"

func TestMain(m *testing.M) {
	if spec := os.Getenv(childEnv); spec != "" {
		n, dir, _ := strings.Cut(spec, ":")
		at, _ := strconv.Atoi(n)
		if err := child(dir, at); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func record(id int) []byte {
	return fmt.Appendf(nil, `"n":%d,"text":"%s"`, id, strings.Repeat("x", id%50))
}

func openFS(t testing.TB, dir string) journal.FS {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return journal.Root(root)
}

func mustOpen(t testing.TB, fsys journal.FS, o journal.Options) *journal.Journal {
	t.Helper()
	j, err := journal.Open(fsys, "j", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func fill(t testing.TB, j *journal.Journal, n int) {
	t.Helper()
	for range n {
		id, err := j.Append(record(int(j.Last()) + 1))
		if err != nil || id != j.Last() {
			t.Fatalf("append: id %d of %d, %v", id, j.Last(), err)
		}
	}
}

func ids(t testing.TB, j *journal.Journal, from int64) (out []int64) {
	t.Helper()
	err := j.Read(from, func(id int64, line []byte) error {
		if !strings.Contains(string(line), string(record(int(id)))) {
			t.Errorf("entry %d reads %s", id, line)
		}
		out = append(out, id)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestReadFromAnywhere(t *testing.T) {
	fsys := openFS(t, t.TempDir())
	j := mustOpen(t, fsys, journal.Options{First: 7})
	if got := ids(t, j, 0); got != nil {
		t.Errorf("an empty journal yields %v", got)
	}
	fill(t, j, 500)
	check := func(j *journal.Journal) {
		t.Helper()
		for _, from := range []int64{0, 1, 7, 8, 134, 135, 136, 505, 506} {
			got := ids(t, j, from)
			if want := 506 - max(from, 7) + 1; int64(len(got)) != want || got[0] != max(from, 7) {
				t.Errorf("from %d: %d entries starting at %d, want %d", from, len(got), got[0], want)
			}
		}
		if got := ids(t, j, 507); got != nil {
			t.Errorf("behind the end there is %v", got)
		}
	}
	check(j)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	check(mustOpen(t, fsys, journal.Options{}))
}

// ST-02: a file cut at any byte opens, holds a prefix of the written records, and
// accepts the next one.
func TestCutAtEveryByte(t *testing.T) {
	dir := t.TempDir()
	fsys := openFS(t, dir)
	j := mustOpen(t, fsys, journal.Options{})
	fill(t, j, 6)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "j")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		lines := strings.Count(string(whole[:n]), "\n")
		rep, err := journal.Scan(fsys, "j", nil)
		if torn := n > 0 && whole[n-1] != '\n'; err != nil || (rep.Torn > 0) != torn {
			t.Fatalf("cut at %d: %+v, %v", n, rep, err)
		}
		j, err := journal.Open(fsys, "j", journal.Options{})
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		if got := j.Last(); got != int64(lines) {
			t.Fatalf("cut at %d: %d entries, want %d", n, got, lines)
		}
		fill(t, j, 1)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if rep, err := journal.Scan(fsys, "j", nil); err != nil || rep.Last != int64(lines+1) || rep.Torn != 0 {
			t.Fatalf("cut at %d, then appended: %+v, %v", n, rep, err)
		}
	}
}

// ST-03: no bit can change unnoticed, and the damage is named.
func TestEveryFlippedBitIsNamed(t *testing.T) {
	dir := t.TempDir()
	fsys := openFS(t, dir)
	j := mustOpen(t, fsys, journal.Options{})
	fill(t, j, 5)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "j")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		for bit := range 8 {
			bad := append([]byte(nil), whole...)
			bad[i] ^= 1 << bit
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			want := int64(strings.Count(string(whole[:i]), "\n")) + 1
			seen := int64(0)
			_, err := journal.Scan(fsys, "j", func(int64, []byte) error { seen++; return nil })
			d, ok := errors.AsType[*journal.DamageError](err)
			if !ok || d.Entry != want || d.File != "j" || seen != want-1 {
				t.Fatalf("byte %d bit %d: got %v after %d entries, want damage of entry %d", i, bit, err, seen, want)
			}
			if _, err := journal.Open(fsys, "j", journal.Options{}); err == nil {
				t.Fatalf("byte %d bit %d: the damaged file was opened for writing", i, bit)
			}
		}
	}
}

func TestRemovedAndExchangedRecordsAreNamed(t *testing.T) {
	dir := t.TempDir()
	fsys := openFS(t, dir)
	j := mustOpen(t, fsys, journal.Options{})
	fill(t, j, 5)
	_ = j.Close()
	path := filepath.Join(dir, "j")
	data, _ := os.ReadFile(path)
	l := strings.SplitAfter(string(data), "\n")
	for name, c := range map[string]struct {
		lines []string
		entry int64
	}{
		"removed":   {[]string{l[0], l[2], l[3]}, 2},
		"exchanged": {[]string{l[0], l[2], l[1]}, 2},
		"repeated":  {[]string{l[0], l[1], l[1]}, 3},
		"headless":  {[]string{l[1], l[2]}, 1},
	} {
		if err := os.WriteFile(path, []byte(strings.Join(c.lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := journal.Scan(fsys, "j", nil)
		if d, ok := errors.AsType[*journal.DamageError](err); !ok || d.Entry != c.entry {
			t.Errorf("%s: got %v, want damage of entry %d", name, err, c.entry)
		}
	}
}

// R29, ST-08: a write that fails is taken back; the journal goes on when the
// disk does.
func TestFailedWriteIsTakenBack(t *testing.T) {
	full := false
	faults := &journaltest.Faults{FS: openFS(t, t.TempDir()), Partial: func(s journaltest.Step) int { return s.Len / 3 }}
	faults.Before = func(s journaltest.Step) error {
		if full && s.Op == "write" {
			return syscall.ENOSPC
		}
		return nil
	}
	j := mustOpen(t, faults, journal.Options{})
	fill(t, j, 3)
	full = true
	for range 3 {
		if _, err := j.Append(record(4)); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("got %v, want no space", err)
		}
	}
	full = false
	fill(t, j, 2)
	if err := j.Sync(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	if rep, err := journal.Scan(faults, "j", nil); err != nil || rep.Last != 5 || rep.Torn != 0 {
		t.Errorf("got %+v, %v; want 5 as the last entry, and nothing torn", rep, err)
	}
}

// R29, ST-07: a failed fsync acknowledges nothing and stops the journal until it
// was recovered to what is known to be on the disk.
func TestFailedSyncStopsUntilRecovered(t *testing.T) {
	broken := false
	faults := &journaltest.Faults{FS: openFS(t, t.TempDir())}
	faults.Before = func(s journaltest.Step) error {
		if broken && s.Op == "sync" {
			return syscall.EIO
		}
		return nil
	}
	j := mustOpen(t, faults, journal.Options{})
	fill(t, j, 3)
	if err := j.Sync(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	fill(t, j, 2)
	broken = true
	if err := j.Sync(t.Context(), 5); !errors.Is(err, syscall.EIO) || !errors.Is(err, journal.ErrFailed) {
		t.Fatalf("got %v, want EIO", err)
	}
	broken = false
	if err := j.Sync(t.Context(), 5); !errors.Is(err, journal.ErrFailed) {
		t.Fatalf("a second fsync was believed: %v", err)
	}
	if _, err := j.Append(record(6)); !errors.Is(err, journal.ErrFailed) {
		t.Fatalf("appended after a failed fsync: %v", err)
	}
	if got := ids(t, j, 1); len(got) != 5 { // reads go on
		t.Errorf("read %v", got)
	}
	broken = true
	if _, err := j.Recover(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("recovered on a broken disk: %v", err)
	}
	broken = false
	if last, err := j.Recover(); err != nil || last != 3 {
		t.Fatalf("recovered to %d, %v; want 3", last, err)
	}
	fill(t, j, 2)
	if err := j.Sync(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
}

// Records of an earlier process are not thrown away because our first fsync fails.
func TestRecoverKeepsWhatWasThere(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, openFS(t, dir), journal.Options{})
	fill(t, j, 4)
	_ = j.Close()
	broken := true
	faults := &journaltest.Faults{FS: openFS(t, dir)}
	faults.Before = func(s journaltest.Step) error {
		if broken && s.Op == "sync" {
			return syscall.EIO
		}
		return nil
	}
	j = mustOpen(t, faults, journal.Options{})
	if err := j.Sync(t.Context(), 4); !errors.Is(err, syscall.EIO) {
		t.Fatalf("old records count as synced without an fsync: %v", err)
	}
	broken = false
	if last, err := j.Recover(); err != nil || last != 4 {
		t.Errorf("recovered to %d, %v; want 4", last, err)
	}
}

// ST-11, R28: one writer.
func TestOneWriter(t *testing.T) {
	fsys := openFS(t, t.TempDir())
	j := mustOpen(t, fsys, journal.Options{})
	fill(t, j, 1)
	if _, err := journal.Open(fsys, "j", journal.Options{}); !errors.Is(err, journal.ErrLocked) {
		t.Fatalf("opened twice: %v", err)
	}
	if rep, err := journal.Scan(fsys, "j", nil); err != nil || rep.Last != 1 {
		t.Errorf("reading beside the writer: %+v, %v", rep, err)
	}
	_ = j.Close()
	mustOpen(t, fsys, journal.Options{})
	if _, err := j.Append(record(2)); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("appended after close: %v", err)
	}
}

// ST-08: a path that is not a file is refused at once.
func TestNotAFile(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "canary")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, prepare := range map[string]func(string) error{
		"directory": func(p string) error { return os.Mkdir(p, 0o700) },
		"link":      func(p string) error { return os.Symlink(outside, p) },
		"pipe":      func(p string) error { return hosttest.MakePipe(p) },
	} {
		if err := prepare(filepath.Join(dir, name)); errors.Is(err, errors.ErrUnsupported) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		if _, err := journal.Open(openFS(t, dir), name, journal.Options{}); err == nil {
			t.Errorf("a %s was opened", name)
		}
	}
	if _, err := journal.Open(openFS(t, dir), "none", journal.Options{MustExist: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want %v", err, fs.ErrNotExist)
	}
}

// ST-10: a record at the limit fits, one beyond is refused and harms nothing.
func TestRecordLimit(t *testing.T) {
	fsys := openFS(t, t.TempDir())
	j := mustOpen(t, fsys, journal.Options{})
	text := func(n int) []byte { return fmt.Appendf(nil, `"t":"%s"`, strings.Repeat("x", n)) }
	overhead := len(`{"id":1,"t":""`) + len(`,"prev":""`) + len(`,"sum":""}`) + 64 + 1
	if _, err := j.Append(text(journal.MaxRecord - overhead + 1)); !errors.Is(err, journal.ErrTooLarge) {
		t.Errorf("one above: %v", err)
	}
	if _, err := j.Append(text(journal.MaxRecord - overhead)); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	_ = j.Close()
	if j := mustOpen(t, fsys, journal.Options{}); j.Last() != 1 {
		t.Errorf("%d entries", j.Last())
	}
}

// ST-23: many writers, whole lines, dense ids, and a shared fsync.
func TestConcurrentAppends(t *testing.T) {
	syncs := 0
	var written atomic.Int32
	all := make(chan struct{}) // closed once each writer has a record
	faults := &journaltest.Faults{FS: openFS(t, t.TempDir())}
	faults.Before = func(s journaltest.Step) error {
		if s.Op == "sync" {
			if syncs++; syncs == 1 { // one at a time: the journal never runs two
				<-all // else a file system in memory may be done before the next writer comes
			}
		}
		return nil
	}
	j := mustOpen(t, faults, journal.Options{})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 20 {
				id, err := j.Append([]byte(`"a":1`))
				if written.Add(1) == 50 {
					close(all)
				}
				if err == nil {
					err = j.Sync(context.Background(), id)
				}
				if err != nil {
					t.Errorf("Append and Sync = %v, want no error", err)
				}
			}
		})
	}
	wg.Wait()
	if rep, err := journal.Scan(faults, "j", nil); err != nil || rep.Last != 1000 {
		t.Errorf("got %+v, %v; want 1000 as the last entry", rep, err)
	}
	if syncs == 0 || syncs >= 1000 {
		t.Errorf("%d fsyncs for 1000 records", syncs)
	}
}

// child appends and acknowledges on standard output until it is killed.
func child(dir string, at int) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	j, err := journal.Open(journaltest.KillAt(journal.Root(root), at), "j", journal.Options{})
	if err != nil {
		return err
	}
	for range 8 {
		id, err := j.Append(record(int(j.Last()) + 1))
		if err != nil {
			return err
		}
		if err := j.Sync(context.Background(), id); err != nil {
			return err
		}
		fmt.Println("ack", id)
	}
	return nil
}

// ST-01, ST-05: kill -9 before every step and in the middle of writes. Every
// acknowledged record is there, every record that is there was written, and the
// next process continues, dying again and again on the same file.
func TestKilledAtEveryStep(t *testing.T) {
	dir := t.TempDir()
	fsys := openFS(t, dir)
	acked, killed := 0, 0
	for at := 1; at <= 20; at++ {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d:%s", childEnv, at, dir))
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
			killed++
		}
		n := 0
		_, err = journal.Scan(fsys, "j", func(id int64, line []byte) error {
			if n++; !strings.Contains(string(line), string(record(int(id)))) {
				t.Errorf("step %d: entry %d was invented: %s", at, id, line)
			}
			return nil
		})
		if errors.Is(err, fs.ErrNotExist) && acked == 0 {
			continue
		}
		if err != nil || n < acked {
			t.Fatalf("step %d: %d entries, %d were acknowledged: %v", at, n, acked, err)
		}
	}
	if killed < 15 || acked < 20 {
		t.Errorf("%d kills and %d acknowledged entries prove little", killed, acked)
	}
}

func BenchmarkAppend(b *testing.B) {
	j := mustOpen(b, openFS(b, b.TempDir()), journal.Options{})
	rec := []byte(`"kind":"message","payload":{"role":"user","content":"` + strings.Repeat("hello ", 20) + `"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := j.Append(rec); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendSync(b *testing.B) {
	j := mustOpen(b, openFS(b, b.TempDir()), journal.Options{})
	rec := []byte(`"kind":"message","payload":{"role":"user","content":"hello"}`)
	b.ReportAllocs()
	for b.Loop() {
		id, err := j.Append(rec)
		if err == nil {
			err = j.Sync(b.Context(), id)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// OP-113: the name of a file that an earlier journal could not sync reaches the disk with the
// first record that a later one promises.
func TestNameOfAnEarlierJournal(t *testing.T) {
	disk := journaltest.NewDisk()
	if err := disk.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	ill := &journaltest.Faults{FS: disk, Before: func(s journaltest.Step) error {
		if s.Op == "syncdir" {
			return syscall.EIO
		}
		return nil
	}}
	for i, fsys := range []journal.FS{ill, disk} {
		j, err := journal.Open(fsys, "d/a.jsonl", journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		id, err := j.Append([]byte(`"x":1`))
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Sync(t.Context(), id); (err == nil) != (i == 1) {
			t.Errorf("Sync of journal %d = %v", i, err)
		}
		if err := j.Close(); err != nil && i == 1 {
			t.Errorf("Close of journal %d = %v, want no error", i, err)
		}
	}
	after := disk.PowerLost(rand.New(rand.NewPCG(1, 1))) //nolint:gosec // a test that can be repeated
	if names := after.Names("d"); len(names) != 1 {
		t.Errorf("after a loss of power the folder has %v, want the file with its promised record", names)
	}
}
