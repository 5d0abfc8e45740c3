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
func KnownTapes(fsys journal.FS) (known map[string]Known, err error) {
	x := newIndex(fsys, zerolog.Nop())
	note, err := x.cleanNote()
	if errors.Is(err, fs.ErrNotExist) || err == nil && note == 0 {
		return nil, nil
	}
	if err == nil {
		x.file, err = fsys.Open(indexFile, journal.ReadOnly)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("index of sessions: %w", err)
	}
	defer func() { err = errors.Join(err, x.file.Close()) }()
	whole, err := x.load()
	if err != nil || !whole { // it is a cache: a damaged one is made again
		return nil, err
	}
	known = make(map[string]Known, len(x.order))
	for _, r := range x.order {
		d, err := x.read(r.at)
		if err != nil {
			return nil, fmt.Errorf("index of sessions: %w", err)
		}
		known[r.key.tape()] = Known{ID: r.id, Workspace: d.Workspace, Size: r.size, Settled: r.settled}
	}
	return known, nil
}

// Missing reports the tapes that the index knows to have had something and that are gone. It
// takes no other word for it: in a backup, the files of a session may be left without a tape
// if it was deleted meanwhile.
func Missing(fsys journal.FS) (out []Finding, err error) {
	known, err := KnownTapes(fsys)
	if err != nil {
		return nil, err
	}
	gone, err := goneOf(fsys, known)
	if err != nil || len(gone) == 0 {
		return nil, err
	}
	still, err := KnownTapes(fsys) // a yaya that has started since may delete sessions
	if err != nil {
		return nil, err
	}
	for _, tape := range slices.Sorted(maps.Keys(gone)) {
		if _, is := still[tape]; is {
			out = append(out, damagedAt(tapeFile(tape), 0, "it is gone: it had "+gone[tape].had()))
		}
	}
	return out, nil
}

// goneOf returns those of the tapes that are in no folder of tapes.
func goneOf(fsys journal.FS, known map[string]Known) (map[string]Known, error) {
	out := map[string]Known{}
	for tape, k := range known {
		if k.something() {
			out[tape] = k
		}
	}
	for _, dir := range []string{tapesDir, archiveDir, deletedDir} {
		err := fsys.Each(dir, func(e journal.Entry) error {
			if name := e.Name(); len(name) > tapeName {
				delete(out, name[:tapeName])
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return out, nil
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
