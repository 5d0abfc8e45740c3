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

// maxShown bounds the size of two definitions whose difference is shown.
const maxShown = 512 << 10

// Waiting describes the changes of one server that wait for approval.
type Waiting struct {
	Server string        `json:"server"`
	Reason string        `json:"reason,omitempty"` // reason that concerns the whole server
	Tools  []WaitingTool `json:"tools"`
	// Instructions is the line diff of the server's instructions for its clients. The approved
	// ones stay in force.
	Instructions string `json:"instructions,omitempty"`
	file         string
	record       record // as shown
}

// WaitingTool is a tool that waits for approval.
type WaitingTool struct {
	Name string `json:"name"`
	New  bool   `json:"new"`
	// Description is the description of a new tool.
	Description string `json:"description,omitempty"`
	// Wording says that only the description has changed: the tool stays callable with the
	// approved one.
	Wording bool `json:"wording,omitempty"`
	// Diff is the line diff of the definitions, "" if they are too large to be kept.
	Diff string `json:"diff"`
}

// Waiting returns the changes that wait for approval, by server.
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
	return r.broken != nil || len(r.Waiting) > 0 || r.NewInstructions != nil || r.NewIdentity != "" || r.NewVersion != "" || r.Flapping
}

func (r *record) waiting(file string) Waiting {
	w := Waiting{Server: r.Source.Server, Tools: []WaitingTool{}, file: file, record: *r}
	switch {
	case r.broken != nil:
		w.Reason = r.broken.Error()
	case r.Flapping:
		w.Reason = "it keeps changing its tools"
	case r.NewIdentity != "":
		w.Reason = fmt.Sprintf("its name is now %q, and was %q", r.NewIdentity, r.Identity)
	case r.NewVersion != "":
		w.Reason = fmt.Sprintf("it now speaks protocol version %s, and spoke %s", r.NewVersion, *r.version(r.NewVersion))
	}
	if r.NewInstructions != nil && r.Instructions != nil {
		w.Instructions = string(diff.Diff("approved", text(*r.Instructions), "sent now", text(*r.NewInstructions)))
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

// Digest identifies the exact set of waiting changes, including parts that cannot be shown.
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

// description returns the description in a definition, "" if it has none or was too large to be
// kept.
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

// ErrStale says that a server's offer has changed since it was shown.
var ErrStale = errors.New("it has changed since it was shown")

// Approve approves the shown changes: those of the named tools, or all of them if none is
// named. It fails with [ErrStale] if other changes wait now.
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

// sameAs reports whether the same changes wait.
func (r *record) sameAs(o record) bool {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	return sameHashes(r.Waiting, o.Waiting) && r.NewIdentity == o.NewIdentity && r.NewVersion == o.NewVersion &&
		(r.NewInstructions == nil) == (o.NewInstructions == nil) && text(r.NewInstructions) == text(o.NewInstructions)
}
