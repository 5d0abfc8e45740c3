//go:build unix

package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// maxLinks is the maximum number of links on the way to a file, as in Linux.
const maxLinks = 40

// follow returns the path of the file that a path leads to, without links, and the last
// link on the way, "" if there is none. The file, and folders before it, may be missing.
func follow(path string) (real, last string, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return "", "", err
	}
	at, rest := "/", strings.Split(path, "/")
	for links := 0; len(rest) > 0; {
		if rest[0] == ".." { // of where a link has led
			at, rest = filepath.Dir(at), rest[1:]
			continue
		}
		next := filepath.Join(at, rest[0])
		if next == at { // between two slashes, or a dot
			rest = rest[1:]
			continue
		}
		st, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			if slices.Contains(rest, "..") { // a folder that is not there is in no other
				return "", "", fmt.Errorf("%s does not exist, and %s leads out of it by its parent: write the path without it", next, path)
			}
			return filepath.Join(at, filepath.Join(rest...)), last, nil
		}
		if err != nil {
			return "", "", err
		}
		if st.Mode()&fs.ModeSymlink == 0 {
			at, rest = next, rest[1:]
			continue
		}
		if err := mine(at, next, st); err != nil {
			return "", "", err
		}
		to, err := os.Readlink(next)
		if err != nil {
			return "", "", err
		}
		if links++; links > maxLinks {
			return "", "", fmt.Errorf("%s: too many links", path)
		}
		last = next
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(to, "/"), rest[1:]...)
	}
	return at, last, nil
}

// mine refuses a link that other users control: theirs, or in a folder where they can
// replace it, or the folder, or one that it is in. at has no links.
func mine(at, link string, st fs.FileInfo) error {
	if !trusted(st) {
		return fmt.Errorf("%s is a link of another user, which is not followed: replace it by one of your own, or by a file", link)
	}
	for dir := at; ; dir = filepath.Dir(dir) {
		up, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		if !trusted(up) {
			return fmt.Errorf("%s is not followed: %s belongs to another user, who can change the link", link, dir)
		}
		if bits := writers(up); bits != "" {
			return fmt.Errorf("%s is not followed: other users can change the link; chmod %s %s", link, bits, dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// writers returns the mode change that makes a folder writable by this user and root
// only, "" if it already is. If this user has a private group, the group counts as the
// user.
func writers(dir fs.FileInfo) string {
	perm := dir.Mode().Perm()
	if dir.Mode()&fs.ModeSticky != 0 {
		return ""
	}
	sys, ok := dir.Sys().(*syscall.Stat_t)
	group := perm&0o020 != 0 && (!ok || int(sys.Gid) != os.Getegid())
	switch others := perm&0o002 != 0; {
	case group && others:
		return "go-w"
	case group:
		return "g-w"
	case others:
		return "o-w"
	}
	return ""
}

// trusted reports whether a file belongs to this user, or to root.
func trusted(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && (sys.Uid == 0 || int(sys.Uid) == os.Geteuid())
}

// keepOwner gives a file the owner of another one.
func keepOwner(f *os.File, was fs.FileInfo) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	old, ok := was.Sys().(*syscall.Stat_t)
	now, okay := st.Sys().(*syscall.Stat_t)
	if !ok || !okay || old.Uid == now.Uid && old.Gid == now.Gid {
		return nil
	}
	if err := f.Chown(int(old.Uid), int(old.Gid)); err != nil {
		return fmt.Errorf("the file would no longer belong to user %d and group %d: %w", old.Uid, old.Gid, err)
	}
	return nil
}
