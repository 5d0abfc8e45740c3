package proc

import (
	"bufio"
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TW-15: a process is ours by its parents, its group, or its marker, and so is the
// socket that it holds; others are not.
func TestOwns(t *testing.T) {
	var m Manager
	defer m.Close(context.Background())
	if m.Owns(os.Getpid()) || m.Owns(1) {
		t.Error("without a child somebody is ours")
	}
	p, err := m.Start(Spec{Path: "/bin/sh", Args: []string{"-c", "sleep 60 & echo $!; setsid sleep 60 & echo $!; (setsid sleep 60 & echo $!); wait"}, Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(p.Stdout)
	for n := range 3 {
		if !lines.Scan() {
			t.Fatal("no more lines")
		}
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		if !m.Owns(pid) {
			t.Errorf("child %d is not ours", n)
		}
	}
	if !m.Owns(p.PID()) || m.Owns(os.Getpid()) || m.Owns(os.Getppid()) || m.Owns(0) || m.Owns(-1) {
		t.Error("who is ours, and who is not, are mixed up")
	}
	// A socket of this process is not a child's.
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // test
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var inode uint64
	if err := raw.Control(func(fd uintptr) {
		var st syscall.Stat_t
		if err := syscall.Fstat(int(fd), &st); err != nil {
			t.Error(err)
		}
		inode = st.Ino
	}); err != nil {
		t.Fatal(err)
	}
	if inode == 0 || m.HoldsSocket(uint32(inode)) || m.HoldsSocket(0) {
		t.Errorf("socket %d is taken for a child's", inode)
	}
	// The pipes of a child are no sockets; what it holds is found by its descriptors.
	entries, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(p.PID()), "fd"))
	if err != nil || len(entries) < 3 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(p.PID()), "fd", e.Name()))
		if err == nil && strings.HasPrefix(to, "socket:") {
			t.Errorf("a child was given %s", to)
		}
	}
}
