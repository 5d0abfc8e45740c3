package gitread

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Modes of files in trees and in the index.
const (
	modeType    = 0o170000
	modeTree    = 0o040000
	modeRegular = 0o100000
	modeLink    = 0o120000
	modeModule  = 0o160000
	modeExec    = 0o100755
)

// entry is a file of the index.
type entry struct {
	path  string
	mode  uint32
	id    id
	stage uint8 // above 0: one side of a conflict
	// assumed is never looked at; skipped is not checked out; intended has no content
	// yet (git add -N).
	assumed, skipped, intended bool

	ctime, mtime  stamp
	ino, uid, gid uint32
	size          uint32
}

type stamp struct{ sec, nsec uint32 }

// index is the file of that name (gitformat-index).
type index struct {
	entries []entry
	written time.Time // when the file was
	tree    *subtree  // nil if it is not known
}

// subtree tells the tree object that a folder of the index is.
type subtree struct {
	name  string
	count int // of entries; below 0 the tree is not known
	id    id
	below []*subtree
}

func (t *subtree) child(name string) *subtree {
	if t == nil {
		return nil
	}
	for _, s := range t.below {
		if s.name == name {
			return s
		}
	}
	return nil
}

func (r *Repo) index() (*index, error) {
	ix := &index{}
	if info, err := r.git.Stat("index"); err == nil {
		ix.written = info.ModTime()
	}
	data, err := readFile(r.git, "index", maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return ix, nil
	}
	if err != nil {
		return nil, err
	}
	return ix, ix.parse(string(data)) // names are parts of one string
}

func (ix *index) parse(s string) error {
	bad := damaged("its index")
	if len(s) < 12+20 || s[:4] != "DIRC" {
		return bad
	}
	version, count := u32(s[4:]), u32(s[8:])
	if version < 2 || version > 4 {
		return damaged("its index has version %d", version)
	}
	end := len(s) - 20 // a checksum follows
	if int(count) > (end-12)/62+1 && version < 4 || int(count) > end/60 {
		return bad
	}
	ix.entries = make([]entry, 0, count)
	at, last := 12, ""
	for range count {
		if end-at < 63 {
			return bad
		}
		h := s[at : at+62]
		e := entry{
			ctime: stamp{u32(h), u32(h[4:])}, mtime: stamp{u32(h[8:]), u32(h[12:])}, ino: u32(h[20:]), mode: u32(h[24:]),
			uid: u32(h[28:]), gid: u32(h[32:]), size: u32(h[36:]), id: id([]byte(h[40:60])),
		}
		flags := binary.BigEndian.Uint16([]byte(h[60:62]))
		e.assumed, e.stage = flags&0x8000 != 0, uint8(flags>>12&3)
		start := at
		at += 62
		if flags&0x4000 != 0 {
			if version < 3 || end-at < 3 {
				return bad
			}
			more := binary.BigEndian.Uint16([]byte(s[at : at+2]))
			e.skipped, e.intended = more&0x4000 != 0, more&0x2000 != 0
			at += 2
		}
		kept := ""
		if version == 4 { // the name begins like the last one
			n, used := 0, 0
			for c := byte(0x80); c&0x80 != 0; used++ {
				if at >= end || used > 4 {
					return bad
				}
				if c = s[at]; used > 0 {
					n++
				}
				n = n<<7 | int(c&0x7f)
				at++
			}
			if n > len(last) {
				return bad
			}
			kept = last[:len(last)-n]
		}
		n := strings.IndexByte(s[at:end], 0)
		if n < 0 {
			return bad
		}
		e.path = s[at : at+n]
		if kept != "" {
			e.path = kept + e.path
		}
		at += n + 1
		if version < 4 {
			at = start + (at-start+7)/8*8
		}
		if len(ix.entries) > 0 {
			before := &ix.entries[len(ix.entries)-1]
			if c := strings.Compare(before.path, e.path); c > 0 || c == 0 && before.stage >= e.stage {
				return bad
			}
		}
		if e.mode&modeType == modeTree {
			return errors.New("the Git repository has a sparse index, which is not supported (git sparse-checkout reapply --no-sparse-index)")
		}
		if !sound(e.path) {
			return damaged("its index names %.100q", e.path)
		}
		last = e.path
		ix.entries = append(ix.entries, e)
	}
	return ix.extensions(s, at, end)
}

// sound tells whether a name can be one of a file in the work tree.
func sound(p string) bool {
	if p == "" || len(p) > 4096 || strings.Count(p, "/") >= maxDepth {
		return false
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == "" || part == "." || part == ".." || strings.EqualFold(part, ".git") {
			return false
		}
	}
	return true
}

func (ix *index) extensions(s string, at, end int) error {
	for end-at >= 8 {
		name, n := s[at:at+4], int(u32(s[at+4:]))
		at += 8
		if n > end-at {
			return damaged("its index")
		}
		switch {
		case name == "TREE":
			rest := s[at : at+n]
			t, ok := parseSubtree(&rest, 0)
			if !ok {
				return damaged("its index")
			}
			ix.tree = t
		case name == "link":
			return errors.New("the Git repository has a split index, which is not supported (git update-index --no-split-index)")
		case name[0] < 'A' || name[0] > 'Z':
			return damaged("its index needs the extension %q", name)
		}
		at += n
	}
	return nil
}

func parseSubtree(s *string, depth int) (*subtree, bool) {
	name, rest, ok := strings.Cut(*s, "\x00")
	line, rest, okay := strings.Cut(rest, "\n")
	a, b, has := strings.Cut(line, " ")
	count, err := strconv.Atoi(a)
	n, nerr := strconv.Atoi(b)
	if !ok || !okay || !has || err != nil || nerr != nil || n < 0 || n > len(rest) || depth > maxDepth {
		return nil, false
	}
	t := &subtree{name: name, count: count}
	if count >= 0 {
		if len(rest) < 20 {
			return nil, false
		}
		t.id = id([]byte(rest[:20]))
		rest = rest[20:]
	}
	*s = rest
	for range n {
		c, ok := parseSubtree(s, depth+1)
		if !ok {
			return nil, false
		}
		t.below = append(t.below, c)
	}
	return t, true
}

func u32(s string) uint32 { return binary.BigEndian.Uint32([]byte(s[:4])) }

// below returns the entries of a folder: "" or a path that ends in a slash.
func below(all []entry, prefix string) []entry {
	if prefix == "" {
		return all
	}
	lo, _ := slices.BinarySearchFunc(all, prefix, func(e entry, p string) int { return strings.Compare(e.path, p) })
	n, _ := slices.BinarySearchFunc(all[lo:], prefix, func(e entry, p string) int {
		if strings.HasPrefix(e.path, p) {
			return -1
		}
		return cmp.Compare(1, 0)
	})
	return all[lo : lo+n]
}

// find returns the entry of a path, without conflicts.
func (ix *index) find(p string) *entry {
	n, ok := slices.BinarySearchFunc(ix.entries, p, func(e entry, p string) int { return strings.Compare(e.path, p) })
	if !ok || ix.entries[n].stage != 0 {
		return nil
	}
	return &ix.entries[n]
}
