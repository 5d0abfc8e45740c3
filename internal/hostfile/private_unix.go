//go:build unix

package hostfile

import (
	"fmt"
	"os"
	"path/filepath"
)

// Exposed returns how others than its owner can get at an open file or folder, such as "mode
// -rw-r--r--", and the command that ends that, such as "chmod 600 /x"; both are "" for a
// private one.
func Exposed(f *os.File) (how, fix string, err error) {
	st, err := f.Stat()
	if err != nil {
		return "", "", err
	}
	if mode := st.Mode(); mode.Perm()&0o077 != 0 {
		private := "600"
		if st.IsDir() {
			private = "700"
		}
		return fmt.Sprintf("mode %v", mode), "chmod " + private + " " + filepath.Clean(f.Name()), nil
	}
	return "", "", nil
}
