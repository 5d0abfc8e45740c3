package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// room is a file system with so much free space.
type room struct {
	journal.FS
	free  int64
	err   error
	asked atomic.Int64
	wait  chan struct{} // Free returns when it is closed, unless it is nil
}

func (r *room) Free() (int64, error) {
	r.asked.Add(1)
	if r.wait != nil {
		<-r.wait
	}
	return r.free, r.err
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
		{"plenty of space", &disk{fs: &room{free: plenty}, data: whole}, plugin.Healthy, ""},
		{"almost full", &disk{fs: &room{free: 30 << 20}, data: whole}, plugin.Failing, "30 MiB free, and yaya takes no message with less than 64 MiB"},
		{"space unknown", &disk{fs: &room{err: &os.PathError{Op: "statfs", Path: "/secret/place", Err: syscall.EIO}}, data: whole}, plugin.Failing, "input/output error"},
		{"closed", &disk{fs: &room{free: plenty}, data: gone}, plugin.Failing, "cannot be written to"},
		{"removed", &disk{fs: &room{free: plenty}, data: removed}, plugin.Failing, "cannot be written to: no such file"},
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
		r := &room{free: 1 << 40}
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
