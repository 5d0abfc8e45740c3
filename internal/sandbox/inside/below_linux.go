package inside

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

// openBelow opens a path without following a symbolic link in any part of it.
func openBelow(root int, path string) (int, error) {
	rel := strings.TrimPrefix(path, "/")
	if rel == "" {
		rel = "."
	}
	fd, err := unix.Openat2(root, rel, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err == unix.ENOSYS { //nolint:errorlint // an errno; so it is in a sandbox
		return walkBelow(root, rel)
	}
	return fd, err
}

// walkBelow does so part by part. Parts of paths of a plan do not lead up.
func walkBelow(root int, rel string) (int, error) {
	at, err := unix.Openat(root, ".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for rel != "" && err == nil {
		part, rest, _ := strings.Cut(rel, "/")
		flags := unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
		if rel = rest; rel != "" {
			flags |= unix.O_DIRECTORY // which a link is not
		}
		if part == "" || part == "." {
			continue
		}
		if part == ".." {
			_ = unix.Close(at)
			return -1, unix.EINVAL
		}
		var next int
		next, err = unix.Openat(at, part, flags, 0)
		_ = unix.Close(at)
		at = next
	}
	return at, err
}

// pinned opens the file of a rule and makes sure that it is the one agreed to.
func (r *Rule) pinned(root int) (int, unix.Stat_t, error) {
	var st unix.Stat_t
	name := r.Path
	if r.From != "" {
		name = r.From
	}
	fd, err := openBelow(root, name)
	if err != nil {
		return -1, st, err
	}
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return -1, st, err
	}
	if r.Ino != 0 && (st.Ino != r.Ino || st.Dev != r.Dev) { //nolint:unconvert // differs by architecture
		_ = unix.Close(fd)
		return -1, st, errors.New("it was replaced since it was agreed to")
	}
	return fd, st, nil
}
