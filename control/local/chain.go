package local

import (
	"crypto/ed25519"
	"fmt"
	"time"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/internal/journal"
)

// SealError reports that the log does not match its seals.
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
	remedyOlder   = remedyRestore + "; if you know why (an older copy was restored, or an older yaya has run), remove keys/" + HeadFile + ", and keys/" + LastFile + " if it is there: the next start goes on with the log as it is, and the log says so"
	remedyHead    = "restore it from a backup, or remove it: the next start goes on with the log as it is, and the log says so"
	remedyKey     = "restore keys/" + SealKeyFile + " from a backup; to begin again without one, move the folders control and keys out of the data directory, and enroll every device again"
)

func broken(entry int64, remedy, problem string, args ...any) *SealError {
	return &SealError{File: File, Entry: entry, Problem: fmt.Sprintf(problem, args...), Remedy: remedy}
}

// Sealed is a valid seal.
type Sealed struct {
	Entry int64     `json:"entry"` // index of the seal; it vouches for all entries before it
	Sum   string    `json:"sum"`   // of the seal's record
	Time  time.Time `json:"ts"`    // when it was made
}

// sealState is the state of a log's seals up to an entry.
type sealState struct {
	Count   int     `json:"count"`
	Newest  Sealed  `json:"newest"`
	From    int64   `json:"from"` // first entry that was sealed when it was written
	Resumed []int64 `json:"resumed,omitempty"`
	Stopped bool    `json:"stopped,omitempty"` // the newest seal was made when yaya stopped
}

// chain checks the seals of a log while its records are read in order.
type chain struct {
	key  ed25519.PublicKey // nil while there is none
	head *head             // nil without a head file
	note *head             // newest entry that was written, nil if unknown or a seal

	last  int64
	sum   string
	seals sealState
	stray int64 // first entry after a stop, 0 for none
	good  bool  // the record that the head file names was found
}

// newChain reads the key and the head file.
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
	if c.note, err = readLast(o.fs(), c.key); err != nil {
		return nil, nil, err
	}
	return c, key, nil
}

// resume continues behind the snapshot of a reading.
func (c *chain) resume(r *reading) error {
	c.last, c.sum, c.seals = r.at.last, r.at.sum, r.snap.Seals
	for _, h := range []*head{c.head, c.note} {
		if h == nil || h.Entry > c.last {
			continue
		}
		sum, err := r.sumOf(h.Entry)
		if err != nil {
			return err
		}
		if err := c.meet(h.Entry, sum); err != nil {
			return err
		}
	}
	return nil
}

// meet compares an entry with what the folder of keys says of it.
func (c *chain) meet(entry int64, sum string) error {
	if c.head != nil && c.head.Entry == entry {
		c.good = c.head.Sum == sum
	}
	if c.note != nil && c.note.Entry == entry && c.note.Sum != sum {
		return broken(entry, remedyRestore, "this is not the entry that keys/%s names: it was changed", LastFile)
	}
	return nil
}

func keyMissing() error {
	return &SealError{File: "keys/" + SealKeyFile, Problem: "the key that seals the audit is missing, and the audit has seals", Remedy: remedyKey}
}

// visit processes the next record.
func (c *chain) visit(e control.Entry, sum string) error {
	before := c.sum
	c.last, c.sum = e.Index, sum
	if err := c.meet(e.Index, sum); err != nil {
		return err
	}
	if e.Event != control.SealEvent {
		if c.seals.Stopped && c.stray == 0 {
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
		return broken(e.Index, remedyRestore, "entries between %d and %d were changed after they had been sealed, and the chain was computed again", c.seals.Newest.Entry+1, s.Through)
	case c.stray > 0 && !s.Resumed:
		return c.strayed()
	}
	c.seals.add(s, e, sum)
	c.stray = 0
	return nil
}

// add counts another seal.
func (t *sealState) add(s seal, e control.Entry, sum string) {
	if t.Count == 0 {
		t.From = max(s.From, 1)
	}
	if s.Resumed {
		t.Resumed = append(t.Resumed, e.Index)
	}
	t.Count++
	t.Stopped = s.At == atStop
	t.Newest = Sealed{Entry: e.Index, Sum: sum, Time: e.Time}
}

func (c *chain) strayed() error {
	return broken(c.stray, remedyOlder, "this and what follows was appended after yaya had stopped and sealed the log")
}

// end runs the checks that need the whole log.
func (c *chain) end() error {
	if h := c.head; h != nil {
		switch {
		case c.last == 0:
			return broken(0, remedyRestore, "the log was emptied: it had %d entries when it was sealed last", h.Entry)
		case c.seals.Count == 0:
			return broken(0, remedyRestore, "the log was chained again: none of its seals is there, and the newest was entry %d", h.Entry)
		case c.last < h.Entry:
			return broken(c.last+1, remedyOlder, "the log was cut: it ends here, and had %d entries when it was sealed last", h.Entry)
		case !c.good:
			return broken(h.Entry, remedyRestore, "the log was chained again: this is not the newest seal that keys/%s names", HeadFile)
		case c.stray > 0:
			return c.strayed()
		}
	}
	if n := c.note; n != nil && c.last < n.Entry {
		return broken(c.last+1, remedyOlder, "the log was cut: it ends here, and entry %d was the last that was written", n.Entry)
	}
	return nil
}

// headMissing reports whether a required head file is missing. A crash can leave
// the very first seal without one.
func (c *chain) headMissing() bool { return c.head == nil && c.seals.Count > 1 }

func removed() *SealError {
	return broken(0, remedyRestore, "the log was removed: it is not there, and the folder keys says that it was")
}
