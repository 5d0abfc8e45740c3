package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// maxShown bounds two definitions whose difference is shown.
const maxShown = 512 << 10

// Waiting is what waits for approval at one server.
type Waiting struct {
	Server string        `json:"server"`
	Reason string        `json:"reason,omitempty"` // about the server as a whole
	Tools  []WaitingTool `json:"tools"`
	// Instructions is what has changed in what the server tells its clients, line by
	// line. Those that were approved stay in force.
	Instructions string `json:"instructions,omitempty"`
	file         string
	record       record // as it was shown
}

// WaitingTool is a tool that waits.
type WaitingTool struct {
	Name string `json:"name"`
	New  bool   `json:"new"`
	// Description is what a new tool says of itself.
	Description string `json:"description,omitempty"`
	// Wording says that the tool goes on as it was approved: only its description
	// has changed.
	Wording bool `json:"wording,omitempty"`
	// Diff is what has changed, line by line, "" when the definitions are too
	// large to be kept.
	Diff string `json:"diff"`
}

// Waiting returns what waits for approval, by server.
func (s *Store) Waiting() ([]Waiting, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.records()
	if err != nil {
		return nil, err
	}
	var out []Waiting
	for _, file := range slices.Sorted(maps.Keys(all)) {
		if r := all[file]; r.waits() {
			out = append(out, r.waiting(file))
		}
	}
	slices.SortFunc(out, func(a, b Waiting) int { return strings.Compare(a.Server, b.Server) })
	return out, nil
}

func (r *record) waits() bool {
	return len(r.Waiting) > 0 || r.NewInstructions != nil || r.NewIdentity != "" || r.NewVersion != "" || r.Flapping
}

func (r *record) waiting(file string) Waiting {
	w := Waiting{Server: r.Source.Server, Tools: []WaitingTool{}, file: file, record: *r}
	switch {
	case r.Flapping:
		w.Reason = "it keeps changing its tools"
	case r.NewIdentity != "":
		w.Reason = fmt.Sprintf("it says that it is %q, and was %q", r.NewIdentity, r.Identity)
	case r.NewVersion != "":
		w.Reason = fmt.Sprintf("it speaks protocol version %s, and spoke %s", r.NewVersion, *r.version(r.NewVersion))
	}
	if r.NewInstructions != nil && r.Instructions != nil {
		w.Instructions = string(diff.Diff("approved", text(*r.Instructions), "said now", text(*r.NewInstructions)))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Waiting)) {
		old, known := r.Tools[name]
		t := WaitingTool{Name: name, New: !known, Wording: r.Waiting[name].Wording}
		if t.New {
			t.Description = description(r.Waiting[name].Raw)
		}
		if now := r.Waiting[name]; len(now.Raw) > 0 && (!known || len(old.Raw) > 0) && len(old.Raw)+len(now.Raw) <= maxShown {
			t.Diff = string(diff.Diff("approved", pretty(old.Raw), "offered now", pretty(now.Raw)))
		}
		w.Tools = append(w.Tools, t)
	}
	return w
}

// Digest identifies exactly what waits, whatever of it can be shown.
func (w Waiting) Digest() string {
	h := sha256.New()
	for _, part := range []string{w.file, w.record.NewIdentity, w.record.NewVersion} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	for _, name := range slices.Sorted(maps.Keys(w.record.Waiting)) {
		fmt.Fprintf(h, "%d:%s%s", len(name), name, w.record.Waiting[name].Hash)
	}
	if now := w.record.NewInstructions; now != nil {
		fmt.Fprintf(h, "%d:%s", len(*now), *now)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func text(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s + "\n")
}

// description is that of a definition, "" if it has none or was too large to be kept.
func description(raw json.RawMessage) string {
	var d struct {
		Description string `json:"description"`
	}
	if json.Unmarshal(raw, &d) != nil {
		return ""
	}
	return d.Description
}

func pretty(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return nil
	}
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return raw
	}
	return append(b.Bytes(), '\n')
}

// ErrStale says that a server now offers something else than was shown.
var ErrStale = errors.New("it has changed again since it was shown; look at it once more")

// Approve agrees to what was shown: to the named tools, or to everything when
// none is named. It fails with [ErrStale] if something else waits now.
func (s *Store) Approve(w Waiting, tools ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, _, err := s.load(w.file)
	if err != nil {
		return err
	}
	if !r.sameAs(w.record) {
		return ErrStale
	}
	next := r
	next.Tools, next.Waiting = maps.Clone(r.Tools), maps.Clone(r.Waiting)
	if next.Tools == nil {
		next.Tools = map[string]Definition{}
	}
	names := tools
	if len(names) == 0 {
		names = slices.Collect(maps.Keys(r.Waiting))
		if r.NewIdentity != "" {
			next.Identity = r.NewIdentity
		}
		if r.NewVersion != "" {
			*next.version(r.NewVersion) = r.NewVersion
		}
		if r.NewInstructions != nil {
			next.Instructions, next.NewInstructions = r.NewInstructions, nil
		}
		next.NewIdentity, next.NewVersion, next.Flapping, next.Changes = "", "", false, nil
	}
	for _, name := range names {
		d, ok := next.Waiting[name]
		if !ok {
			return fmt.Errorf("tool %q does not wait for approval", name)
		}
		d.Wording = false
		next.Tools[name] = d
		delete(next.Waiting, name)
	}
	return s.saveChanged(w.file, r, next)
}

// sameAs reports whether the same waits.
func (r *record) sameAs(o record) bool {
	said := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	return sameHashes(r.Waiting, o.Waiting) && r.NewIdentity == o.NewIdentity && r.NewVersion == o.NewVersion &&
		(r.NewInstructions == nil) == (o.NewInstructions == nil) && said(r.NewInstructions) == said(o.NewInstructions)
}
