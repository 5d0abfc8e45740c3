package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"sync"
)

// MaxRecord bounds a record, its line end included, in bytes.
const MaxRecord = 4 << 20

var (
	// ErrTooLarge is returned by [Journal.Append] for a record of more than MaxRecord bytes.
	ErrTooLarge = fmt.Errorf("the record exceeds %d bytes", MaxRecord)
	// ErrFailed is returned after the disk failed, until [Journal.Recover] succeeds.
	ErrFailed = errors.New("the file failed and must be recovered first")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("the journal is closed")
)

// Journal is one open file. It locks the file until it is closed.
type Journal struct {
	fs   FS
	name string
	prev string // sum of the record before the first

	mu     sync.Mutex
	f      File
	rep    Report // the content of the file, Torn is 0
	buf    []byte
	synced int64         // id of the last record known to have reached the disk
	keep   Report        // the part that a recovery keeps: found on open, or synced since
	named  bool          // the file's name has, too
	round  chan struct{} // closed when the fsync under way has ended
	err    error
}

// Options configure how to open a journal.
type Options struct {
	// First is the id of the first record of a new file; 0 means 1.
	First int64
	// Prev is the sum of the record before the first one, for a file that continues
	// another; "" means [NoSum].
	Prev string
	// MustExist refuses to create the file.
	MustExist bool
	// Visit gets every existing record.
	Visit Visit
}

// Open opens or creates a file. It reads the whole file once, cuts off an
// unfinished last record, and returns a [*DamageError] for any other damage.
func Open(fsys FS, name string, o Options) (*Journal, error) {
	f, err := fsys.Open(name, Append)
	if errors.Is(err, fs.ErrNotExist) && !o.MustExist {
		f, err = fsys.Open(name, Create)
	}
	if err != nil {
		return nil, err
	}
	prev := cmp.Or(o.Prev, NoSum)
	rep, err := scanFile(f, name, prev, o.Visit)
	if err == nil && rep.Torn > 0 {
		err = f.Truncate(rep.Size)
		rep.Torn = 0
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if rep.Size == 0 {
		rep.First = max(o.First, 1)
		rep.Last = rep.First - 1
	}
	// The records and the name may come from a process that died before its fsync, or whose
	// fsync failed: they count as durable only after ours.
	return &Journal{fs: fsys, name: name, prev: prev, f: f, rep: rep, keep: rep, synced: rep.First - 1}, nil
}

// First returns the id of the first record, Last that of the last; Last is
// First-1 while there is none.
func (j *Journal) First() int64 { return j.rep.First }

// Last returns the id of the last record.
func (j *Journal) Last() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rep.Last
}

// Size returns the bytes of all records.
func (j *Journal) Size() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rep.Size
}

// Head returns the id of the last record and its sum, which stands for every record
// up to it. Without a record the sum is that of the record before the file, zeros
// without one.
func (j *Journal) Head() (id int64, sum string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rep.Last, j.rep.sum
}

// Append writes one record. members are the members of a JSON object without
// braces, at least one, none of them named id, prev or sum. The record has not
// reached the disk when Append returns.
func (j *Journal) Append(members []byte) (id int64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return 0, j.err
	}
	id = j.rep.Last + 1
	b := append(j.buf[:0], `{"id":`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, ',')
	b = append(b, members...)
	b = append(b, prevIntro...)
	b = append(b, j.rep.sum...)
	sum := digest(b)
	b = append(b, sumIntro...)
	b = append(b, sum...)
	b = append(b, lineEnd...)
	b = append(b, '\n')
	if cap(b) <= 64<<10 {
		j.buf = b
	}
	if len(b) > MaxRecord {
		return 0, ErrTooLarge
	}
	n, err := j.f.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		if terr := j.f.Truncate(j.rep.Size); terr != nil {
			j.err = fmt.Errorf("%s: %w: %w, and it could not be taken back: %w", j.name, ErrFailed, err, terr)
			return 0, j.err
		}
		return 0, fmt.Errorf("write %s: %w", j.name, err)
	}
	if (id-j.rep.First)%indexEvery == 0 {
		j.rep.index = append(j.rep.index, j.rep.Size)
	}
	j.rep.Last, j.rep.sum = id, sum
	j.rep.Size += int64(len(b))
	return id, nil
}

