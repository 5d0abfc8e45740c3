package sandbox

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A limit of memory is of each process, unless yaya has a control group of its own
// (cgroup v2), as systemd gives with Delegate=yes and containers may. Then each sandbox
// gets a group below it, which bounds all of its processes together.

// spareTasks are threads of the sandbox's own process, which count like the program's.
const spareTasks = 64

// laterTasks are tasks that programs outside a sandbox may start after it.
const laterTasks = 1024

// limitOfTasks returns the RLIMIT_NPROC that lets a sandbox have n processes, 0 for none.
// The kernel counts the tasks of a user in a user namespace. alone says that the sandbox
// has none of its own: all threads of the user count, of a browser as well. The system has
// at least as many tasks, and says how many without a look at each.
func limitOfTasks(n int, alone bool) (uint64, error) {
	if n <= 0 || !alone {
		return uint64(max(0, n)), nil
	}
	data, err := os.ReadFile("/proc/loadavg") //nolint:forbidigo // a kernel file
	if err != nil {
		return 0, fmt.Errorf("limit processes: %w", err)
	}
	var running, all uint64
	var load float64
	if _, err := fmt.Sscanf(string(data), "%g %g %g %d/%d", &load, &load, &load, &running, &all); err != nil {
		return 0, fmt.Errorf("limit processes: read /proc/loadavg: %w", err)
	}
	return all + laterTasks + uint64(n), nil
}

// groups is the parent of the sandboxes' control groups.
type groups struct {
	dir string
	why string // there is none
}

var ownGroups = sync.OnceValue(func() groups {
	dir, err := delegated()
	if err == nil {
		err = enable(dir)
	}
	if err != nil {
		return groups{why: err.Error()}
	}
	return groups{dir: dir}
})

// groupPrefix begins the names of the groups of sandboxes.
const groupPrefix = "sandbox-"

// delegated returns the control group that yaya may divide.
func delegated() (string, error) {
	data, err := os.ReadFile("/proc/self/cgroup") //nolint:forbidigo // a kernel file
	if err != nil {
		return "", errors.New("this system has no control groups")
	}
	path := ""
	for line := range strings.Lines(string(data)) {
		if at, ok := strings.CutPrefix(line, "0::"); ok {
			path = strings.TrimSpace(at)
		}
	}
	mount, root, err := cgroupMount()
	if err != nil || path == "" {
		return "", errors.Join(errors.New("this system has no control groups of version 2"), err)
	}
	rel, err := filepath.Rel(root, path)
	if err != nil || strings.HasPrefix(rel, "..") {
		return "", errors.New("yaya's control group is outside what is mounted")
	}
	dir := filepath.Join(mount, rel)
	if _, err := os.Stat(filepath.Join(dir, "cgroup.type")); err != nil {
		return "", errors.New("yaya is in the root control group, which belongs to the system")
	}
	if unix.Access(dir, unix.W_OK) != nil || os.Geteuid() == 0 && path != "/" && !marked(dir) {
		return "", errors.New("yaya's control group is not its own (a systemd unit has one with Delegate=yes)")
	}
	return dir, nil
}

// cgroupMount returns where control groups of version 2 are mounted, and which of them
// that is.
func cgroupMount() (mount, root string, err error) {
	data, err := os.ReadFile("/proc/self/mountinfo") //nolint:forbidigo // a kernel file
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if at := slices.Index(f, "-"); at > 4 && at+1 < len(f) && f[at+1] == "cgroup2" {
			return f[4], f[3], nil
		}
	}
	return "", "", errors.New("cgroup2 is not mounted")
}

// marked reports whether systemd has delegated a control group.
func marked(dir string) bool {
	buf := make([]byte, 8)
	for _, name := range []string{"trusted.delegate", "user.delegate"} {
		if n, err := unix.Getxattr(dir, name, buf); err == nil && string(buf[:n]) == "1" {
			return true
		}
	}
	return false
}

