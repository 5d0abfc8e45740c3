package cluster

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/control"
	"github.com/yaya-ai/yaya/internal/journal"
)

// SealError says that the log is not what was sealed.
type SealError struct {
	File    string // below the data directory
	Entry   int64  // 0 for none
	Problem string
	Remedy  string
}

func (e *SealError) Error() string {
	at := ""
	if e.Entry > 0 {
		at = fmt.Sprintf(", entry %d", e.Entry)
	}
	return fmt.Sprintf("%s%s: %s; %s", e.File, at, e.Problem, e.Remedy)
}

const (
	remedyRestore = "keep the folders control and keys as evidence, and restore both from a backup of the same time; to begin again without one, move both out of the data directory, and enroll every device again"
	remedyOlder   = remedyRestore + "; if you know why (an older copy was restored, or an older yaya has run), remove keys/" + HeadFile + ": the next start goes on with the log as it is, and the log says so"
	remedyHead    = "restore it from a backup, or remove it: the next start goes on with the log as it is, and the log says so"
	remedyKey     = "restore keys/" + SealKeyFile + " from a backup; to begin again without one, move the folders control and keys out of the data directory, and enroll every device again"
)

func broken(entry int64, remedy, problem string, args ...any) *SealError {
	return &SealError{File: File, Entry: entry, Problem: fmt.Sprintf(problem, args...), Remedy: remedy}
}

// Sealed is a seal that was found to be good.
type Sealed struct {
	Entry int64     // index of the seal; it vouches for what lies before it
	Sum   string    // of the seal's record
	Time  time.Time // when it was made
}

// chain checks the seals of a log while its records are read in order.
type chain struct {
	key  ed25519.PublicKey // nil while there is none
	head *head             // nil without a head file

	last    int64
	sum     string
	seals   int
	newest  Sealed
	from    int64 // first entry that was sealed when it was written
	resumed []int64
	stopped bool  // the newest seal says that yaya stopped
	stray   int64 // first entry behind a stop, 0 for none
	good    bool  // the record that the head file names was found
}

// newChain reads what lies beside the log: the key and the head file.
func newChain(o *SealOptions) (*chain, ed25519.PrivateKey, error) {
	c := &chain{sum: journal.NoSum}
	key, err := readSealKey(o.Keys)
	if err != nil {
		return nil, nil, err
	}
	if c.head, err = readHead(o.fs()); err != nil {
		return nil, nil, err
	}
	switch {
	case key != nil:
		c.key, _ = key.Public().(ed25519.PublicKey)
		if c.head != nil && !ed25519.Verify(c.key, c.head.message(), c.head.Signature) {
			return nil, nil, &SealError{File: "keys/" + HeadFile, Problem: "the head file was changed, or belongs to another key", Remedy: remedyHead}
		}
	case c.head != nil:
		return nil, nil, keyMissing()
	}
	return c, key, nil
}

func keyMissing() error {
	return &SealError{File: "keys/" + SealKeyFile, Problem: "the key that seals the audit is missing, and the audit has seals", Remedy: remedyKey}
}

// visit takes in the next record.
func (c *chain) visit(e control.Entry, sum string) error {
	before := c.sum
	c.last, c.sum = e.Index, sum
	if c.head != nil && c.head.Entry == e.Index {
		c.good = c.head.Sum == sum
	}
	if e.Event != SealEvent {
		if c.stopped && c.stray == 0 {
			c.stray = e.Index
		}
		return nil
	}
	if c.key == nil {
		return keyMissing()
	}
	var s seal
	if err := e.Decode(&s); err != nil || !ed25519.Verify(c.key, s.message(e), s.Signature) {
		return broken(e.Index, remedyRestore, "the seal was not made with the seal key: the log was chained again, or is another yaya's")
	}
	switch {
	case s.Through+1 != e.Index:
		return broken(e.Index, remedyRestore, "the log was chained again: this seal was entry %d, so entries before it were removed or inserted", s.Through+1)
	case s.Head != before:
		return broken(e.Index, remedyRestore, "entries between %d and %d were changed after they had been sealed, and the chain was computed again", c.newest.Entry+1, s.Through)
	case c.stray > 0 && !s.Resumed:
		return c.strayed()
	}
	if c.seals == 0 {
		c.from = max(s.From, 1)
	}
	if s.Resumed {
		c.resumed = append(c.resumed, e.Index)
	}
	c.seals++
	c.stopped, c.stray = s.At == atStop, 0
	c.newest = Sealed{Entry: e.Index, Sum: sum, Time: e.Time}
	return nil
}

func (c *chain) strayed() error {
	return broken(c.stray, remedyOlder, "this and what follows was appended after yaya had stopped and sealed the log")
}

