package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
)

// Loss describes the records that [Mend] took out of a damaged file.
type Loss struct {
	Entry  int64  // id of the first record that is lost
	Lines  int64  // records that are lost, by their line ends
	Bytes  int64  // that those had
	Kept   int64  // records that were verified
	Reason string // what is wrong with the first lost record
}

// Mend cuts a damaged file to its verified records, and appends the record whose
// members note returns for the loss. The damaged file stays, whole, under the name
// aside, and nothing is lost on a crash: at every moment the damaged file or the mended
// one has the name. Without a verified record, or if note returns none, nothing takes
// the damaged file's place.
//
// A file that is not damaged is left alone, and Mend returns nil. An unfinished record at
// its end is damage only within the first least bytes, which were whole once. While another
// process has the file open, the error wraps [ErrLocked].
func Mend(fsys FS, name, aside string, least int64, note func(Loss) ([]byte, error)) (_ *Loss, err error) {
	f, err := fsys.Open(name, Append) // which keeps others from opening it
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	rep, err := scanFile(f, name, NoSum, nil)
	d, damaged := errors.AsType[*DamageError](err)
	if err == nil && rep.Torn > 0 && rep.Size < least {
		d, damaged = &DamageError{File: name, Entry: rep.Last + 1, Reason: "its end was overwritten"}, true
	}
	if !damaged {
		return nil, err
	}
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	loss := &Loss{Entry: d.Entry, Bytes: size - rep.Size, Reason: d.Reason}
	if rep.Size > 0 {
		loss.Kept = rep.Last - rep.First + 1
	}
	if loss.Lines, err = lines(io.NewSectionReader(f, rep.Size, loss.Bytes)); err != nil {
		return nil, err
	}
	var members []byte
	if loss.Kept > 0 {
		if members, err = note(*loss); err != nil {
			return nil, err
		}
	}
	if members == nil {
		return loss, SetAside(fsys, name, aside)
	}
	next := name + ".new"
	if err := prefix(fsys, next, io.NewSectionReader(f, 0, rep.Size), members); err != nil {
		return nil, fmt.Errorf("mend %s: %w", name, err)
	}
	if err := asideFolder(fsys, aside); err != nil {
		return nil, err
	}
	if err := fsys.Link(name, aside); err != nil {
		return nil, fmt.Errorf("mend %s: %w", name, err)
	}
	if err := fsys.SyncDir(path.Dir(aside)); err != nil {
		return nil, fmt.Errorf("mend %s: %w", name, err)
	}
	if err := fsys.Rename(next, name); err != nil {
		return nil, fmt.Errorf("mend %s: %w", name, err)
	}
	return loss, fsys.SyncDir(path.Dir(name))
}

// lines counts the lines of what is left, a last one without its end included.
func lines(r io.Reader) (n int64, err error) {
	buf := make([]byte, 64<<10)
	ended := true
	for {
		got, err := r.Read(buf)
		if got > 0 {
			n += int64(bytes.Count(buf[:got], []byte("\n")))
			ended = bytes.HasSuffix(buf[:got], []byte("\n"))
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	if !ended {
		n++
	}
	return n, nil
}

// prefix writes a file of verified records and one more, durably.
func prefix(fsys FS, name string, records io.Reader, members []byte) error {
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := fsys.Open(name, Create)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, records)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, fsys.Remove(name))
	}
	j, err := Open(fsys, name, Options{MustExist: true}) // which verifies it again
	if err != nil {
		return err
	}
	id, err := j.Append(members)
	if err == nil {
		err = j.Sync(context.Background(), id)
	}
	return errors.Join(err, j.Close())
}

// SetAside moves a file to another name, in folders that it makes, durably.
func SetAside(fsys FS, name, aside string) error {
	if err := asideFolder(fsys, aside); err != nil {
		return err
	}
	if err := fsys.Rename(name, aside); err != nil {
		return err
	}
	return errors.Join(fsys.SyncDir(path.Dir(aside)), fsys.SyncDir(path.Dir(name)))
}

func asideFolder(fsys FS, name string) error {
	dir := path.Dir(name)
	if err := fsys.MkdirAll(dir); err != nil {
		return err
	}
	for dir != "." {
		dir = path.Dir(dir)
		if err := fsys.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}
