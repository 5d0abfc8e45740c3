package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// follow returns the absolute path of a file. A link on the way, or a junction, is an error:
// whoever made it would choose the file that is written, and its description does not say who
// that is. last is always "".
func follow(path string) (real, last string, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return "", "", err
	}
	for at := path; ; at = filepath.Dir(at) {
		st, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", "", err
		case st.Mode()&(fs.ModeSymlink|fs.ModeIrregular) != 0:
			return "", "", fmt.Errorf("%s is a link, which is not followed on Windows: name the file that it leads to, or replace it by a file", at)
		}
		if at == filepath.Dir(at) {
			return path, "", nil
		}
	}
}

// keepOwner does nothing: a new file has the owner and the access list that its folder gives.
func keepOwner(*os.File, fs.FileInfo) error { return nil }
