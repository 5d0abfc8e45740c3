package session

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/journal"
)

// tapeKey is a tape's name in 16 bytes.
type tapeKey [16]byte

// tapeName is the length of a tape's name.
const tapeName = 34

// keyOf returns the key of a tape's name; ok is false for a name that no tape has.
func keyOf(tape string) (k tapeKey, ok bool) {
	if len(tape) != tapeName || tape[16:18] != "__" {
		return k, false
	}
	_, first := hex.Decode(k[:8], []byte(tape[:16]))
	_, second := hex.Decode(k[8:], []byte(tape[18:]))
	return k, first == nil && second == nil
}

func (k tapeKey) tape() string {
	return hex.EncodeToString(k[:8]) + "__" + hex.EncodeToString(k[8:])
}

// row is the part of a session that stays in memory. Times are in microseconds. There may be
// hundreds of thousands of rows.
type row struct {
	key     tapeKey
	id      string
	mark    mark
	size    int64  // bytes of the tape
	written int64  // when the tape was written
	changed int64  // when the session changed, its tape or what a surface keeps of it
	place   int64  // the value of changed under which the row is in the order
	at      int64  // where its line is in the file, -1 without
	next    *row   // of the same id in another workspace
	pass    uint32 // of the reconciliation that saw it last
	fork    bool
	titled  bool
	settled bool // as far as is known, no turn runs or is owed; see [Manager.Repair]
	live    bool // its tape is open: what is written is noted as it happens
}

// mark is a surface's word about a session, see [Manager.Mark]; most sessions share a few.
type mark = unique.Handle[string]

var unknown = unique.Make("")

// details are the further columns that lists show. They are in the file.
type details struct {
	Workspace string  `json:"w"`
	Title     string  `json:"t,omitempty"`
	Parent    *parent `json:"p,omitempty"`
}

// index knows every session of a data directory: in memory what lists are ordered and
// filtered by, in a file what they show. The file is a cache: it is compared
// with the tapes, and made again from them if it is lost or damaged.
//
// Locks are taken in this order: loading, recon, io, mu. A session's lock may be held for mu,
// never for the others.
type index struct {
	fs  journal.FS
	log zerolog.Logger

	loaded    atomic.Bool
	stale     atomic.Bool // the rows have all tapes, and not what the last process wrote at its end
	disturbed sync.Once   // that a process without the index has written a tape

	loading  sync.Mutex  // held until the index is loaded and has every tape
	recon    sync.Mutex  // held while the index is loaded, and compared with the tapes
	unread   []error     // why the last comparison could not read tapes; recon is held for it
	complete atomic.Bool // the rows have all tapes, as of names.seen

	names struct { // of tapes, as this process changes them
		sync.Mutex
		ops  int   // under way
		base int64 // of the folder, before them
		seen int64 // modification time of the folder for which the rows are complete
	}

	io    sync.RWMutex // held for the file: to read lines, or to change it
	file  journal.File
	owned bool  // this process may write the file
	size  int64 // of the file
	least int64 // its size when it was made last

	mu     sync.Mutex
	marks  bool // a surface of this process says marks: else they are of what a tape was before
	pass   uint32
	rows   map[[8]byte]*row   // by the half of the key that stands for the id
	order  []*row             // by place and id, the one changed last at the end
	moved  map[*row]struct{}  // that are no longer in their place
	dirty  map[*row]struct{}  // whose line is out of date
	fresh  map[*row]*details  // that are not in the file yet
	titles map[*row]string    // that are not in the file yet
	dead   map[tapeKey]string // that the file still has; the id
}

func newIndex(fsys journal.FS, log zerolog.Logger) *index {
	x := &index{fs: fsys, log: log}
	x.clear()
	return x
}

// clear forgets all rows; mu is held, or nobody else has the index.
func (x *index) clear() {
	x.rows, x.order = map[[8]byte]*row{}, nil
	x.moved, x.dirty, x.dead = map[*row]struct{}{}, map[*row]struct{}{}, map[tapeKey]string{}
	x.fresh, x.titles = map[*row]*details{}, map[*row]string{}
}

func byPlace(a, b *row) int {
	if a.place != b.place {
		return cmp.Compare(a.place, b.place)
	}
	return cmp.Or(strings.Compare(a.id, b.id), slices.Compare(a.key[:], b.key[:]))
}

