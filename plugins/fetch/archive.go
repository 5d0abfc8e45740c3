package fetch

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Limits of the files of a plugin.
const (
	MaxEntries = 20_000    // files and folders
	MaxBytes   = 512 << 20 // of all files together
	maxDepth   = 64        // folders inside one another
)

// budget counts what an archive has written.
type budget struct {
	entries int
	bytes   int64
	folders map[string]bool // all that are made, even for a name that only passes through
}

// admit returns the name of an entry of this size, as it is used. An archive never decides by
// itself how much of it is read: the size is what is written at most.
func (b *budget) admit(name string, size int64) (string, error) {
	b.entries++
	clean := path.Clean(name)
	if strings.Count(clean, "/") > maxDepth {
		return "", fmt.Errorf("%.200q: more than %d folders inside one another", name, maxDepth)
	}
	if b.folders == nil {
		b.folders = map[string]bool{}
	}
	for dir := path.Dir(clean); dir != "." && dir != "/" && !b.folders[dir]; dir = path.Dir(dir) {
		b.folders[dir] = true
		b.entries++
	}
	if !filepath.IsLocal(clean) || b.entries > MaxEntries {
		return "", fmt.Errorf("%.200q: a name that leads outside, or more than %d entries", name, MaxEntries)
	}
	if size < 0 || size > MaxBytes {
		return "", fmt.Errorf("more than %d MiB", MaxBytes>>20)
	}
	if b.bytes += size; b.bytes > MaxBytes {
		return "", fmt.Errorf("more than %d MiB", MaxBytes>>20)
	}
	return clean, nil
}

func linked(name string) error {
	return fmt.Errorf("%.200q is neither a file nor a folder: a plugin has no links", name)
}

// Untar writes the files of a .tar.gz.
func Untar(to *os.Root, in io.Reader) error {
	zipped, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	files := tar.NewReader(io.LimitReader(zipped, MaxBytes+MaxEntries*1024))
	var b budget
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := b.admit(h.Name, h.Size)
		if err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = to.MkdirAll(name, 0o700)
		case tar.TypeReg:
			err = Put(to, name, files, h.Mode&0o111 != 0, h.Size)
		case tar.TypeXGlobalHeader:
		default:
			err = linked(h.Name)
		}
		if err != nil {
			return err
		}
	}
}

// Unzip writes the files of a zip.
func Unzip(to *os.Root, in io.ReaderAt, size int64) error {
	files, err := ZipFiles(in, size)
	if err != nil {
		return err
	}
	var b budget
	for _, f := range files {
		if f.UncompressedSize64 > MaxBytes {
			return fmt.Errorf("more than %d MiB", MaxBytes>>20)
		}
		name, err := b.admit(f.Name, int64(f.UncompressedSize64)) //nolint:gosec // bounded above
		if err != nil {
			return err
		}
		switch mode := f.Mode(); {
		case mode.IsDir():
			err = to.MkdirAll(name, 0o700)
		case mode.IsRegular():
			err = putZipped(to, name, f)
		default:
			err = linked(f.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ZipFiles reads the list of files at the end of a zip. zip.NewReader makes room for as many as the
// end record claims, and reads all that follow one another, however many it claims: both are bounded
// here.
func ZipFiles(in io.ReaderAt, size int64) ([]*zip.File, error) {
	end := make([]byte, min(size, zipEnd+math.MaxUint16)) // with the longest comment
	if _, err := in.ReadAt(end, size-int64(len(end))); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	at := bytes.LastIndex(end, []byte("PK\x05\x06"))
	if at < 0 || len(end)-at < zipEnd {
		return nil, zip.ErrFormat
	}
	// 0xffff stands for a number in a record of zip64, which no plugin is large enough for.
	if n := binary.LittleEndian.Uint16(end[at+10:]); n > MaxEntries {
		return nil, fmt.Errorf("more than %d entries", MaxEntries)
	}
	if n := binary.LittleEndian.Uint32(end[at+12:]); n > maxZipList {
		return nil, errZipList
	}
	if binary.LittleEndian.Uint32(end[at+16:]) == math.MaxUint32 {
		return nil, fmt.Errorf("more than %d MiB", MaxBytes>>20)
	}
	list := &zipList{in: in, left: maxZipList + 1<<20} // the end is read again
	files, err := zip.NewReader(list, size)
	list.read = true
	if err != nil {
		return nil, err
	}
	return files.File, nil
}

const (
	zipEnd     = 22      // bytes of the end record (APPNOTE 4.3.16) without a comment
	maxZipList = 8 << 20 // bytes of the list: 400 for each of as many entries as there may be
)

var errZipList = fmt.Errorf("the list of its files is larger than %d MiB", maxZipList>>20)

// zipList bounds what is read of a zip until its list is known.
type zipList struct {
	in   io.ReaderAt
	left int64
	read bool
}

// ReadAt implements [io.ReaderAt].
func (l *zipList) ReadAt(p []byte, off int64) (int, error) {
	if !l.read {
		if l.left -= int64(len(p)); l.left < 0 {
			return 0, errZipList
		}
	}
	return l.in.ReadAt(p, off)
}

func putZipped(to *os.Root, name string, f *zip.File) error {
	in, err := f.Open()
	if err != nil {
		return fmt.Errorf("%.200q: %w", f.Name, err)
	}
	err = Put(to, name, in, f.Mode()&0o111 != 0, int64(f.UncompressedSize64)) //nolint:gosec // bounded by the caller
	return errors.Join(err, in.Close())
}

// Put writes a new file of at most size bytes.
func Put(to *os.Root, name string, in io.Reader, executable bool, size int64) error {
	if err := to.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	if executable {
		mode = 0o700
	}
	out, err := to.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, size+1))
	if err == nil && n > size {
		err = fmt.Errorf("%s grows while it is read", name)
	}
	return errors.Join(err, out.Close())
}
