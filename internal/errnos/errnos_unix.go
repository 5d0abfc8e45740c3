//go:build unix

package errnos

import "syscall"

// The errors.
const (
	NoSpace      = syscall.ENOSPC
	QuotaUsed    = syscall.EDQUOT
	ReadOnly     = syscall.EROFS
	TooManyFiles = syscall.EMFILE // of this process
	SystemFiles  = syscall.ENFILE // of the machine
	NoMemory     = syscall.ENOMEM
	NotEmpty     = syscall.ENOTEMPTY
	Refused      = syscall.ECONNREFUSED
	Reset        = syscall.ECONNRESET
	BrokenPipe   = syscall.EPIPE
	NoFamily     = syscall.EAFNOSUPPORT // of sockets
)
