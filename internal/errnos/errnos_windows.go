package errnos

import "golang.org/x/sys/windows"

// The errors.
const (
	NoSpace      = windows.ERROR_DISK_FULL
	QuotaUsed    = windows.ERROR_DISK_QUOTA_EXCEEDED
	ReadOnly     = windows.ERROR_WRITE_PROTECT
	TooManyFiles = windows.ERROR_TOO_MANY_OPEN_FILES
	SystemFiles  = windows.ERROR_NO_SYSTEM_RESOURCES
	NoMemory     = windows.ERROR_NOT_ENOUGH_MEMORY
	NotEmpty     = windows.ERROR_DIR_NOT_EMPTY
	Refused      = windows.WSAECONNREFUSED
	Reset        = windows.WSAECONNRESET
	BrokenPipe   = windows.ERROR_NO_DATA   // of a pipe whose reader has closed it
	NoFamily     = windows.WSAEAFNOSUPPORT // of sockets
)
