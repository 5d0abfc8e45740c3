package proc

import (
	"bytes"
	"errors"
	"sync"

	"golang.org/x/sys/unix"
)

var errLimits = errors.New("limits of a process cannot be read")

// fileLocks begins the line of /proc/<pid>/limits about RLIMIT_LOCKS.
var fileLocks = []byte("Max file locks")

// boxed reports whether a process carries the mark that every program in a sandbox gets
// and none can put off: RLIMIT_LOCKS of 0, which its children inherit. Of a process that
// has ended, that is unknown.
func (d procDir) boxed() (bool, error) {
	data, err := d.read("limits", 8<<10)
	if err != nil {
		return false, err
	}
	for line := range bytes.Lines(data) {
		if rest, ok := bytes.CutPrefix(line, fileLocks); ok {
			if f := bytes.Fields(rest); len(f) >= 2 { // soft, hard
				return string(f[1]) == "0", nil
			}
		}
	}
	return false, errLimits
}

// selfBoxed reports whether this process carries the mark: it is in a sandbox itself, and
// so is everything around it. Then the mark says nothing about others.
var selfBoxed = sync.OnceValue(func() bool {
	var now unix.Rlimit
	return unix.Prlimit(0, unix.RLIMIT_LOCKS, nil, &now) == nil && now.Max == 0
})

// Boxed reports whether this process is in a sandbox of yaya's.
func Boxed() bool { return selfBoxed() }

// killBoxed kills a process and its descendants, as far as they carry the mark. Those that
// come to this process meanwhile are found when the next one has ended.
func (d procDir) killBoxed() bool {
	next := d.children()
	killed := d.kill()
	for ; len(next) > 0; next = next[1:] {
		if child, err := openProc(next[0]); err == nil {
			next = append(next, child.children()...)
			killed = child.kill() || killed
			child.close()
		}
	}
	return killed
}

// kill kills the one process that was opened, if it carries the mark.
func (d procDir) kill() bool {
	fd, err := unix.PidfdOpen(d.pid, 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	// It lives still: so the id was its own when the descriptor was made.
	yes, err := d.boxed()
	return err == nil && yes && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil
}
