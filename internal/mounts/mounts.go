// Package mounts finds the other paths of a file: a file system that is mounted at several
// places, or in part at another one (mount --bind, a subvolume of Btrfs, an automounted
// home), shows a file under several paths, and no link shows it.
//
// A [Table] is what Linux said about the mounts of a process at one moment
// (proc_pid_mountinfo(5)). It knows file systems by their device, network file systems by
// their server, and the layers of overlays by their paths. A file system in user space that
// passes files on (bindfs, sshfs to this machine) is unknown to it.
package mounts

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a table: an administrator may mount 100,000 times, and each line is read at
// each start of a program.
const (
	maxMounts = 20_000
	maxLine   = 64 << 10 // an overlay names up to 500 layers
	maxBytes  = 16 << 20
)

// mount is one line of a table.
type mount struct {
	id, parent int
	fs         string // which file system: two mounts with the same one show the same files
	root       string // the path in it that is mounted
	at         string // where
	layers     []string
}

// Table has the mounts of a process. The zero value and nil know no other paths. It is not
// changed, and safe for concurrent use.
type Table struct {
	top   *mount
	at    map[string][]*mount // by where
	roots map[place][]*mount  // by what is mounted
	below []*mount            // sorted by where
	inner []*mount            // sorted by what is mounted
	over  []*mount            // overlays
}

// place is a path in a file system.
type place struct{ fs, path string }

// Parse reads a table in the format of /proc/PID/mountinfo. It refuses one that it does not
// understand as a whole: a mount that is left out is a path that nobody knows.
func Parse(r io.Reader) (*Table, error) {
	t := &Table{at: map[string][]*mount{}, roots: map[place][]*mount{}}
	limited := &io.LimitedReader{R: r, N: maxBytes + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	for lines.Scan() {
		if len(t.below) == maxMounts {
			return nil, fmt.Errorf("there are more than %d mounts", maxMounts)
		}
		m, err := parseLine(lines.Text())
		if err != nil && limited.N > 0 { // else it was cut
			return nil, fmt.Errorf("mount %d of the table of mounts: %w", len(t.below)+1, err)
		}
		if err == nil {
			t.below = append(t.below, m)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the table of mounts: %w", err)
	}
	if limited.N <= 0 {
		return nil, fmt.Errorf("the table of mounts is larger than %d bytes", maxBytes)
	}
	return t, t.index()
}

// index orders the mounts.
func (t *Table) index() error {
	ids := make(map[int]*mount, len(t.below))
	for _, m := range t.below {
		ids[m.id] = m
		t.at[m.at] = append(t.at[m.at], m)
		t.roots[place{m.fs, m.root}] = append(t.roots[place{m.fs, m.root}], m)
		if len(m.layers) > 0 {
			t.over = append(t.over, m)
		}
	}
	for _, m := range t.at["/"] {
		// No path begins in a mount over the root.
		if above := ids[m.parent]; above == nil || above == m {
			t.top = m
		}
	}
	if t.top == nil {
		return errors.New("the table of mounts does not have the root folder, as after a chroot")
	}
	t.inner = slices.Clone(t.below)
	slices.SortStableFunc(t.below, func(a, b *mount) int { return strings.Compare(a.at, b.at) })
	slices.SortStableFunc(t.inner, func(a, b *mount) int { return compare(a, place{b.fs, b.root}) })
	return nil
}

func compare(m *mount, p place) int {
	if c := strings.Compare(m.fs, p.fs); c != 0 {
		return c
	}
	return strings.Compare(m.root, p.path)
}

// parseLine reads a line such as
//
//	36 35 98:0 /inner /mnt/a rw,noatime shared:1 unbindable - ext4 /dev/sda1 rw,errors=continue
//
// with any number of optional fields before the hyphen.
func parseLine(line string) (*mount, error) {
	words := strings.Split(line, " ")
	end := slices.Index(words, "-")
	if end < 6 || len(words) < end+4 {
		return nil, errors.New("not a line of mountinfo")
	}
	m := &mount{fs: words[2], root: unescape(words[3]), at: unescape(words[4])}
	var err error
	if m.id, err = strconv.Atoi(words[0]); err != nil {
		return nil, errors.New("the id is not a number")
	}
	if m.parent, err = strconv.Atoi(words[1]); err != nil {
		return nil, errors.New("the id of the parent is not a number")
	}
	if !strings.HasPrefix(m.at, "/") {
		return nil, errors.New("the path is not absolute")
	}
	m.at = path.Clean(m.at)
	m.ofKind(words[end+1], unescape(words[end+2]), words[end+3:])
	// Of what was removed or replaced since, Linux says so behind the path.
	m.root = strings.TrimSuffix(m.root, "//deleted")
	if strings.HasPrefix(m.root, "/") { // else it is not a path, as of a namespace
		m.root = path.Clean(m.root)
	}
	return m, nil
}

// ofKind notes what kinds of file systems have in common with others.
func (m *mount) ofKind(kind, source string, options []string) {
	switch kind {
	case "overlay":
		m.layers = layers(strings.Join(options, " "))
	case "nfs", "nfs4", "cifs", "smb3", "ceph":
		// The same export mounted with other options is another device.
		server, export, found := strings.Cut(source, ":/")
		if kind == "cifs" || kind == "smb3" {
			server, export, found = strings.Cut(strings.TrimLeft(source, "/"), "/")
		}
		if found && server != "" && strings.HasPrefix(m.root, "/") {
			m.fs, m.root = "network "+strings.ToLower(server), path.Join("/", export, m.root)
		}
	}
}

// layers are the folders of an overlay, as its options name them.
func layers(options string) (all []string) {
	for _, o := range splitEscaped(options, ',') {
		key, value, _ := strings.Cut(o, "=")
		switch strings.TrimSuffix(key, "+") {
		case "lowerdir", "upperdir", "datadir":
			for _, dir := range splitEscaped(value, ':') {
				if dir = unescape(dir); strings.HasPrefix(dir, "/") {
					all = append(all, path.Clean(dir))
				}
			}
		}
	}
	return all
}

// splitEscaped splits at each separator that no backslash precedes, and removes the backslashes
// before the others.
func splitEscaped(s string, sep byte) (parts []string) {
	var part strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == sep:
			i++
			part.WriteByte(s[i])
		case s[i] == sep:
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteByte(s[i])
		}
	}
	return append(parts, part.String())
}

// unescape replaces the octal escapes of Linux, such as \040 for a space.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}
