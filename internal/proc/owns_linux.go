package proc

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Owns reports whether a process is one of the manager's, or descends from one: by its
// parents, by its group, or by the marker in its environment. (One that has left all
// three behind is not known any more.)
func (m *Manager) Owns(pid int) bool {
	pids, markers := m.live()
	if len(pids) == 0 || pid <= 0 {
		return false
	}
	return owned(pid, pids, markers)
}

// HoldsSocket reports whether such a process has the socket of that inode open.
func (m *Manager) HoldsSocket(inode uint32) bool {
	pids, markers := m.live()
	if len(pids) == 0 || inode == 0 {
		return false
	}
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	want := fmt.Sprintf("socket:[%d]", inode)
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil || pid == os.Getpid() || !owned(pid, pids, markers) {
			continue
		}
		fds := filepath.Join("/proc", d.Name(), "fd")
		entries, err := os.ReadDir(fds)
		if err != nil {
			continue // it has ended
		}
		for _, e := range entries {
			if to, err := os.Readlink(filepath.Join(fds, e.Name())); err == nil && to == want {
				return true
			}
		}
	}
	return false
}

func (m *Manager) live() (pids map[int]bool, markers map[string]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	pids, markers = make(map[int]bool, len(m.procs)), make(map[string]bool, len(m.procs))
	for p := range m.procs {
		pids[p.PID()] = true
		markers[markerEnv+"="+p.marker] = true
	}
	return pids, markers
}

// owned walks up from a process.
func owned(pid int, pids map[int]bool, markers map[string]bool) bool {
	for at, n := pid, 0; at > 1 && n < 64; n++ {
		if pids[at] {
			return true
		}
		parent, group, ok := stat(at)
		if !ok {
			return false
		}
		if pids[group] {
			return true
		}
		at = parent
	}
	return marked(pid, markers)
}

// marked looks for a marker of ours in a process's environment.
func marked(pid int, markers map[string]bool) bool {
	f, err := os.Open(fmt.Sprintf("/proc/%d/environ", pid)) //nolint:forbidigo // a kernel file, named by a number
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	env, err := io.ReadAll(io.LimitReader(f, 1<<20)) //nolint:forbidigo // bounded by the reader
	if err != nil {
		return false
	}
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.HasPrefix(kv, []byte(markerEnv+"=")) && markers[string(kv)] {
			return true
		}
	}
	return false
}

// stat returns parent and group of a process (proc_pid_stat(5)).
func stat(pid int) (parent, group int, ok bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) //nolint:forbidigo // a kernel file, named by a number
	if err != nil {
		return 0, 0, false
	}
	rest := string(data[bytes.LastIndexByte(data, ')')+1:]) // the name before it may hold anything
	fields := strings.Fields(rest)
	if len(fields) < 3 {
		return 0, 0, false
	}
	parent, err1 := strconv.Atoi(fields[1])
	group, err2 := strconv.Atoi(fields[2])
	return parent, group, err1 == nil && err2 == nil
}
