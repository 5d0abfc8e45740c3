// Package userfile reads the files that a person writes or names: configurations of yaya
// and of other clients, and tokens. A read is bounded and waits for nobody.
package userfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// Max bounds a file, in bytes. Claude Code keeps its history in the file of its servers.
const Max = 16 << 20

// Read returns the content of a file, and false when there is none.
func Read(path string) ([]byte, bool, error) {
	// A pipe in the place of a file would wait for its writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:forbidigo,gosec // the user names it
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = f.Close() }()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, false, errors.Join(fmt.Errorf("%s is not a regular file", path), err)
	}
	data, err := io.ReadAll(io.LimitReader(f, Max+1)) //nolint:forbidigo // bounded by the reader
	if err != nil {
		return nil, false, err
	}
	if len(data) > Max {
		return nil, false, fmt.Errorf("%s is larger than %d bytes", path, Max)
	}
	return data, true, nil
}
