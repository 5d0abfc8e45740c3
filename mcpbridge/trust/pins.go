package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

const (
	folder     = "trust"
	maxRecord  = 32 << 20 // bytes of a file
	maxKept    = 32 << 10 // bytes of a definition that is kept to be compared; of a larger one the hash is
	settling   = 10 * time.Second
	flapWindow = 10 * time.Minute
	flapLimit  = 5 // changes within flapWindow

	// oldProjects is what 0.1 approved of projects; folders are trusted as a whole
	// since (kernel/folder).
	oldProjects = "projects.json"
)

// Source is a configured server: its name, and what else its pins depend on. A
// server that the user has configured anew is another one.
type Source struct {
	Server string `json:"server"`
	Config string `json:"config"`
}

// Seen is what a server offers now. Versions of the protocol order as strings.
type Seen struct {
	Identity string // its name for itself
	Version  string // of the protocol
	Tools    map[string]json.RawMessage
}

// Definition is a tool's definition as it was seen.
type Definition struct {
	Hash string          `json:"hash"`
	Raw  json.RawMessage `json:"definition,omitempty"` // canonical
}

// record is the file of a server.
type record struct {
	Source   Source                `json:"source"`
	First    time.Time             `json:"first_seen"`
	Identity string                `json:"identity"`
	Version  string                `json:"protocol_version"`
	Tools    map[string]Definition `json:"tools"`
	// What waits.
	Waiting     map[string]Definition `json:"waiting,omitempty"`
	NewIdentity string                `json:"new_identity,omitempty"`
	NewVersion  string                `json:"new_protocol_version,omitempty"`
	Flapping    bool                  `json:"flapping,omitempty"`
	Changes     []time.Time           `json:"changes,omitempty"`
}

// Store keeps pins and approvals below a folder. Its methods are safe for
// concurrent use.
type Store struct {
	root *os.Root

	mu    sync.Mutex
	fresh map[string]time.Time // files of servers that this process has seen first
}

// NewStore keeps its files below root, which the caller closes.
func NewStore(root *os.Root) *Store { return &Store{root: root, fresh: map[string]time.Time{}} }

func (s Source) file() string {
	sum := sha256.Sum256([]byte(s.Server + "\x00" + s.Config))
	return hex.EncodeToString(sum[:16]) + ".json"
}

// Check compares what a server offers with what was agreed to, and returns why
// tools are blocked, by tool. What is new is remembered.
func (s *Store) Check(src Source, seen Seen, now time.Time) (blocked map[string]string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, found, err := s.load(src.file())
	if err != nil {
		return nil, err
	}
	defs := make(map[string]Definition, len(seen.Tools))
	for name, raw := range seen.Tools {
		if defs[name], err = define(raw); err != nil {
			return nil, fmt.Errorf("tool %q: %w", name, err)
		}
	}
	if !found {
		s.fresh[src.file()] = now
		return nil, s.save(src.file(), record{Source: src, First: now.UTC(), Identity: seen.Identity, Version: seen.Version, Tools: defs})
	}
	next := r
	next.NewIdentity, next.NewVersion, next.Waiting = "", "", map[string]Definition{}
	blocked = map[string]string{}
	for name, d := range defs {
		was, known := r.Tools[name]
		switch {
		case known && was.Hash == d.Hash:
		case !known && settles(s.fresh[src.file()], now):
			// It was not done with its list when it was seen first, just now.
			if next.Tools = maps.Clone(next.Tools); next.Tools == nil {
				next.Tools = map[string]Definition{}
			}
			next.Tools[name] = d
		case known:
			next.Waiting[name], blocked[name] = d, "its definition has changed"
		default:
			next.Waiting[name], blocked[name] = d, "it is new"
		}
	}
	whole := ""
	if seen.Identity != r.Identity {
		whole, next.NewIdentity = fmt.Sprintf("the server says that it is %q, and was %q", seen.Identity, r.Identity), seen.Identity
	}
	if seen.Version < r.Version {
		whole, next.NewVersion = fmt.Sprintf("the server speaks %s, and spoke %s", seen.Version, r.Version), seen.Version
	} else if whole == "" && len(blocked) == 0 {
		next.Version = seen.Version
	}
	if !sameHashes(next.Waiting, r.Waiting) && len(next.Waiting) > 0 {
		next.Changes = slices.DeleteFunc(append(slices.Clone(r.Changes), now.UTC()), func(t time.Time) bool { return now.Sub(t) > flapWindow })
		next.Flapping = r.Flapping || len(next.Changes) > flapLimit
	}
	if next.Flapping {
		whole = "the server keeps changing its tools"
	}
	if whole != "" {
		for name := range defs {
			blocked[name] = whole
		}
	}
	if len(next.Waiting) == 0 {
		next.Waiting = nil
	}
	return blocked, s.saveChanged(src.file(), r, next)
}

// settles reports whether a server that was first seen then is still being seen
// for the first time.
func settles(then, now time.Time) bool { return !then.IsZero() && now.Sub(then) < settling }

