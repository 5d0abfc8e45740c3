package systemd

import (
	"errors"
	"os"
	"time"
)

// monotonic is for a manager that Windows does not have.
func monotonic() time.Duration { return 0 }

// passedFile refuses: no program on Windows is started with numbered descriptors.
func passedFile(int, string) (*os.File, error) {
	return nil, errors.New("LISTEN_FDS is set, and no sockets can be passed to a program on Windows: unset it")
}
