package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/yaya-ai/yaya/internal/mounts"
	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// Bounds of the look at the host's sockets.
const (
	maxSockets   = 1024     // that are hidden one by one; each is a mount of the sandbox
	maxLook      = 200_000  // names in folders
	maxTable     = 16 << 20 // bytes of a table of sockets
	crowdFrom    = 32       // sockets below a folder for which it is hidden as a whole, if there are many
	manySockets  = 256      // for which folders are
	leastOfCrowd = 2        // names in the path of such a folder: never one like /tmp or /home
)

// hideSockets hides the sockets at paths of the host, because a read-only mount
// does not prevent connections. It also hides those in granted paths: the programs
// that listen there have not agreed to a program in a sandbox.
func (r *Run) hideSockets(s *rules, plan *inside.Plan) error {
	if r.policy.HostWrites || !plan.Mounts || r.trial {
		return nil
	}
	look := &socketLook{dirs: map[string]bool{}, found: map[string]bool{}}
	if err := look.host(); err != nil {
		return fmt.Errorf("look for sockets: %w", err)
	}
	sorted := inside.Sort(s.all)
	hide := map[string]bool{}
	for name := range look.found {
		name = real(name)
		for _, name := range append(r.mounts.Others(name, mounts.Itself), name) {
			if a := inside.Effective(sorted, name, plan.Otherwise()); a == inside.Read || a == inside.Write {
				hide[name] = true
			}
		}
	}
	if len(hide) > manySockets {
		for _, dir := range crowded(hide, func(dir string) bool {
			return dir == real(dir) && !inside.Covers(dir, plan.Dir) && !slices.ContainsFunc(sorted, func(r inside.Rule) bool { return inside.Covers(dir, r.Path) }) &&
				inside.Effective(sorted, dir, plan.Otherwise()) == inside.Read
		}) {
			s.link(inside.Hide, dir)
		}
	}
	if len(hide) > maxSockets {
		dir, n := busiest(hide)
		return fmt.Errorf("there are more than %d sockets to hide from the sandbox, %d of them in %s: end the program that made them, or remove them", maxSockets, n, dir)
	}
	s.link(inside.Hide, slices.Sorted(maps.Keys(hide))...)
	return nil
}

// crowded takes the sockets out of hide that are below folders with many of them, and
// returns these folders, as far as whole folders may be hidden.
func crowded(hide map[string]bool, may func(dir string) bool) (dirs []string) {
	below := map[string]int{}
	for name := range hide {
		for dir := filepath.Dir(name); strings.Count(dir, "/") >= leastOfCrowd; dir = filepath.Dir(dir) {
			below[dir]++
		}
	}
	// The deepest first: a folder above may have nothing but those below.
	all := slices.SortedFunc(maps.Keys(below), func(a, b string) int {
		if d := strings.Count(b, "/") - strings.Count(a, "/"); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for _, dir := range all {
		left := below[dir]
		if left < crowdFrom || !may(dir) {
			continue
		}
		dirs = append(dirs, dir)
		maps.DeleteFunc(hide, func(name string, _ bool) bool { return inside.Covers(dir, name) })
		for up := filepath.Dir(dir); strings.Count(up, "/") >= leastOfCrowd; up = filepath.Dir(up) {
			below[up] -= left
		}
	}
	return dirs
}

// busiest is the folder that has most of the sockets.
func busiest(names map[string]bool) (dir string, n int) {
	in := map[string]int{}
	for name := range names {
		in[filepath.Dir(name)]++
	}
	for _, d := range slices.Sorted(maps.Keys(in)) {
		if in[d] > n {
			dir, n = d, in[d]
		}
	}
	return dir, n
}

// socketLook finds the sockets at paths. The kernel's tables have the names that they were
// bound to: relative ones, and those of sockets that were renamed or linked since. Where a
// name leads to no socket, or to one with more names, the folder is searched.
type socketLook struct {
	dirs   map[string]bool // that were searched
	looked int             // names in them
	found  map[string]bool
}

// host looks at the network namespaces of all processes that this one may look at.
func (l *socketLook) host() error {
	relative := map[string]bool{}
	if err := l.table("/proc/net/unix", relative); err != nil {
		return err
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return err
	}
	seen := map[string]bool{own: true}
	for _, at := range processes {
		net, err := os.Readlink(at + "/ns/net") //nolint:gosec // the kernel's
		if err != nil || seen[net] {
			continue
		}
		seen[net] = true
		// Its process may end meanwhile, in any way that the kernel says it.
		err = l.table(at+"/net/unix", relative)
		if _, gone := errors.AsType[*fs.PathError](err); err != nil && !gone {
			return err
		}
	}
	if len(relative) == 0 {
		return nil
	}
	for _, at := range processes {
		folder, err := os.Readlink(at + "/cwd") //nolint:gosec // the kernel's
		if err != nil {
			continue
		}
		for name := range relative {
			if err := l.folder(filepath.Dir(filepath.Join(folder, name))); err != nil {
				return err
			}
		}
	}
	return nil
}

// table reads a table of sockets. Names with a line break look cut off there.
func (l *socketLook) table(file string, relative map[string]bool) error {
	f, err := os.Open(file) //nolint:forbidigo,gosec // a kernel file
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	in := &io.LimitedReader{R: f, N: maxTable}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		name, ok := boundTo(lines.Text())
		switch {
		case !ok:
		case name[0] == '/':
			if err := l.path(filepath.Clean(name)); err != nil {
				return err
			}
		default:
			relative[name] = true
		}
	}
	if in.N == 0 {
		return fmt.Errorf("%s has more than %d bytes", file, maxTable)
	}
	return lines.Err()
}

// boundTo returns the path of a line of a table of sockets:
// address, count, protocol, flags, type, state, inode, path.
func boundTo(line string) (string, bool) {
	for range 7 {
		line = strings.TrimLeft(line, " ")
		at := strings.IndexByte(line, ' ')
		if at < 0 {
			return "", false
		}
		line = line[at:]
	}
	line = strings.TrimPrefix(line, " ")
	return line, line != "" && line[0] != '@' && line != "Path"
}

// path looks at the name that a socket was bound to.
func (l *socketLook) path(name string) error {
	info, err := os.Lstat(name) //nolint:gosec // it is looked at, no more
	if err == nil && info.Mode()&os.ModeSocket != 0 {
		l.found[name] = true
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink == 1 {
			return nil
		}
	}
	return l.folder(filepath.Dir(name))
}

// folder looks for sockets in a folder.
func (l *socketLook) folder(dir string) error {
	if l.dirs[dir] {
		return nil
	}
	l.dirs[dir] = true
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0) //nolint:forbidigo,gosec // it is looked at, no more
	if err != nil {
		return nil //nolint:nilerr // it is gone, or nobody here can enter it
	}
	defer func() { _ = f.Close() }()
	for {
		entries, err := f.ReadDir(1000)
		for _, e := range entries {
			if e.Type()&os.ModeSocket != 0 {
				l.found[filepath.Join(dir, e.Name())] = true
			}
		}
		if l.looked += len(entries); l.looked > maxLook {
			return fmt.Errorf("there are more than %d names beside sockets, many of them in %s", maxLook, dir)
		}
		if err != nil {
			return nil //nolint:nilerr // its end, or no folder
		}
	}
}
