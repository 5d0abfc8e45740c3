package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace replaces a file that may be a symbolic link, as in repositories of dotfiles:
// the links stay, and their target keeps its permissions and its owner. A new file is
// for its owner only, and Replace creates its folder, but not the folder of a link's
// target. Links of other users, and links that other users can replace, are errors:
// those users would choose the file that is written. On Windows every link is an error,
// because its description does not name its owner, and the file gets the access list of its
// folder.
func Replace(path string, data []byte) error {
	real, last, err := follow(path)
	if err != nil {
		return err
	}
	dir := filepath.Dir(real)
	if last == "" {
		if err := os.MkdirAll(dir, 0o700); err != nil { //nolint:forbidigo // the user names it
			return err
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		if last != "" {
			return fmt.Errorf("%s is a link to %s, which cannot be written: %w; make its folder, or remove the link", last, real, err)
		}
		return err
	}
	defer func() { _ = root.Close() }()
	name, perm := filepath.Base(real), fs.FileMode(0o600)
	was, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		was = nil
	case err != nil:
		return err
	case !was.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", real)
	default:
		perm = was.Mode().Perm()
	}
	if _, err = write(root, name, data, perm, was); err != nil && last != "" {
		return fmt.Errorf("%s is a link to %s: %w", last, real, err)
	}
	return err
}

// Remove removes a file. Links to it stay and dangle; links that Replace does not
// follow are errors.
func Remove(path string) error {
	real, _, err := follow(path)
	if err != nil {
		return err
	}
	return os.Remove(real) //nolint:forbidigo // the user names it
}
