package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/internal/hosttest"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// room is a file system with so much free space.
type room struct {
	journal.FS
	free  int64
	files int64 // inodes
	err   error
	asked atomic.Int64
	wait  chan struct{} // Free returns when it is closed, unless it is nil
}

func (r *room) Free() (journal.Space, error) {
	r.asked.Add(1)
	if r.wait != nil {
		<-r.wait
	}
	return journal.Space{Bytes: r.free, Files: r.files}, r.err
}

func rootOf(t *testing.T) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// worst returns the first check that is not good.
func worst(checks []plugin.HealthCheck) plugin.HealthCheck {
	for _, c := range checks {
		if c.Status != plugin.Healthy {
			return c
		}
	}
	return plugin.HealthCheck{Status: plugin.Healthy}
}

// REL-9, OP-55: a disk with less space than messages need, and a data directory that takes no writes,
// are noticed by trying, and nothing is left behind.
func TestDiskIsTried(t *testing.T) {
	whole := rootOf(t)
	gone := rootOf(t)
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	removed := rootOf(t)
	if err := os.RemoveAll(removed.Name()); err != nil {
		t.Fatal(err)
	}
	const plenty = 1 << 40
	for _, tc := range []struct {
		name string
		d    *disk
		want plugin.Health
		says string
	}{
		{"as it should be", newDisk(whole), plugin.Healthy, ""},
		{"plenty of space", &disk{fs: &room{free: plenty, files: -1}, data: whole}, plugin.Healthy, ""},
		{"almost full", &disk{fs: &room{free: 30 << 20}, data: whole}, plugin.Failing, "30 MiB free, and yaya takes no message with less than 64 MiB"},
		{"inodes for long", &disk{fs: &room{free: plenty, files: fewFiles}, data: whole}, plugin.Healthy, ""},
		{"few inodes", &disk{fs: &room{free: plenty, files: 12}, data: whole}, plugin.Degraded, "has room for 12 more files only (free inodes)"},
		{"no inode said", &disk{fs: &room{free: plenty}, data: whole}, plugin.Degraded, "has room for 0 more files only"},
		{"space unknown", &disk{fs: &room{err: &os.PathError{Op: "statfs", Path: "/secret/place", Err: syscall.EIO}}, data: whole}, plugin.Failing, "input/output error"},
		{"closed", &disk{fs: &room{free: plenty, files: -1}, data: gone}, plugin.Failing, "cannot be written to"},
		{"removed", &disk{fs: &room{free: plenty, files: -1}, data: removed}, plugin.Failing, "cannot be written to: no such file"},
	} {
		got := worst(tc.d.try(t.Context()))
		if got.Status != tc.want || !strings.Contains(got.Message, tc.says) || strings.Contains(got.Message, "/secret") {
			t.Errorf("%s: got %s %q, want %s with %q", tc.name, got.Status, got.Message, tc.want, tc.says)
		}
		if err := tc.d.close(t.Context()); err != nil {
			t.Errorf("%s: close: %v", tc.name, err)
		}
		if got := worst(tc.d.try(t.Context())); tc.want == plugin.Healthy && got.Status != plugin.Healthy {
			t.Errorf("%s: the last answer is %q after close, want it kept", tc.name, got.Message)
		}
	}
	if _, err := os.Stat(filepath.Join(whole.Name(), probeFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the probe is still there: %v", err)
	}
}

// OP-55: all who ask share one try, whose answer is good for a second; a disk that hangs is said after
// two seconds, and asked again when it has answered.
func TestDiskIsTriedOnce(t *testing.T) {
	root := rootOf(t)
	synctest.Test(t, func(t *testing.T) {
		r := &room{free: 1 << 40, files: -1}
		d := &disk{fs: r, data: root}
		for range 100 {
			if got := worst(d.try(t.Context())); got.Status != plugin.Healthy {
				t.Fatalf("got %q, want a good disk", got.Message)
			}
		}
		if n := r.asked.Load(); n != 1 {
			t.Errorf("tried %d times within a second, want 1", n)
		}
		time.Sleep(probeKept)
		r.wait = make(chan struct{})
		for range 3 {
			begun := time.Now()
			if got := worst(d.try(t.Context())); got.Status != plugin.Failing || !strings.Contains(got.Message, "within 2s") || time.Since(begun) != probeTimeout {
				t.Errorf("a disk that hangs: got %s %q after %v, want failed after %v", got.Status, got.Message, time.Since(begun), probeTimeout)
			}
		}
		if n := r.asked.Load(); n != 2 {
			t.Errorf("tried %d times, want one more that all wait for", n)
		}
		close(r.wait)
		synctest.Wait()
		if got := worst(d.try(t.Context())); got.Status != plugin.Healthy {
			t.Errorf("after the disk has answered: got %q, want a good one", got.Message)
		}
		if err := d.close(t.Context()); err != nil {
			t.Errorf("close = %v, want no error", err)
		}
	})
}

// OP-55: a check that hangs is said after its time, by its name; those who ask again wait for the
// same one, and others go on.
func TestChecksThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{fs: &room{free: 1 << 40, files: -1}, data: rootOf(t)}
		answers := make(chan struct{})
		var runs atomic.Int64
		hangs := func() []plugin.Diagnosis {
			runs.Add(1)
			<-answers
			return []plugin.Diagnosis{{Plugin: "secrets", HealthReport: plugin.HealthReport{Status: plugin.Healthy}}}
		}
		for range 3 {
			begun := time.Now()
			got := d.rows(t.Context(), "secrets", "stored secrets", 3*time.Second, hangs)
			if len(got) != 1 || got[0].Plugin != "secrets" || got[0].Status != plugin.Failing || got[0].Summary != "the check stored secrets did not end within 3s: does a disk not answer?" || time.Since(begun) != 3*time.Second {
				t.Errorf("got %+v after %v, want the name of the check after 3s", got, time.Since(begun))
			}
		}
		if n := runs.Load(); n != 1 {
			t.Errorf("the check runs %d times, want once: what hangs cannot be ended", n)
		}
		if got := d.check(t.Context(), checkLog, time.Second, func() plugin.HealthCheck { return plugin.HealthCheck{Status: plugin.Healthy} }); got.Status != plugin.Healthy {
			t.Errorf("another check: %+v, want it healthy", got)
		}
		close(answers)
		synctest.Wait()
		if got := d.rows(t.Context(), "secrets", "stored secrets", time.Second, hangs); len(got) != 1 || got[0].Status != plugin.Healthy || runs.Load() != 2 {
			t.Errorf("after the disk has answered: %+v in run %d, want a new run", got, runs.Load())
		}
		if err := d.close(t.Context()); err != nil {
			t.Errorf("close = %v, want no error", err)
		}
	})
}

