package local

import (
	"errors"
	"io/fs"
	"os"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/internal/journal"
)

// Verdict is the result of [Verify].
type Verdict struct {
	Report   journal.Report
	Found    bool       // there is a log
	Files    int        // of its entries
	Problem  *SealError // nil when the log matches its seals
	Newest   Sealed     // newest good seal, if Entry is not 0
	From     int64      // first entry that was sealed when it was written
	Resumed  []int64    // seals that were made at a start without a head file
	Unsealed int64      // entries behind the newest seal
}

// Verify checks every bit of the log below a data directory, its seals and its
// snapshot. It changes nothing, and may run beside the process that writes. keys is nil
// without a folder of keys. A damaged record is a [*journal.DamageError].
func Verify(data journal.FS, keys *os.Root) (Verdict, error) { return verify(data, keys, true) }

// VerifyReplica checks every bit of a replica, which nobody has sealed. Its seals are
// older than the replica, or another node's.
func VerifyReplica(data journal.FS) (v Verdict, err error) {
	v.Report, err = scanLines(data, func(id int64, line []byte) error {
		_, err := decode(id, line)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return v, nil
	}
	if p, ok := errors.AsType[*SealError](err); ok {
		v.Problem, err = p, nil
	}
	v.Found, v.Files = true, 1
	return v, err
}

// Check is [Verify] without what the snapshot vouches for: of the segments that it
// names, it checks no more than that they are there and have their length. Without a
// snapshot it is Verify.
func Check(data journal.FS, keys *os.Root) (Verdict, error) { return verify(data, keys, false) }

func verify(data journal.FS, keys *os.Root, whole bool) (v Verdict, err error) {
	for range patience {
		before, err := listSegments(data)
		if err != nil {
			return v, err
		}
		v, err = verifyOnce(data, keys, whole)
		v.Files = len(before) + 1
		if v.Problem == nil && err == nil {
			return v, nil
		}
		after, lerr := listSegments(data)
		if lerr != nil || len(after) == len(before) { // else the log has closed a segment meanwhile
			return v, errors.Join(err, lerr)
		}
	}
	return v, errMoved
}

// patience is how often a reading of the files begins again, because the log has closed
// a segment meanwhile.
const patience = 20

func verifyOnce(data journal.FS, keys *os.Root, whole bool) (v Verdict, err error) {
	found := func(err error) error { // keeps the first problem, and continues reading
		p, ok := errors.AsType[*SealError](err)
		if ok && v.Problem == nil {
			v.Problem = p
		}
		if ok {
			return nil
		}
		return err
	}
	c := &chain{sum: journal.NoSum}
	had := false // keys
	if keys != nil {
		// The head file is read first: the log may grow meanwhile.
		read, _, err := newChain(&SealOptions{Keys: keys})
		if err := found(err); err != nil {
			return v, err
		}
		if read != nil {
			c = read
		}
		if had, err = hasAny(journal.Root(keys), isKey); err != nil {
			return v, err
		}
	}
	snap, err := readSnapshot(data, c.key)
	if err := found(err); err != nil {
		return v, err
	}
	if whole || snap == nil {
		err = v.readAll(data, c, snap, found)
	} else {
		err = v.readTail(data, c, snap, found)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = nil
		if had {
			err = found(removed())
		}
	case err == nil:
		v.Found = true
		err = found(c.end())
		if c.headMissing() && err == nil {
			err = found(&SealError{File: "keys/" + HeadFile, Problem: "the head file is missing: nobody can tell whether entries behind the newest seal were cut off", Remedy: "restore it from a backup; the next start goes on with the log as it is, and the log says so"})
		}
	}
	v.Newest, v.From, v.Resumed = c.seals.Newest, c.seals.From, c.seals.Resumed
	v.Unsealed = c.last - v.Newest.Entry
	return v, err
}

// readAll reads every entry.
func (v *Verdict) readAll(data journal.FS, c *chain, snap *snapshot, found func(error) error) (err error) {
	v.Report, err = scanLines(data, func(id int64, line []byte) error {
		e, err := decode(id, line)
		if err != nil {
			return err
		}
		sum := journal.Sum(line)
		if snap != nil && id == snap.Entry && sum != snap.Sum {
			if err := found(notOfSnapshot(id)); err != nil {
				return err
			}
		}
		return found(c.visit(e, sum))
	})
	if p, ok := errors.AsType[*SealError](err); ok { // nothing behind it can be read
		c.head, c.note = nil, nil
		return found(p)
	}
	if err == nil && snap != nil && c.last < snap.Entry {
		return found(broken(c.last+1, remedyOlder, "the log was cut: it ends here, and %s was made at entry %d", StateFile, snap.Entry))
	}
	return err
}

// readTail reads the entries behind the snapshot.
func (v *Verdict) readTail(data journal.FS, c *chain, snap *snapshot, found func(error) error) error {
	r := &reading{fs: data, visit: func(control.Entry) error { return nil }}
	if c.key != nil {
		r.chain = c
	}
	err := r.locate(snap)
	if err == nil {
		err = r.closed()
	}
	if err == nil {
		v.Report, err = journal.ScanAfter(data, File, r.before.sum, r.tailLine)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err == nil {
		last := r.before.last
		if v.Report.Size > 0 {
			last = v.Report.Last
		}
		v.Report.First, v.Report.Last = 1, last
		for _, s := range r.segments {
			v.Report.Size += s.Size
		}
		err = r.ended(last)
	}
	if p, ok := errors.AsType[*SealError](err); ok {
		c.head, c.note = nil, nil
		return found(p)
	}
	return err
}

// notOfSnapshot reports an entry that is another one than the snapshot was made at.
func notOfSnapshot(entry int64) *SealError {
	return broken(entry, remedyRestore, "the log was chained again: this is not the entry that %s names", StateFile)
}
