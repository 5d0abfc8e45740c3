package mounts

import (
	"fmt"
	"os"
)

// Here returns the present mounts of this process. An error says why they are not known.
// It is called for each use: Linux reports a new mount, but not that a folder above
// one was renamed.
func Here() (*Table, error) {
	f, err := os.Open("/proc/self/mountinfo") //nolint:forbidigo // a file of /proc
	if err != nil {
		return nil, fmt.Errorf("read the table of mounts: %w", err)
	}
	defer func() { _ = f.Close() }()
	return Parse(f)
}