func (k tapeKey) half() [8]byte { return [8]byte(k[8:]) }

// get returns the row of a tape, nil without; mu is held, as it is for add and del.
func (x *index) get(key tapeKey) *row {
	r := x.rows[key.half()]
	for r != nil && r.key != key {
		r = r.next
	}
	return r
}

// add reports whether the row takes the place of another one.
func (x *index) add(r *row) (instead bool) {
	half := r.key.half()
	if first := x.rows[half]; first != nil {
		instead = x.get(r.key) != nil
		x.del(r.key)
		r.next = x.rows[half]
	}
	x.rows[half] = r
	return instead
}

func (x *index) del(key tapeKey) {
	first := x.rows[key.half()]
	switch {
	case first == nil:
	case first.key == key && first.next == nil:
		delete(x.rows, key.half())
	case first.key == key:
		x.rows[key.half()] = first.next
	default:
		for r := first; r.next != nil; r = r.next {
			if r.next.key == key {
				r.next = r.next.next
				return
			}
		}
	}
}

// insert puts a row in its place, and remove takes it out; mu is held.
func (x *index) insert(r *row) {
	r.place = r.changed
	i, _ := slices.BinarySearchFunc(x.order, r, byPlace)
	x.order = slices.Insert(x.order, i, r)
}

func (x *index) remove(r *row) {
	if i, found := slices.BinarySearchFunc(x.order, r, byPlace); found {
		x.order = slices.Delete(x.order, i, i+1)
	}
}

// settle puts rows that have moved where they belong; mu is held.
func (x *index) settle() {
	if len(x.moved) > 256 {
		for r := range x.moved {
			r.place = r.changed
		}
		slices.SortFunc(x.order, byPlace)
	} else {
		for r := range x.moved {
			x.remove(r)
			x.insert(r)
		}
	}
	clear(x.moved)
}

// put notes a session that is new, or whose tape is another one.
func (x *index) put(key tapeKey, id string, d details, size int64, written time.Time, live bool) {
	if !x.loaded.Load() {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	at := written.UnixMicro()
	r := x.get(key)
	if r == nil {
		r = &row{key: key, id: id, at: -1, changed: at}
		x.add(r)
		x.insert(r)
	}
	r.size, r.written, r.mark, r.pass, r.live = size, at, unknown, x.pass, live
	r.fork, r.titled, r.settled = d.Parent != nil, d.Title != "", live
	x.fresh[r] = &d
	delete(x.titles, r)
	x.dirty[r] = struct{}{}
	x.advance(r, at)
}

// advance notes when a row changed; mu is held.
func (x *index) advance(r *row, at int64) {
	if at > r.changed {
		r.changed = at
		x.moved[r] = struct{}{}
	}
}

// wrote notes that a tape was written. It waits for no disk.
func (x *index) wrote(key tapeKey, size int64, at time.Time, settled bool, title func() string) {
	if !x.loaded.Load() {
		x.disturb()
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.get(key)
	if r == nil {
		return // the folder of tapes shows it
	}
	r.size, r.written, r.settled = size, at.UnixMicro(), settled
	if !x.marks {
		r.mark = unknown
	}
	x.advance(r, r.written)
	if !r.titled {
		if t := title(); t != "" {
			r.titled = true
			x.titles[r] = t
		}
	}
	x.dirty[r] = struct{}{}
}

// open notes that a tape of that size is open in this process, or is no longer.
func (x *index) open(key tapeKey, size int64, live, settled bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.get(key)
	if r == nil {
		return
	}
	r.live = live
	if r.size != size || r.settled != settled {
		r.size, r.settled = size, settled
		x.dirty[r] = struct{}{}
	}
}

// settled notes that a tape of that size needs no repair.
func (x *index) settled(key tapeKey, size int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if r := x.get(key); r != nil && !r.live && r.size == size {
		r.settled = true
		x.dirty[r] = struct{}{}
	}
}

// drop forgets a session that is gone.
func (x *index) drop(key tapeKey) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.get(key)
	if r == nil {
		return
	}
	x.settle()
	x.remove(r)
	x.del(key)
	delete(x.dirty, r)
	delete(x.fresh, r)
	delete(x.titles, r)
	if r.at >= 0 {
		x.dead[key] = r.id
	}
}

// mark notes what a surface keeps of a session.
func (x *index) mark(id, mark string, at time.Time) {
	if !x.loaded.Load() {
		return
	}
	key, _ := keyOf(TapeName("", id))
	kept := unique.Make(mark)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.marks = true
	for r := x.rows[key.half()]; r != nil; r = r.next {
		if r.id != id {
			continue
		}
		if us := at.UnixMicro(); r.mark != kept || us > r.changed {
			r.mark = kept
			x.advance(r, us)
			x.dirty[r] = struct{}{}
		}
	}
}

// sameID returns the rows of an id.
func (x *index) sameID(id string) (out []row) {
	key, _ := keyOf(TapeName("", id))
	x.mu.Lock()
	defer x.mu.Unlock()
	for r := x.rows[key.half()]; r != nil; r = r.next {
		if r.id == id {
			out = append(out, *r)
		}
	}
	return out
}

// find returns the rows that want accepts.
func (x *index) find(want func(r *row) bool) (out []row) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, r := range x.order {
		if want(r) {
			out = append(out, *r)
		}
	}
	return out
}

