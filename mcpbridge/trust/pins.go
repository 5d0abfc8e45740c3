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
	maxKept    = 8 << 20  // bytes of the kept definitions, for approved and for waiting ones each; only the hash of others is kept
	flapWindow = 10 * time.Minute
	flapLimit  = 5 // changes within flapWindow

	// oldProjects is the folder of 0.1's approvals of projects; since then, folders are trusted
	// as a whole (kernel/folder).
	oldProjects = "projects.json"
)

// Source is a configured server: its name, and everything else that its pins depend on. A
// server that the user reconfigures counts as another one.
type Source struct {
	Server string `json:"server"`
	// Config can contain secrets, for instance in arguments. It is not stored: the name of the
	// file derives from its digest.
	Config string `json:"config,omitempty"`
}

// Seen is a server's current offer. Protocol versions compare as strings.
type Seen struct {
	Identity     string // its own name for itself; "" if it sends none
	Version      string // of the protocol
	Instructions string // as clients would get them
	Tools        map[string]json.RawMessage
}

// Verdict tells which parts of an offer are approved.
type Verdict struct {
	// Whole is the reason why the whole server is blocked, "" if it is not.
	Whole string
	// Blocked is the reason, by tool, why it must be neither listed nor called.
	Blocked map[string]string
	// Approved are the definitions that stay in force for tools whose wording has
	// changed.
	Approved map[string]json.RawMessage
	// Instructions are the approved instructions.
	Instructions string
	// NewInstructions says that changed instructions wait.
	NewInstructions bool
}

// Definition is a tool's definition as the server sent it.
type Definition struct {
	Hash string          `json:"hash"`
	Raw  json.RawMessage `json:"definition,omitempty"` // canonical
	// Wording says that the approved definition stays in force while this one waits.
	Wording bool `json:"wording,omitempty"`
}

// record is the file of a server.
type record struct {
	Source   Source    `json:"source"`
	First    time.Time `json:"first_seen"`
	Identity string    `json:"identity"`
	// Version is the protocol version of the legacy era, Modern that of the modern one. yaya
	// chooses the era, so a change of the era is not a downgrade.
	Version string                `json:"protocol_version"`
	Modern  string                `json:"modern_version,omitempty"`
	Tools   map[string]Definition `json:"tools"`
	// Instructions are nil if none were recorded, as in files of 0.1.
	Instructions *string `json:"instructions,omitempty"`
	// The waiting changes.
	Waiting         map[string]Definition `json:"waiting,omitempty"`
	NewInstructions *string               `json:"new_instructions,omitempty"`
	NewIdentity     string                `json:"new_identity,omitempty"`
	NewVersion      string                `json:"new_protocol_version,omitempty"`
	Flapping        bool                  `json:"flapping,omitempty"`
	Changes         []time.Time           `json:"changes,omitempty"`
	// Repaired is when the record took the place of a damaged file: nothing is approved.
	Repaired *time.Time `json:"repaired,omitempty"`

	broken error // why the file cannot be read
}

// version returns a pointer to the version of an era.
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

	mu    sync.Mutex
	names map[string]string // of the servers that were checked, by file
}

// NewStore keeps its files below root, which the caller closes.
func NewStore(root *os.Root) *Store { return &Store{root: root, names: map[string]string{}} }

func (s Source) file() string {
	sum := sha256.Sum256([]byte(s.Server + "\x00" + s.Config))
	return hex.EncodeToString(sum[:16]) + ".json"
}

// Check compares a server's offer with the approved one. The first offer of a server is
// approved as a whole, later changes never are: a tool that a server adds a moment later is as
// new as one that it adds in a year.
func (s *Store) Check(src Source, seen Seen, now time.Time) (Verdict, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remember(src)
	r, found, err := s.load(src.file())
	if errors.Is(err, ErrDamaged) {
		return blockedBy(err, seen), nil
	}
	if err != nil {
		return Verdict{}, err
	}
	if r.Repaired != nil && r.Source.Server == "" {
		r.Source.Server = src.Server
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
		v.Whole, next.NewIdentity = fmt.Sprintf("the server's name is now %q, and was %q", seen.Identity, r.Identity), seen.Identity
	}
	if was := next.version(seen.Version); seen.Version < *was {
		v.Whole, next.NewVersion = fmt.Sprintf("the server now speaks %s, and spoke %s", seen.Version, *was), seen.Version
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

// compare records which definitions wait, and tells which ones stay in force in the meantime.
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
			pinned[name] = d // keep the parts that an earlier version of yaya did not store
		case known && onlyWording(was.Raw, d.Raw):
			d.Wording = true
			r.Waiting[name], v.Approved[name] = d, was.Raw
		case known && (len(was.Raw) == 0 || len(d.Raw) == 0):
			r.Waiting[name], v.Blocked[name] = d, "its definition has changed and is too large to compare"
		case known:
			r.Waiting[name], v.Blocked[name] = d, "its definition has changed"
		default:
			r.Waiting[name], v.Blocked[name] = d, "it is new"
		}
	}
	return v
}

