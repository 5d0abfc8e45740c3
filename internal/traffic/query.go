package traffic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/cut"
)

// MaxLimit bounds the records of one answer.
const MaxLimit = 1000

// Filter selects records. The zero filter selects all.
type Filter struct {
	Server, Tool, Client, Principal string
	Errors                          bool
	Since, Until                    time.Time
	// Before selects the last ones with smaller ids; After the first ones with greater
	// ids. 0 means unbounded.
	Before, After int64
	Limit         int // at most MaxLimit; 0 is that
	Bodies        bool
}

// matches reports whether the filter selects a record, apart from its id.
func (f *Filter) matches(r *Record) bool {
	return (f.Server == "" || r.Server == f.Server) &&
		(f.Tool == "" || r.Tool == f.Tool || r.Name == f.Tool) &&
		(f.Client == "" || strings.EqualFold(r.Client, f.Client)) &&
		(f.Principal == "" || r.Principal == f.Principal) &&
		(!f.Errors || r.Failed()) &&
		(f.Since.IsZero() || !r.Time.Before(f.Since)) &&
		(f.Until.IsZero() || r.Time.Before(f.Until))
}

// sieve has strings that a line must or must not contain to be worth parsing.
type sieve struct{ must, not []byte }

func (f *Filter) sieve() sieve {
	var s sieve
	if f.Server != "" {
		s.must = append(appendJSON([]byte(`"server":`), f.Server), ',')
	}
	if f.Errors {
		s.not = []byte(`,"outcome":"ok",`)
	}
	return s
}

func (s sieve) pass(line []byte) bool {
	return (s.must == nil || bytes.Contains(line, s.must)) && (s.not == nil || !bytes.Contains(line, s.not))
}

// parse reads a line; false means that it is malformed, or not selected.
func (f *Filter) parse(line []byte, s sieve, r *Record) bool {
	*r = Record{}
	if !s.pass(line) || json.Unmarshal(line, r) != nil || r.ID == 0 || !f.matches(r) {
		return false
	}
	if !f.Bodies {
		r.Arguments, r.Result = brief(r.Arguments), brief(r.Result)
	}
	return true
}

// Brief bounds the arguments and results in lists, in bytes.
const Brief = 240

func brief(s string) string {
	if len(s) <= Brief {
		return s
	}
	return cut.Text(s, Brief)
}

// Read returns the records that a filter selects from the files below a data
// directory, oldest first, and whether there are more: before the first, or after the
// last if the filter uses After. It works beside a log that writes.
func Read(ctx context.Context, root *os.Root, f Filter) (out []Record, more bool, err error) {
	if f.Limit <= 0 || f.Limit > MaxLimit {
		f.Limit = MaxLimit
	}
	out = []Record{}
	have, err := segments(root)
	if err != nil {
		return nil, false, err
	}
	forward := f.After > 0
	if !forward {
		slices.Reverse(have)
	}
	s := f.sieve()
	for i, seg := range have {
		switch {
		case ctx.Err() != nil:
			return nil, false, ctx.Err()
		case f.Before > 0 && seg.first >= f.Before, forward && i+1 < len(have) && have[i+1].first <= f.After+1,
			!f.Since.IsZero() && seg.last.Before(f.Since): // nothing that began later is in it
			continue
		}
		lines, err := load(root, seg)
		if err != nil {
			return nil, false, err
		}
		if !forward {
			slices.Reverse(lines)
		}
		for _, line := range lines {
			if id := idOf(line); id <= f.After || f.Before > 0 && id >= f.Before {
				continue
			}
			var r Record
			if !f.parse(line, s, &r) {
				continue
			}
			if len(out) == f.Limit {
				more = true
				break
			}
			out = append(out, r)
		}
		if more {
			break
		}
	}
	if !forward {
		slices.Reverse(out)
	}
	return out, more, nil
}

// load returns the complete lines of a segment; a missing one has none.
func load(root *os.Root, seg segment) ([][]byte, error) {
	f, err := openRegular(root, seg.name(), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := read(f, 0)
	if err != nil {
		return nil, err
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	lines := bytes.Split(data, []byte("\n"))
	return lines[:len(lines)-1], nil
}

// Get returns one record with its bodies; false means that it does not exist, or no
// longer does.
func Get(ctx context.Context, root *os.Root, id int64) (Record, bool, error) {
	out, _, err := Read(ctx, root, Filter{After: id - 1, Before: id + 1, Limit: 1, Bodies: true})
	if err != nil || len(out) == 0 || id < 1 {
		return Record{}, false, err
	}
	return out[0], true, nil
}

// Tail reads new records from some position on. It is for one goroutine.
type Tail struct {
	root *os.Root
	f    Filter
	s    sieve
	at   int64 // id of the segment that it is in
	off  int64
	last int64 // id that was read last
}

// Follow returns a tail that starts after the filter's record After, or after the
// last record if that is 0.
func Follow(root *os.Root, f Filter) (*Tail, error) {
	t := &Tail{root: root, f: f, s: f.sieve(), last: f.After}
	have, err := segments(root)
	if err != nil || len(have) == 0 {
		return t, err
	}
	if f.After == 0 {
		end := have[len(have)-1]
		lines, err := load(root, end)
		if err != nil {
			return nil, err
		}
		t.at = end.first
		for _, line := range lines {
			t.off += int64(len(line)) + 1
			t.last = max(t.last, idOf(line))
		}
		return t, nil
	}
	for _, seg := range have {
		if seg.first <= f.After+1 {
			t.at = seg.first
		}
	}
	return t, nil
}

// Next returns the selected records that were written since the last call, possibly none.
// lost means that records were removed before they were read.
func (t *Tail) Next() (out []Record, lost bool, err error) {
	have, err := segments(t.root)
	if err != nil {
		return nil, false, err
	}
	i := slices.IndexFunc(have, func(s segment) bool { return s.first >= t.at })
	if i < 0 {
		return nil, false, nil
	}
	for _, seg := range have[i:] {
		if seg.first != t.at {
			lost = lost || t.at != 0 && seg.first > t.last+1 && t.last > 0
			t.at, t.off = seg.first, 0
		}
		more, err := t.read(seg)
		if err != nil {
			return nil, lost, err
		}
		out = append(out, more...)
		if len(out) >= MaxLimit { // the rest comes with the next call
			return out, lost, nil
		}
	}
	return out, lost, nil
}

// chunk is how much a tail reads at a time; a line is never longer.
const chunk = 512 << 10

func (t *Tail) read(seg segment) ([]Record, error) {
	f, err := openRegular(t.root, seg.name(), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []Record
	buf := make([]byte, chunk)
	for len(out) < MaxLimit {
		n, _ := f.ReadAt(buf, t.off) // unreadable data is read the next time
		whole := bytes.LastIndexByte(buf[:n], '\n') + 1
		if whole == 0 {
			break
		}
		for line := range bytes.SplitSeq(buf[:whole-1], []byte("\n")) {
			id := idOf(line)
			if id <= t.last {
				continue
			}
			t.last = id
			var r Record
			if t.f.parse(line, t.s, &r) {
				out = append(out, r)
			}
		}
		t.off += int64(whole)
	}
	return out, nil
}
