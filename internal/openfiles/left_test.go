//go:build unix

package openfiles_test

import (
	"syscall"
	"testing"

	"github.com/yaya-ai/yaya/internal/openfiles"
)

// OP-54: Left tells the truth, and gives back what it tried.
func TestLeft(t *testing.T) {
	if !openfiles.Left(8) {
		t.Error("Left(8) = false in a process that has descriptors")
	}
	var before, after syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Close(fd)
	low := before
	low.Cur = uint64(fd + 4) //nolint:gosec // a descriptor; four are left
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Skip(err)
	}
	left := openfiles.Left(64)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if left {
		t.Error("Left(64) = true where at most four descriptors are left")
	}
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &after); err != nil || after != before {
		t.Errorf("the limit is %v, %v after the test, want %v", after, err, before)
	}
}
