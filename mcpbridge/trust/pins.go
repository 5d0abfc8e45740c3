package trust

import (
	"bytes"
	"cmp"
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

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

const (
	folder     = "trust"
	maxRecord  = 32 << 20 // bytes of a file
	maxKept    = 8 << 20  // bytes of the definitions that are kept, of those approved and of those that wait; of others the hash is
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
	// Config can hold secrets, in arguments for instance. It is not written down: the
	// name of the file is made of its digest.
	Config string `json:"config,omitempty"`
}

// Seen is what a server offers now. Versions of the protocol order as strings.
type Seen struct {
	Identity     string // its name for itself; "" when it does not say
	Version      string // of the protocol
	Instructions string // as they would be shown
	Tools        map[string]json.RawMessage
}

// Verdict says what of an offer holds.
type Verdict struct {
	// Whole is why nothing of the server is to be used, "" when it is not blocked
	// as a whole.
	Whole string
	// Blocked says why a tool is neither to be listed nor called.
	Blocked map[string]string
	// Approved are the definitions that stay in force for tools whose wording has
	// changed.
	Approved map[string]json.RawMessage
	// Instructions are those that were approved.
	Instructions string
	// NewInstructions says that others wait.
	NewInstructions bool
}

// Definition is a tool's definition as it was seen.
type Definition struct {
	Hash string          `json:"hash"`
	Raw  json.RawMessage `json:"definition,omitempty"` // canonical
	// Wording says of a definition that waits that the approved one stays in force.
	Wording bool `json:"wording,omitempty"`
}

// record is the file of a server.
type record struct {
	Source   Source    `json:"source"`
	First    time.Time `json:"first_seen"`
	Identity string    `json:"identity"`
	// Version is that of the legacy era, Modern that of the modern one. Which era is
	// spoken is yaya's choice, and no downgrade.
	Version string                `json:"protocol_version"`
	Modern  string                `json:"modern_version,omitempty"`
	Tools   map[string]Definition `json:"tools"`
	// Instructions are nil where none were looked at: in files of 0.1.
	Instructions *string `json:"instructions,omitempty"`
	// What waits.
	Waiting         map[string]Definition `json:"waiting,omitempty"`
	NewInstructions *string               `json:"new_instructions,omitempty"`
	NewIdentity     string                `json:"new_identity,omitempty"`
	NewVersion      string                `json:"new_protocol_version,omitempty"`
	Flapping        bool                  `json:"flapping,omitempty"`
	Changes         []time.Time           `json:"changes,omitempty"`
}

// version returns where the version of an era is kept.
func (r *record) version(of string) *string {
	if mcp.IsModernProtocol(of) {
		return &r.Modern
	}
	return &r.Version
}

// Store keeps pins and approvals below a folder. Its methods are safe for
// concurrent use.
type Store struct {
	root *os.Root

	mu sync.Mutex
}

// NewStore keeps its files below root, which the caller closes.
func NewStore(root *os.Root) *Store { return &Store{root: root} }

func (s Source) file() string {
	sum := sha256.Sum256([]byte(s.Server + "\x00" + s.Config))
	return hex.EncodeToString(sum[:16]) + ".json"
}

// Check compares what a server offers with what was agreed to. The first offer of a
// server is agreed to as a whole, and nothing that comes later is: what a server adds a
// moment after it was seen is as new as what it adds in a year.
func (s *Store) Check(src Source, seen Seen, now time.Time) (Verdict, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, found, err := s.load(src.file())
	if err != nil {
		return Verdict{}, err
	}
	defs := make(map[string]Definition, len(seen.Tools))
	for name, raw := range seen.Tools {
		if defs[name], err = define(raw); err != nil {
			return Verdict{}, fmt.Errorf("tool %q: %w", name, err)
		}
	}
	if !found {
		r := record{Source: src, First: now.UTC(), Identity: seen.Identity, Tools: defs, Instructions: &seen.Instructions}
		*r.version(seen.Version) = seen.Version
		return Verdict{Instructions: seen.Instructions}, s.save(src.file(), r)
	}
	next := r
	next.NewIdentity, next.NewVersion, next.NewInstructions, next.Waiting = "", "", nil, nil
	v := next.compare(defs)
	next.read(&v, seen.Instructions)
	if next.Identity = cmp.Or(r.Identity, seen.Identity); seen.Identity != "" && seen.Identity != next.Identity {
		v.Whole, next.NewIdentity = fmt.Sprintf("the server says that it is %q, and was %q", seen.Identity, r.Identity), seen.Identity
	}
	if was := next.version(seen.Version); seen.Version < *was {
		v.Whole, next.NewVersion = fmt.Sprintf("the server speaks %s, and spoke %s", seen.Version, *was), seen.Version
	} else if v.Whole == "" && len(v.Blocked) == 0 {
		*was = seen.Version
	}
	if serious := next.blocked(); !sameHashes(serious, r.blocked()) && len(serious) > 0 {
		next.Changes = slices.DeleteFunc(append(slices.Clone(r.Changes), now.UTC()), func(t time.Time) bool { return now.Sub(t) > flapWindow })
		next.Flapping = r.Flapping || len(next.Changes) > flapLimit
	}
	if next.Flapping {
		v.Whole = "the server keeps changing its tools"
	}
	if v.Whole != "" {
		v.Approved, v.Instructions = nil, ""
		for name := range defs {
			v.Blocked[name] = v.Whole
		}
	}
	return v, s.saveChanged(src.file(), r, next)
}

// compare notes which definitions wait, and says what holds meanwhile.
func (r *record) compare(defs map[string]Definition) Verdict {
	v := Verdict{Blocked: map[string]string{}, Approved: map[string]json.RawMessage{}}
	pinned := maps.Clone(r.Tools)
	if pinned == nil {
		pinned = map[string]Definition{}
	}
	r.Tools, r.Waiting = pinned, map[string]Definition{}
	for name, d := range defs {
		was, known := pinned[name]
		switch {
		case known && was.Hash == d.Hash:
			pinned[name] = d // what an earlier version of yaya did not keep, is kept
		case known && onlyWording(was.Raw, d.Raw):
			d.Wording = true
			r.Waiting[name], v.Approved[name] = d, was.Raw
		case known && (len(was.Raw) == 0 || len(d.Raw) == 0):
			r.Waiting[name], v.Blocked[name] = d, "its definition has changed, and is too large to be compared"
		case known:
			r.Waiting[name], v.Blocked[name] = d, "its definition has changed"
		default:
			r.Waiting[name], v.Blocked[name] = d, "it is new"
		}
	}
	return v
}

// read compares the instructions of a server. They are believed at first sight, as
// tools are; others wait, and those that were approved stay.
func (r *record) read(v *Verdict, now string) {
	if r.Instructions == nil {
		r.Instructions = &now
	}
	if v.Instructions = *r.Instructions; now != v.Instructions {
		r.NewInstructions, v.NewInstructions = &now, true
	}
}

// blocked are the definitions that wait without an approved one in force.
func (r *record) blocked() map[string]Definition {
	out := maps.Clone(r.Waiting)
	maps.DeleteFunc(out, func(_ string, d Definition) bool { return d.Wording })
	return out
}

// Instructions returns what a server said the last time, of what was approved.
func (s *Store) Instructions(src Source) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, _, err := s.load(src.file())
	if err != nil || r.Instructions == nil || r.NewIdentity != "" || r.NewVersion != "" || r.Flapping {
		return "", err
	}
	return *r.Instructions, nil
}

