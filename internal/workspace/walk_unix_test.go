//go:build unix

package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/workspace"
)

// A pipe that a command puts in the place of a folder during a walk is left out, and not waited for.
func TestWalkWaitsForNoPipe(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "d")
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := (*workspace.Guard)(nil).Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	var left []string
	done := make(chan error, 1)
	go func() {
		done <- w.WalkAll(t.Context(), ".", func(workspace.Entry) error {
			return errors.Join(os.Remove(at), syscall.Mkfifo(at, 0o600))
		}, func(path string) { left = append(left, path) })
	}()
	select {
	case err := <-done:
		if err != nil || len(left) != 1 || left[0] != "d" {
			t.Errorf("WalkAll = %v, and left %q; want d left", err, left)
		}
	case <-time.After(10 * time.Second):
		t.Error("the walk waits for the pipe")
		if end, err := os.OpenFile(at, os.O_RDWR, 0); err == nil {
			_ = end.Close()
		}
	}
}
