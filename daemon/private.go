package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

const (
	othersAny   = 0o077
	othersWrite = 0o022
)

// keepPrivate takes a data directory, and what lies directly in it, away from all users but
// its owner, as far as it belongs to the user that runs yaya; what lies deeper is then out of
// their reach. The notes say what was wrong, or still is. A directory of another ordinary
// user is refused: its owner could replace whatever yaya keeps there.
func keepPrivate(data *os.Root, euid int) (notes []string, err error) {
	st, err := data.Stat(".")
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	owner, mode := ownerOf(st), st.Mode().Perm()
	ours := owner == euid || euid == 0
	switch {
	case !ours && owner != 0:
		return nil, fmt.Errorf("data directory %s belongs to another user (id %d), who could replace what yaya keeps there: change its owner, or choose another --data-dir", data.Name(), owner)
	case !ours && mode&othersAny != 0: // as containers have it, in whose volumes root lets a group write
		return []string{fmt.Sprintf("the data directory %s belongs to root and has mode %04o, which yaya cannot change: others may be able to look into it, or to replace files there", data.Name(), mode)}, nil
	case !ours:
		return nil, nil
	}
	if mode&othersAny != 0 {
		if note := tighten(data, ".", mode); note != "" {
			notes = append(notes, note)
		}
		if mode&othersWrite != 0 {
			notes = append(notes, fmt.Sprintf("others could write in the data directory %s until now: yaya verify tells whether the audit and the conversations are whole, and yaya device list and yaya config list show what holds", data.Name()))
		}
	}
	entries, err := fs.ReadDir(data.FS(), ".")
	if err != nil {
		return notes, fmt.Errorf("data directory: %w", err)
	}
	for _, e := range entries {
		st, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) { // another yaya is at work
			continue
		}
		if err != nil {
			return notes, fmt.Errorf("data directory: %w", err)
		}
		if mode := st.Mode().Perm(); mode&othersAny != 0 && (st.IsDir() || st.Mode().IsRegular()) && (euid == 0 || ownerOf(st) == euid) {
			if note := tighten(data, e.Name(), mode); note != "" {
				notes = append(notes, note)
			}
		}
	}
	return notes, nil
}

// tighten leaves only its owner the rights to something in the data directory, and returns
// what there is to say about it.
func tighten(data *os.Root, name string, mode fs.FileMode) string {
	path := data.Name()
	if name != "." {
		path += "/" + name
	}
	err := data.Chmod(name, mode&^othersAny)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err == nil {
		var st fs.FileInfo
		if st, err = data.Lstat(name); err == nil && st.Mode().Perm()&othersAny != 0 {
			err = errors.New("its file system does not store modes")
		}
	}
	if err != nil {
		return fmt.Sprintf("%s has mode %04o, so others can reach it, and yaya cannot change that: %v", path, mode, err)
	}
	return fmt.Sprintf("%s had mode %04o: yaya has taken the rights of others away, and it has %04o now", path, mode, mode&^othersAny)
}

// ownerOf returns the id of a file's owner.
func ownerOf(st fs.FileInfo) int {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		return int(sys.Uid)
	}
	return -1
}
