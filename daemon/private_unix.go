//go:build unix

package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

const (
	othersAny   = 0o077
	othersWrite = 0o022
)

// keepPrivate takes a data directory, and what lies directly in it, away from all users but
// its owner, as far as it belongs to the user that runs yaya; what lies deeper is then out of
// their reach. The notes say what was wrong, or still is. A directory of another ordinary
// user is refused: its owner could replace whatever yaya keeps there, and files that root
// makes there would shut out the owner's yaya.
func keepPrivate(data *os.Root, euid int) (notes []string, err error) {
	st, err := data.Stat(".")
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	owner, mode := ownerOf(st), st.Mode().Perm()
	ours := owner == euid
	switch {
	case !ours && euid == 0:
		return nil, ofOthers("data directory "+data.Name()+" belongs to", owner, "give the directory to root (chown -R root "+shellLine(data.Name(), nil)+")")
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

// ofOthers refuses to let root write where another user's yaya could not read it.
func ofOthers(what string, owner int, asRoot string) error {
	name, run := fmt.Sprintf("user %d", owner), fmt.Sprintf("'#%d'", owner)
	if u, err := user.LookupId(strconv.Itoa(owner)); err == nil {
		name, run = fmt.Sprintf("user %s (id %d)", u.Username, owner), u.Username
	}
	return fmt.Errorf("%s %s, whose yaya cannot open files that root writes there: run the command as that user (sudo -u %s yaya …); if yaya runs as root here, such as in a container, %s", what, name, run, asRoot)
}

// checkFolder refuses for root to create the data directory in a folder of another user,
// whose yaya could not open it.
func (p Paths) checkFolder(euid int) error {
	if euid != 0 {
		return nil
	}
	for dir := p.Data; ; dir = filepath.Dir(dir) {
		st, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
			continue
		}
		if err == nil && dir != p.Data && ownerOf(st) > 0 {
			return ofOthers(fmt.Sprintf("data directory %s does not exist, and the folder %s belongs to", p.Data, dir), ownerOf(st), "make the directory first (mkdir -m 700 "+shellLine(p.Data, nil)+")")
		}
		return nil
	}
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
