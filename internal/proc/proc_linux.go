package proc

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// sysProcAttr has a process begin a group or, without a terminal, a session, which is a group, too.
func sysProcAttr(spec Spec) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: !spec.NoTerminal, Setsid: spec.NoTerminal, Pdeathsig: syscall.SIGKILL}
}

// widen lets a pipe hold large messages whole, which saves a round of waking up
// for every 64 KiB. Linux may refuse, and the pipe works as it is.
func widen(f *os.File) {
	if f == nil {
		return
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 512<<10)
	})
}

// killMarked kills every process whose environment holds marker and returns how
// many it found.
func killMarked(marker string) int {
	if marker == "" {
		return 0
	}
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	want := append([]byte(markerEnv+"="+marker), 0)
	self, found := os.Getpid(), 0
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil || pid == self {
			continue
		}
		if hasEnv(filepath.Join("/proc", d.Name(), "environ"), want) && syscall.Kill(pid, syscall.SIGKILL) == nil {
			found++
		}
	}
	return found
}

func hasEnv(path string, want []byte) bool {
	f, err := os.Open(path) //nolint:forbidigo,gosec // a file of /proc, named by a number
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	env, err := io.ReadAll(io.LimitReader(f, 1<<20)) //nolint:forbidigo // bounded by the reader
	return err == nil && (bytes.HasPrefix(env, want) || bytes.Contains(env, append([]byte{0}, want...)))
}
