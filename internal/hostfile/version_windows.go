package hostfile

import (
	"io/fs"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Version holds those properties of a file that change with its content: two that are
// equal are of one content, unless the file changed twice within the resolution of
// [Version.Changed], or through a mapping.
type Version struct {
	id             ID
	size           uint64
	attributes     uint32
	wrote, changed int64 // in units of 100 ns
}

// basicInfo is FILE_BASIC_INFO.
type basicInfo struct {
	created, read, wrote, changed int64
	attributes, _                 uint32
}

// VersionOf returns the version of an open file.
func VersionOf(f *os.File) (Version, error) {
	d, err := describe(f)
	if err != nil {
		return Version{}, err
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return Version{}, err
	}
	var b basicInfo
	cerr := raw.Control(func(h uintptr) {
		err = windows.GetFileInformationByHandleEx(windows.Handle(h), windows.FileBasicInfo, (*byte)(unsafe.Pointer(&b)), uint32(unsafe.Sizeof(b)))
	})
	if cerr != nil {
		return Version{}, cerr
	}
	if err != nil {
		return Version{}, &fs.PathError{Op: "identify", Path: f.Name(), Err: err}
	}
	return Version{
		id:         ID{uint64(d.VolumeSerialNumber), uint64(d.FileIndexHigh)<<32 | uint64(d.FileIndexLow)},
		size:       uint64(d.FileSizeHigh)<<32 | uint64(d.FileSizeLow),
		attributes: b.attributes, wrote: b.wrote, changed: b.changed,
	}, nil
}

// Changed is when the content, or what the system knows of the file, was last changed.
func (v Version) Changed() time.Time {
	at := windows.Filetime{LowDateTime: uint32(v.changed), HighDateTime: uint32(v.changed >> 32)} //nolint:gosec // its halves
	return time.Unix(0, at.Nanoseconds())
}