func sameHashes(a, b map[string]Definition) bool {
	return maps.EqualFunc(a, b, func(x, y Definition) bool { return x.Hash == y.Hash })
}

func define(raw json.RawMessage) (Definition, error) {
	c, err := jsonrpc.Canonical(raw)
	if err != nil {
		return Definition{}, err
	}
	sum := sha256.Sum256(c)
	d := Definition{Hash: hex.EncodeToString(sum[:])}
	if len(c) <= maxKept {
		d.Raw = c
	}
	return d, nil
}

// Waiting is what waits for approval at one server.
type Waiting struct {
	Server string        `json:"server"`
	Reason string        `json:"reason,omitempty"` // about the server as a whole
	Tools  []WaitingTool `json:"tools"`
	file   string
	record record // as it was shown
}

// WaitingTool is a tool that waits.
type WaitingTool struct {
	Name string `json:"name"`
	New  bool   `json:"new"`
	// Diff is what has changed, line by line, "" when the definitions are too
	// large to be kept.
	Diff string `json:"diff"`
}

// Waiting returns what waits for approval, by server.
func (s *Store) Waiting() ([]Waiting, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := fs.ReadDir(s.root.FS(), folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Waiting
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") || e.Name() == oldProjects {
			continue
		}
		r, _, err := s.load(e.Name())
		if err != nil {
			return nil, err
		}
		if len(r.Waiting) == 0 && r.NewIdentity == "" && r.NewVersion == "" && !r.Flapping {
			continue
		}
		out = append(out, r.waiting(e.Name()))
	}
	slices.SortFunc(out, func(a, b Waiting) int { return strings.Compare(a.Server, b.Server) })
	return out, nil
}

func (r record) waiting(file string) Waiting {
	w := Waiting{Server: r.Source.Server, Tools: []WaitingTool{}, file: file, record: r}
	switch {
	case r.Flapping:
		w.Reason = "it keeps changing its tools"
	case r.NewIdentity != "":
		w.Reason = fmt.Sprintf("it says that it is %q, and was %q", r.NewIdentity, r.Identity)
	case r.NewVersion != "":
		w.Reason = fmt.Sprintf("it speaks protocol version %s, and spoke %s", r.NewVersion, r.Version)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Waiting)) {
		old, known := r.Tools[name]
		t := WaitingTool{Name: name, New: !known}
		if now := r.Waiting[name]; len(now.Raw) > 0 && (!known || len(old.Raw) > 0) {
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
	return hex.EncodeToString(h.Sum(nil))
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

// ErrStale says that a server offers other things by now than were shown.
var ErrStale = errors.New("it has changed again since it was shown; look at it once more")

// Approve agrees to what was shown: to the named tools, or to everything when
// none is named. It fails with [ErrStale] if something else waits by now.
func (s *Store) Approve(w Waiting, tools ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, _, err := s.load(w.file)
	if err != nil {
		return err
	}
	if !sameHashes(r.Waiting, w.record.Waiting) || r.NewIdentity != w.record.NewIdentity || r.NewVersion != w.record.NewVersion {
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
			next.Version = r.NewVersion
		}
		next.NewIdentity, next.NewVersion, next.Flapping, next.Changes = "", "", false, nil
	}
	for _, name := range names {
		d, ok := next.Waiting[name]
		if !ok {
			return fmt.Errorf("tool %q does not wait for approval", name)
		}
		next.Tools[name] = d
		delete(next.Waiting, name)
	}
	return s.saveChanged(w.file, r, next)
}

// Changed returns when something about a server was last written; zero when
// nothing is known of it.
func (s *Store) Changed(src Source) time.Time {
	info, err := s.root.Stat(folder + "/" + src.file())
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

func (s *Store) load(file string) (r record, found bool, err error) {
	data, found, err := s.read(file)
	if err == nil && found {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		return record{}, false, fmt.Errorf("what is trusted cannot be read: %s/%s/%s: %w", s.root.Name(), folder, file, err)
	}
	return r, found, nil
}

func (s *Store) read(file string) (data []byte, found bool, err error) {
	info, err := s.root.Stat(folder + "/" + file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err == nil && info.Size() > maxRecord {
		err = errors.New("it is too large")
	}
	if err != nil {
		return nil, false, err
	}
	data, err = s.root.ReadFile(folder + "/" + file)
	return data, true, err
}

func (s *Store) saveChanged(file string, old, next record) error {
	a, err1 := json.Marshal(old)
	b, err2 := json.Marshal(next)
	if err1 == nil && err2 == nil && bytes.Equal(a, b) {
		return nil
	}
	return s.save(file, next)
}

func (s *Store) save(file string, v any) error {
	data, err := json.Marshal(v)
	if err == nil {
		err = s.root.MkdirAll(folder, 0o700)
	}
	if err != nil {
		return fmt.Errorf("remember what is trusted: %w", err)
	}
	dir, err := s.root.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("remember what is trusted: %w", err)
	}
	_, err = atomicfile.Write(dir, file, data)
	if err = errors.Join(err, dir.Close()); err != nil {
		return fmt.Errorf("remember what is trusted: %w", err)
	}
	return nil
}