func sameHashes(a, b map[string]Definition) bool {
	return maps.EqualFunc(a, b, func(x, y Definition) bool { return x.Hash == y.Hash })
}

func define(raw json.RawMessage) (Definition, error) {
	c, err := jsonrpc.Canonical(raw)
	if err != nil {
		return Definition{}, err
	}
	sum := sha256.Sum256(c)
	return Definition{Hash: hex.EncodeToString(sum[:]), Raw: c}, nil
}

// bounded returns definitions with as many kept whole as a file may hold: the small
// ones first, so that one that is huge costs no other anything.
func bounded(defs map[string]Definition) map[string]Definition {
	names := slices.SortedFunc(maps.Keys(defs), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(defs[a].Raw), len(defs[b].Raw)), strings.Compare(a, b))
	})
	out := maps.Clone(defs)
	room := maxKept
	for _, name := range names {
		d := defs[name]
		if room -= len(d.Raw); room < 0 {
			d.Raw = nil
		}
		out[name] = d
	}
	return out
}

// Forget drops what was agreed to about the servers of a name, and what waits there:
// such a server is seen for the first time when it is added again.
func (s *Store) Forget(server string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.records()
	if err != nil {
		return err
	}
	for _, file := range slices.Sorted(maps.Keys(all)) {
		if all[file].Source.Server != server {
			continue
		}
		if err := s.root.Remove(folder + "/" + file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("forget what is trusted: %w", err)
		}
	}
	return nil
}

// records reads what is known of every server, by file; mu is held.
func (s *Store) records() (map[string]record, error) {
	entries, err := fs.ReadDir(s.root.FS(), folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := map[string]record{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") || e.Name() == oldProjects {
			continue
		}
		if out[e.Name()], _, err = s.load(e.Name()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Tidy takes out of all files what earlier versions have written there and this one does
// not: how servers are configured.
func (s *Store) Tidy() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.records()
	return err
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
	if err == nil && r.Source.Config != "" { // earlier versions have written it down
		if err := s.save(file, r); err != nil {
			return record{}, false, err
		}
		r.Source.Config = ""
	}
	if mcp.IsModernProtocol(r.Version) { // 0.1 kept one version, of whichever era
		r.Version, r.Modern = "", r.Version
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
	a, err1 := encode(old)
	b, err2 := encode(next)
	if err1 == nil && err2 == nil && bytes.Equal(a, b) {
		return nil
	}
	return s.save(file, next)
}

// encode writes a record as it is kept. Nothing is escaped that need not be: the
// size of what servers say is counted before.
func encode(r record) ([]byte, error) {
	r.Source.Config = ""
	r.Tools, r.Waiting = bounded(r.Tools), bounded(r.Waiting)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(r)
	if err == nil && b.Len() > maxRecord {
		err = fmt.Errorf("it has %d bytes, the limit is %d", b.Len(), maxRecord)
	}
	return b.Bytes(), err
}

func (s *Store) save(file string, r record) error {
	data, err := encode(r)
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