// enable turns the controllers on below a group. It cannot hold processes itself then,
// so yaya moves into a group below it.
func enable(dir string) error {
	offered, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers")) //nolint:forbidigo,gosec // a kernel file
	if err != nil {
		return err
	}
	for _, c := range []string{"memory", "pids"} {
		if !slices.Contains(strings.Fields(string(offered)), c) {
			return fmt.Errorf("yaya's control group has no controller %q", c)
		}
	}
	own := filepath.Join(dir, "yaya")
	if err := os.Mkdir(own, 0o700); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:forbidigo,gosec // a kernel file
		return fmt.Errorf("make a control group: %w", err)
	}
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs")) //nolint:forbidigo,gosec // a kernel file
	if err != nil {
		return err
	}
	pids := strings.Fields(string(procs))
	for _, pid := range pids {
		if !descends(pid) {
			_ = os.Remove(own) //nolint:forbidigo,gosec // empty
			return errors.New("other programs are in yaya's control group")
		}
	}
	for _, pid := range pids {
		if err := set(own, "cgroup.procs", pid); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("move yaya to a control group: %w", err)
		}
	}
	sweep(dir)
	return set(dir, "cgroup.subtree_control", "+memory +pids")
}

// sweep removes the groups of a yaya that was killed. The kernel keeps those that hold
// a process.
func sweep(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, groupPrefix+"*")) // of names as they are: no error
	for _, name := range left {
		_ = os.Remove(name) //nolint:forbidigo,gosec // a group of ours, if empty
	}
}

// descends reports whether a process is this one or was started by it.
func descends(pid string) bool {
	for range 64 {
		if pid == strconv.Itoa(os.Getpid()) {
			return true
		}
		data, err := os.ReadFile("/proc/" + pid + "/stat") //nolint:forbidigo,gosec // a kernel file
		at := bytes.LastIndexByte(data, ')')
		f := strings.Fields(string(data[at+1:]))
		if err != nil || at < 0 || len(f) < 2 || f[1] == "0" {
			return false
		}
		pid = f[1]
	}
	return false
}

func set(dir, name, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0) //nolint:forbidigo,gosec // a kernel file
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// group makes the control group of a sandbox, nil where there cannot be one.
func group(l Limits) (*os.File, error) {
	g := ownGroups()
	if g.dir == "" || l.Memory == 0 && l.Processes == 0 {
		return nil, nil
	}
	dir := filepath.Join(g.dir, groupPrefix+strings.ToLower(rand.Text()))
	if err := os.Mkdir(dir, 0o700); err != nil { //nolint:forbidigo // a kernel file
		return nil, fmt.Errorf("make a control group: %w", err)
	}
	var err error
	if l.Memory > 0 {
		err = set(dir, "memory.max", strconv.FormatInt(l.Memory, 10))
		if swap := set(dir, "memory.swap.max", "0"); swap != nil && !errors.Is(swap, fs.ErrNotExist) {
			err = errors.Join(err, swap)
		}
	}
	if l.Processes > 0 {
		err = errors.Join(err, set(dir, "pids.max", strconv.Itoa(l.Processes+spareTasks)))
	}
	f, oerr := os.Open(dir) //nolint:forbidigo,gosec // a kernel file
	if err = errors.Join(err, oerr); err != nil {
		if f != nil {
			_ = f.Close()
		}
		_ = os.Remove(dir) //nolint:forbidigo // empty
		return nil, fmt.Errorf("limit a sandbox by a control group: %w", err)
	}
	return f, nil
}

// dissolve kills the remaining processes of a group, and removes it.
func dissolve(f *os.File) {
	if f == nil {
		return
	}
	defer func() { _ = f.Close() }()
	dir := f.Name()
	_ = set(dir, "cgroup.kill", "1") // Linux 5.14
	for range 200 {
		if empty(dir) && os.Remove(dir) == nil { //nolint:forbidigo // made by group
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func empty(dir string) bool {
	f, err := os.Open(filepath.Join(dir, "cgroup.procs")) //nolint:forbidigo,gosec // a kernel file
	if err != nil {
		return true
	}
	defer func() { _ = f.Close() }()
	return !bufio.NewScanner(f).Scan()
}