// Sync returns nil once the record of that id has reached the disk. When ctx
// ends first the record may or may not get there.
func (j *Journal) Sync(ctx context.Context, id int64) error {
	for {
		j.mu.Lock()
		switch {
		case j.synced >= id:
			j.mu.Unlock()
			return nil
		case j.err != nil:
			defer j.mu.Unlock()
			return j.err
		case id > j.rep.Last:
			defer j.mu.Unlock()
			return fmt.Errorf("%s has no entry %d", j.name, id)
		case j.round == nil:
			j.sync()
			j.mu.Unlock()
			continue
		}
		round := j.round
		j.mu.Unlock()
		select {
		case <-round:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sync runs one fsync for everybody; mu is held, and released meanwhile.
func (j *Journal) sync() {
	round := make(chan struct{})
	j.round = round
	upTo, named := j.rep, j.named
	j.mu.Unlock()
	err := j.f.Sync()
	if err == nil && !named {
		err = j.fs.SyncDir(path.Dir(j.name))
	}
	j.mu.Lock()
	j.round = nil
	close(round)
	if err != nil {
		j.err = fmt.Errorf("%s: %w: %w", j.name, ErrFailed, err)
		return
	}
	j.synced, j.keep, j.named = upTo.Last, upTo, true
}

// Recover makes a failed journal usable again: it cuts off everything appended since the
// last successful fsync, verifies the rest and syncs it. It returns the id of the last
// record that is left. Without a failure it does nothing.
func (j *Journal) Recover() (last int64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if errors.Is(j.err, ErrClosed) {
		return 0, j.err
	}
	if j.err == nil {
		return j.rep.Last, nil
	}
	if err := j.f.Truncate(j.keep.Size); err != nil {
		return 0, fmt.Errorf("recover %s: %w", j.name, err)
	}
	rep, err := scanFile(j.f, j.name, j.prev, nil)
	if err != nil {
		return 0, fmt.Errorf("recover: %w", err)
	}
	if rep.Size != j.keep.Size {
		return 0, fmt.Errorf("recover %s: %d bytes were synced and %d are there", j.name, j.keep.Size, rep.Size)
	}
	if rep.Size == 0 {
		rep.First, rep.Last = j.rep.First, j.rep.First-1
	}
	if err := j.f.Sync(); err != nil {
		return 0, fmt.Errorf("recover %s: %w", j.name, err)
	}
	j.rep, j.keep, j.synced, j.err = rep, rep, rep.Last, nil
	return rep.Last, nil
}

// Err returns why nothing can be appended, nil while all is well.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// Read visits the records from id on that were there when it was called, until
// visit returns an error, which it returns.
func (j *Journal) Read(from int64, visit Visit) error {
	j.mu.Lock()
	if errors.Is(j.err, ErrClosed) {
		defer j.mu.Unlock()
		return j.err
	}
	rep, f := j.rep, j.f
	j.mu.Unlock()
	from = max(from, rep.First)
	if from > rep.Last {
		return nil
	}
	block := (from - rep.First) / indexEvery
	id := rep.First + block*indexEvery
	lines := newLineReader(f, rep.index[block], rep.Size)
	for ; id <= rep.Last; id++ {
		line, err := lines.next()
		if err != nil {
			return fmt.Errorf("read %s: entry %d: %w", j.name, id, err)
		}
		if id < from {
			continue
		}
		if got, ok := lineID(line); !ok || got != id {
			return &DamageError{File: j.name, Entry: id, Offset: 0, Reason: "it changed while the file was open"}
		}
		if err := visit(id, line); err != nil {
			return err
		}
	}
	return nil
}

// Close syncs appended records and closes the file.
func (j *Journal) Close() error {
	j.mu.Lock()
	for j.round != nil {
		round := j.round
		j.mu.Unlock()
		<-round
		j.mu.Lock()
	}
	defer j.mu.Unlock()
	if errors.Is(j.err, ErrClosed) {
		return nil
	}
	var err error
	if j.err == nil && j.synced < j.rep.Last {
		j.sync()
		err = j.err
	}
	j.err = ErrClosed
	return errors.Join(err, j.f.Close())
}
