package intake

import (
	"errors"
	"fmt"
	"os"
)

// TempFile opens an empty file in the directory for temporary files, which nobody else
// sees and which disappears when it is closed.
func TempFile() (*os.File, error) {
	f, err := os.CreateTemp("", "yaya-*")
	if err != nil {
		return nil, fmt.Errorf("open a temporary file: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil { //nolint:forbidigo // the file that has just been made
		return nil, errors.Join(fmt.Errorf("open a temporary file: %w", err), f.Close())
	}
	return f, nil
}
