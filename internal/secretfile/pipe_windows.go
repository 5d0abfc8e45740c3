package secretfile

import (
	"context"
	"errors"
	"os"
)

// fromPipe refuses: a pipe has no path in a folder here, and none of \\.\pipe is waited for.
func fromPipe(context.Context, *os.File, int) ([]byte, error) {
	return nil, errors.New("it is a pipe, which is not read on Windows: name a file")
}
