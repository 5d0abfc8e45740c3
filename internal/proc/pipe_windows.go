package proc

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

// pipeBuffer is how much a pipe holds: large messages whole, as on Linux.
const pipeBuffer = 512 << 10

// openPipe makes a pipe whose end of this process supports deadlines. The anonymous pipes of
// Windows do not, so it has a name, which nobody can guess; it takes one connection, of this
// user alone, which is made at once.
func openPipe(ours end) (r, w *os.File, err error) {
	name, err := windows.UTF16PtrFromString(`\\.\pipe\yaya-` + rand.Text())
	if err != nil {
		return nil, nil, err
	}
	sd, err := windows.SecurityDescriptorFromString("D:P(A;;FA;;;OW)")
	if err != nil {
		return nil, nil, fmt.Errorf("pipe: %w", err)
	}
	only := &windows.SecurityAttributes{SecurityDescriptor: sd}
	only.Length = 24 // of the structure
	mode, access := uint32(windows.PIPE_ACCESS_INBOUND), uint32(windows.GENERIC_WRITE)
	if ours == writes {
		mode, access = windows.PIPE_ACCESS_OUTBOUND, windows.GENERIC_READ
	}
	const flags = windows.FILE_FLAG_OVERLAPPED | windows.FILE_FLAG_FIRST_PIPE_INSTANCE
	here, err := windows.CreateNamedPipe(name, mode|flags, windows.PIPE_TYPE_BYTE|windows.PIPE_REJECT_REMOTE_CLIENTS, 1, pipeBuffer, pipeBuffer, 0, only)
	if err != nil {
		return nil, nil, fmt.Errorf("pipe: %w", err)
	}
	there, err := windows.CreateFile(name, access, 0, nil, windows.OPEN_EXISTING, 0, 0)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("pipe: %w", err), windows.CloseHandle(here))
	}
	mine, theirs := os.NewFile(uintptr(here), "pipe"), os.NewFile(uintptr(there), "pipe")
	if ours == writes {
		return theirs, mine, nil
	}
	return mine, theirs, nil
}

// widen has nothing to do: openPipe says how much a pipe holds.
func widen(*os.File) {}
