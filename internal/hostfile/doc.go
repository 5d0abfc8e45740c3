// Package hostfile has what differs between Unix and Windows about files: their identity and
// owner, who else can get at them, locks, free space, and how a folder's names become durable.
//
// # Links and pipes
//
// [NoFollow] is a flag for [OpenFile] and [os.OpenFile]. On Unix a link is an error then; on
// Windows the link itself is opened, and it is not a regular file. So a caller has to check the
// mode of what it has opened, which it does anyway because of pipes and devices. An [os.Root]
// ignores the flag on Unix: it follows links, within its folder. [OpenNoLink] does not.
//
// # Locks
//
// Locks are advisory, and belong to an open file: the same file, opened twice by one process,
// has two owners of locks. Closing the file lets go of its lock. On Windows, where the system
// keeps others from reading locked bytes, the locked byte lies behind every content.
//
// # Privacy
//
// On Unix, a file is private when its mode gives its group and others no right. On Windows,
// it is when its access list gives rights to its owner, the user of this process, the system
// and administrators alone: those get at every file there, as root does on Unix.
//
// Its functions are safe for concurrent use.
package hostfile

import "errors"

// ErrLocked reports that another open file has the lock.
var ErrLocked = errors.New("another process has locked the file")

// ID tells a file from every other one of the machine, whatever its names.
type ID struct{ Dev, Ino uint64 }