// A scrape of the metrics does not wait for a disk that hangs, and leaves one goroutine.
func TestFreeSpaceThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &room{free: 5, files: 7, wait: make(chan struct{})}
		d := &disk{fs: r, data: rootOf(t)}
		for range 5 {
			if got := d.free(); got != (journal.Space{Bytes: -1, Files: -1}) {
				t.Errorf("free = %+v, want -1 for unknown", got)
			}
		}
		if n := r.asked.Load(); n != 1 {
			t.Errorf("asked %d times, want 1", n)
		}
		close(r.wait)
		synctest.Wait()
		if got := d.free(); got != (journal.Space{Bytes: 5, Files: 7}) {
			t.Errorf("free = %+v, want what the disk says", got)
		}
		if err := d.close(t.Context()); err != nil {
			t.Errorf("close = %v, want no error", err)
		}
	})
}

// A command gives up on a data directory that does not answer. The opening of a
// FIFO that nobody writes to is a call that hangs in the system.
func TestDirectoryThatHangs(t *testing.T) {
	dir := t.TempDir()
	if err := (Paths{Data: dir}).Answers(t.Context()); err != nil {
		t.Errorf("a folder: %v, want no error", err)
	}
	fifo := filepath.Join(dir, "fifo")
	hosttest.Pipe(t, fifo)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (Paths{Data: fifo}).Answers(ctx); err == nil || !strings.Contains(err.Error(), fifo) {
		t.Errorf("a FIFO: %v, want an error with its name, and no wait", err)
	}
	w, err := os.OpenFile(fifo, os.O_WRONLY, 0) // ends the call above
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		begun := time.Now()
		err := answers(t.Context(), "/data", func(string) error { <-end; return nil })
		if err == nil || !strings.HasPrefix(err.Error(), "the data directory /data does not answer within 15s: ") || time.Since(begun) != answerTimeout {
			t.Errorf("got %v after %v, want an error after %v", err, time.Since(begun), answerTimeout)
		}
		close(end)
	})
}