// listing is a row with its details.
type listing struct {
	row
	details
}

// list returns up to limit rows that changed before a place, the one changed last
// first, and whether there are more.
func (x *index) list(before Place, limit int, keep func(id, mark string) bool) (out []listing, more bool, err error) {
	x.io.RLock()
	defer x.io.RUnlock()
	x.mu.Lock()
	x.settle()
	i := len(x.order)
	if before.ID != "" {
		i, _ = slices.BinarySearchFunc(x.order, before, func(r *row, p Place) int {
			return cmp.Or(cmp.Compare(r.place, p.Changed.UnixMicro()), strings.Compare(r.id, p.ID))
		})
	}
	var open []int // whose details are in the file
	for i--; i >= 0; i-- {
		r := x.order[i]
		if keep != nil && !keep(r.id, r.mark.Value()) {
			continue
		}
		if len(out) == limit {
			more = true
			break
		}
		s, whole := x.describe(r)
		if !whole {
			open = append(open, len(out))
		}
		out = append(out, s)
	}
	x.mu.Unlock()
	for _, n := range open {
		if err := x.fill(&out[n]); err != nil {
			return nil, false, err
		}
	}
	return out, more, nil
}

// describe returns a row with as much of its details as is in memory; whole says whether these are
// all. mu is held.
func (x *index) describe(r *row) (s listing, whole bool) {
	s.row = *r
	d := x.fresh[r]
	if d != nil {
		s.details = *d
	}
	if t, ok := x.titles[r]; ok {
		s.Title = t
	}
	return s, d != nil
}

// fill adds the details that are in the file; io is held.
func (x *index) fill(s *listing) (err error) {
	title := s.Title
	s.details, err = x.read(s.at)
	s.Title = cmp.Or(title, s.Title)
	return err
}

// one returns the session of an id that changed last; ok is false if none has it.
func (x *index) one(id string) (s listing, ok bool, err error) {
	x.io.RLock()
	defer x.io.RUnlock()
	key, _ := keyOf(TapeName("", id))
	x.mu.Lock()
	var last *row
	for r := x.rows[key.half()]; r != nil; r = r.next {
		if r.id == id && (last == nil || r.changed > last.changed) {
			last = r
		}
	}
	if last == nil {
		x.mu.Unlock()
		return s, false, nil
	}
	s, whole := x.describe(last)
	x.mu.Unlock()
	if !whole {
		err = x.fill(&s)
	}
	return s, err == nil, err
}

// forks returns the sessions that continue another one, with their details.
func (x *index) forks() ([]listing, error) {
	x.io.RLock()
	defer x.io.RUnlock()
	x.mu.Lock()
	var out []listing
	for _, r := range x.order {
		if r.fork {
			s := listing{row: *r}
			if d := x.fresh[r]; d != nil {
				s.details = *d
			}
			out = append(out, s)
		}
	}
	x.mu.Unlock()
	for i := range out {
		if out[i].Parent == nil {
			var err error
			if out[i].details, err = x.read(out[i].at); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