// read compares the instructions of a server. Like tools, the first ones are approved, later
// changes wait, and the approved ones stay in force.
func (r *record) read(v *Verdict, now string) {
	if r.Instructions == nil {
		r.Instructions = &now
	}
	if v.Instructions = *r.Instructions; now != v.Instructions {
		r.NewInstructions, v.NewInstructions = &now, true
	}
}

// blocked returns the waiting definitions without an approved one in force.
func (r *record) blocked() map[string]Definition {
	out := maps.Clone(r.Waiting)
	maps.DeleteFunc(out, func(_ string, d Definition) bool { return d.Wording })
	return out
}

// Instructions returns the approved instructions of a server's last run.
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

// bounded returns definitions with as many kept whole as fit into a file: small ones first, so
// that a huge one does not displace others.
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

// Forget drops the approvals and waiting changes of the servers with a name: such a server
// counts as new when it is added again.
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
			return fmt.Errorf("forget the approvals of a server: %w", err)
		}
	}
	return nil
}

// records loads the records of all servers, by file; the caller holds mu.
func (s *Store) records() (map[string]record, error) { return s.all(s.load) }

// all reads the records of all servers, by file; the caller holds mu.
func (s *Store) all(read func(file string) (record, bool, error)) (map[string]record, error) {
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
		r, _, err := read(e.Name())
		if errors.Is(err, ErrDamaged) {
			// No server has a name like the file's.
			r, err = record{Source: Source{Server: cmp.Or(s.names[e.Name()], folder+"/"+e.Name())}, broken: err}, nil
		}
		if err != nil {
			return nil, err
		}
		out[e.Name()] = r
	}
	return out, nil
}

// Changed returns when a server's record was last written; zero if there is none.
func (s *Store) Changed(src Source) time.Time {
	info, err := s.root.Stat(folder + "/" + src.file())
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// load reads a record, and takes out of its file what earlier versions stored there.
func (s *Store) load(file string) (r record, found bool, err error) {
	if r, found, err = s.parse(file); err != nil || r.Source.Config == "" {
		return r, found, err
	}
	if err = s.save(file, r); err != nil {
		return record{}, false, err
	}
	r.Source.Config = ""
	return r, found, nil
}

// parse reads a record, and changes nothing.
func (s *Store) parse(file string) (r record, found bool, err error) {
	data, found, err := s.read(file)
	if err == nil && found {
		if err = json.Unmarshal(data, &r); err == nil && r.Source.Server == "" && r.Repaired == nil {
			err = errors.New("it names no server")
		}
		if err != nil {
			return record{}, false, s.damaged(file, err)
		}
	}
	if err != nil {
		return record{}, false, fmt.Errorf("the approvals of servers cannot be read: %s/%s/%s: %w", s.root.Name(), folder, file, err)
	}
	if mcp.IsModernProtocol(r.Version) { // 0.1 kept one version, of either era
		r.Version, r.Modern = "", r.Version
	}
	return r, found, nil
}

func (s *Store) read(file string) (data []byte, found bool, err error) {
	info, err := s.root.Stat(folder + "/" + file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err == nil && info.Size() > maxRecord {
		err = s.damaged(file, errors.New("it is too large"))
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

// encode encodes a record for its file. It escapes only what JSON requires, since the size of
// servers' texts is counted before.
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
		return fmt.Errorf("save the approvals of servers: %w", err)
	}
	dir, err := s.root.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("save the approvals of servers: %w", err)
	}
	_, err = atomicfile.Write(dir, file, data)
	if err = errors.Join(err, dir.Close()); err != nil {
		return fmt.Errorf("save the approvals of servers: %w", err)
	}
	return nil
}