// end checks what can be said when the last record was read.
func (c *chain) end() error {
	if h := c.head; h != nil {
		switch {
		case c.last == 0:
			return broken(0, remedyRestore, "the log was emptied: it had %d entries when it was sealed last", h.Entry)
		case c.seals == 0:
			return broken(0, remedyRestore, "the log was chained again: none of its seals is there, and the newest was entry %d", h.Entry)
		case c.last < h.Entry:
			return broken(c.last+1, remedyOlder, "the log was cut: it ends here, and had %d entries when it was sealed last", h.Entry)
		case !c.good:
			return broken(h.Entry, remedyRestore, "the log was chained again: this is not the newest seal that keys/%s names", HeadFile)
		case c.stray > 0:
			return c.strayed()
		}
	}
	return nil
}

// headMissing reports whether there must be a head file, and is none. A crash can
// leave the very first seal without one.
func (c *chain) headMissing() bool { return c.head == nil && c.seals > 1 }

func removed() *SealError {
	return broken(0, remedyRestore, "the log was removed: it is not there, and the folder keys says that it was")
}

// isKey reports whether a file in the folder of keys shows that there was a log.
func isKey(name string) bool { return strings.HasSuffix(name, ".key") || name == HeadFile }

// Prepare comes before everything else of a start. It refuses a data directory
// whose log is gone while keys are there, and creates the empty log of a fresh one:
// before any key, so that no crash leaves keys without a log. known reports whether
// this yaya has been here before, so that its keys must be there.
func Prepare(data, keys journal.FS) (known bool, err error) {
	names, err := keys.ReadDir(".")
	if err != nil {
		return false, fmt.Errorf("folder of keys: %w", err)
	}
	f, err := data.Open(File, journal.ReadOnly)
	if errors.Is(err, fs.ErrNotExist) {
		for _, n := range names {
			if isKey(n.Name()) {
				return true, removed()
			}
		}
		return false, create(data)
	}
	if err != nil {
		return false, fmt.Errorf("control log: %w", err)
	}
	size, err := f.Size()
	if err := errors.Join(err, f.Close()); err != nil {
		return false, fmt.Errorf("control log: %w", err)
	}
	known = size > 0
	for _, n := range names {
		known = known || n.Name() == SealKeyFile || n.Name() == HeadFile
	}
	return known, nil
}

// create makes an empty log, durably.
func create(data journal.FS) error {
	err := data.MkdirAll(folder)
	if err == nil {
		err = data.SyncDir(".")
	}
	var f journal.File
	if err == nil {
		f, err = data.Open(File, journal.Create)
	}
	if err == nil {
		if err = errors.Join(f.Sync(), f.Close()); err == nil {
			err = data.SyncDir(folder)
		}
	}
	if err != nil {
		return fmt.Errorf("control log: %w", err)
	}
	return nil
}

// Verdict is what [Verify] found.
type Verdict struct {
	Report   journal.Report
	Found    bool       // there is a log
	Problem  *SealError // nil when the log is what was sealed
	Newest   Sealed     // newest good seal, if Entry is not 0
	From     int64      // first entry that was sealed when it was written
	Resumed  []int64    // seals that were made at a start without a head file
	Unsealed int64      // entries behind the newest seal
}

// Verify checks every bit of the log below a data directory, and its seals. It
// changes nothing, and may run beside the process that writes. keys is nil without a
// folder of keys. A record that is not as it was written is a [*journal.DamageError].
func Verify(data journal.FS, keys *os.Root) (v Verdict, err error) {
	c := &chain{sum: journal.NoSum}
	had := false // keys
	if keys != nil {
		// The head file is read first: the log may grow meanwhile.
		c, _, err = newChain(&SealOptions{Keys: keys})
		if p, ok := errors.AsType[*SealError](err); ok {
			v.Problem, c = p, &chain{sum: journal.NoSum}
		} else if err != nil {
			return v, err
		}
		names, err := journal.Root(keys).ReadDir(".")
		if err != nil {
			return v, err
		}
		for _, n := range names {
			had = had || isKey(n.Name())
		}
	}
	found := func(err error) error { // keeps the first problem, and goes on reading
		p, ok := errors.AsType[*SealError](err)
		if ok && v.Problem == nil {
			v.Problem = p
		}
		if ok {
			return nil
		}
		return err
	}
	v.Report, err = journal.Scan(data, File, func(id int64, line []byte) error {
		e, err := decode(id, line)
		if err != nil {
			return err
		}
		return found(c.visit(e, journal.Sum(line)))
	})
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
	v.Newest, v.From, v.Resumed = c.newest, c.from, c.resumed
	v.Unsealed = c.last - c.newest.Entry
	return v, err
}
