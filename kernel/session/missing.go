package session

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/journal"
)

// KnownTapes returns what the index of sessions says of every tape, by the names of the
// tapes. It is nothing unless the last yaya ended cleanly: the tapes are then as it left
// them. It changes nothing.
func KnownTapes(fsys journal.FS) (map[string]Known, error) {
	known := map[string]Known{}
	err := eachLeft(fsys, func(x *index, r *row) error {
		d, err := x.read(r.at)
		if err != nil {
			return fmt.Errorf("index of sessions: %w", err)
		}
		known[r.key.tape()] = Known{ID: r.id, Workspace: d.Workspace, Size: r.size, Settled: r.settled}
		return nil
	})
	return known, err
}

// eachLeft visits the rows of the index, if the last yaya ended cleanly.
func eachLeft(fsys journal.FS, visit func(x *index, r *row) error) (err error) {
	x := newIndex(fsys, zerolog.Nop())
	note, err := x.cleanNote()
	if err == nil && note != 0 {
		x.file, err = fsys.Open(indexFile, journal.ReadOnly)
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && note == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("index of sessions: %w", err)
	}
	defer func() { err = errors.Join(err, x.file.Close()) }()
	whole, err := x.load()
	if err != nil || !whole { // it is a cache: a damaged one is made again
		return err
	}
	for _, r := range x.order {
		if err := visit(x, r); err != nil {
			return err
		}
	}
	return nil
}

// sizesLeft returns the sizes of the tapes that the index knows to have had something.
func sizesLeft(fsys journal.FS) (map[string]int64, error) {
	out := map[string]int64{}
	err := eachLeft(fsys, func(_ *index, r *row) error {
		if r.size > 0 {
			out[r.key.tape()] = r.size
		}
		return nil
	})
	return out, err
}

// Missing reports the tapes that the index knows to have had something and that are gone. It
// takes no other word for it: in a backup, the files of a session may be left without a tape
// if it was deleted meanwhile.
func Missing(fsys journal.FS) (out []Finding, err error) {
	gone, err := sizesLeft(fsys)
	if err == nil {
		err = withoutTapes(fsys, gone)
	}
	if err != nil || len(gone) == 0 {
		return nil, err
	}
	still, err := sizesLeft(fsys) // a yaya that has started since may delete sessions
	if err != nil {
		return nil, err
	}
	for _, tape := range slices.Sorted(maps.Keys(gone)) {
		if _, is := still[tape]; is {
			out = append(out, damagedAt(tapeFile(tape), 0, "it is gone: it had "+Known{Size: gone[tape]}.had()))
		}
	}
	return out, nil
}

// withoutTapes leaves those that are in no folder of tapes.
func withoutTapes(fsys journal.FS, known map[string]int64) error {
	for _, dir := range []string{tapesDir, archiveDir, deletedDir} {
		err := fsys.Each(dir, func(e journal.Entry) error {
			if name := e.Name(); len(name) > tapeName {
				delete(known, name[:tapeName])
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// had says how much a tape had at least.
func (k Known) had() string {
	if k.Counted.Seq > 0 {
		return fmt.Sprintf("%d entries at least", k.Counted.Seq)
	}
	return fmt.Sprintf("%d bytes", k.Size)
}

// something reports whether the tape is known to have had anything.
func (k Known) something() bool { return k.Size > 0 || k.Counted.Seq > 0 }

// cut reports whether a tape lacks what is known of it. A tape that was written since has
// nothing unfinished where it was settled.
func (k Known) cut(rep journal.Report, epoch string) bool {
	return k.Counted.Epoch == epoch && k.Counted.Seq > rep.Last ||
		k.Size > rep.Size+rep.Torn || k.Settled && k.Size > rep.Size
}
