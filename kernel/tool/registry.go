package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Registry holds the tools. Its zero value works.
type Registry struct {
	// Log receives warnings about names that two parties claim.
	Log zerolog.Logger

	mu       sync.Mutex
	current  atomic.Pointer[Snapshot]
	pins     map[string]*pin
	legacy   map[string]string // legacy tool name → plugin
	watchers map[int]func(generation uint64)
	watchSeq int
	view     func(session string) func(*Definition) bool // see SetView; nil: everything
}

type pin struct {
	snap  *Snapshot
	count int
}

// Entry is one registered tool in a snapshot. Entries are shared between
// snapshots as long as the tool does not change.
type Entry struct {
	Tool Tool
	Def  Definition
	// Hidden entries can be called, but are not offered: their provider is down, and
	// may be back when the call arrives.
	Hidden bool
	// Rank is the tool's place in its provider's list.
	Rank int

	schema func() (*jsonschema.Schema, error)
}

// Snapshot is an immutable view of the registry.
type Snapshot struct {
	generation uint64
	byName     map[string]*Entry
	listed     []*Entry // not hidden, by name
	withheld   map[string]Withheld
}

// Withheld is a provider's tool that cannot be called, for instance because it waits
// for approval. It does not occupy its name: another provider may offer the name.
type Withheld struct {
	Def Definition // without the provider's description of the tool
	Why string     // for callers
}

var emptySnapshot = &Snapshot{}

// Generation counts the changes of the registry; it never goes back.
func (s *Snapshot) Generation() uint64 { return s.generation }

// Lookup finds a tool by name, hidden ones included.
func (s *Snapshot) Lookup(name string) (*Entry, bool) {
	e, ok := s.byName[name]
	return e, ok
}

// Name returns a name as a string, which is the registry's own if there is such a tool.
func (s *Snapshot) Name(name []byte) string {
	if e, ok := s.byName[string(name)]; ok {
		return e.Def.Name
	}
	return string(name)
}

// Withheld returns why a tool that nobody offers cannot be called.
func (s *Snapshot) Withheld(name string) (Withheld, bool) {
	w, ok := s.withheld[name]
	return w, ok
}

// Len returns the number of offered tools.
func (s *Snapshot) Len() int { return len(s.listed) }

// All yields the offered tools by name.
func (s *Snapshot) All() iter.Seq[*Entry] { return slices.Values(s.listed) }

// Of yields every tool of a provider: offered, hidden and withheld, the last with
// the reason.
func (s *Snapshot) Of(provider string) iter.Seq2[*Definition, string] {
	return func(yield func(*Definition, string) bool) {
		for _, e := range s.byName {
			if e.Def.Identity.Provider == provider && !yield(&e.Def, "") {
				return
			}
		}
		for _, w := range s.withheld {
			if w.Def.Identity.Provider == provider && !yield(&w.Def, w.Why) {
				return
			}
		}
	}
}

// ChangedSince returns the providers whose offered tools differ from those of an
// earlier snapshot, "" for the built-in ones.
func (s *Snapshot) ChangedSince(earlier *Snapshot) []string {
	var out []string
	differs := func(e, other *Entry) {
		if p := e.Def.Identity.Provider; e != other && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	for name, e := range s.byName {
		differs(e, earlier.byName[name])
	}
	for name, e := range earlier.byName {
		differs(e, s.byName[name])
	}
	return out
}

// Definitions returns the definitions of the offered tools by name.
func (s *Snapshot) Definitions() []Definition {
	out := make([]Definition, len(s.listed))
	for i, e := range s.listed {
		out[i] = e.Def
	}
	return out
}

// FunctionSpec is a tool in the shape of OpenAI's tools array.
type FunctionSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// FunctionSpecs returns the offered tools in the form for a model provider. Tools
// become visible to a model only through it, whoever provides them.
func (s *Snapshot) FunctionSpecs() []FunctionSpec {
	out := make([]FunctionSpec, len(s.listed))
	for i, e := range s.listed {
		out[i] = FunctionSpec{e.Def.Name, e.Def.Description, e.Def.InputSchema}
	}
	return out
}

// Snapshot returns the current view.
func (r *Registry) Snapshot() *Snapshot {
	if s := r.current.Load(); s != nil {
		return s
	}
	return emptySnapshot
}

// Pin fixes the view of a session for the duration of a turn and returns it with
// its release. Pins of one session nest and share the first one's view.
func (r *Registry) Pin(session string) (*Snapshot, func()) {
	seen := r.seen(session, r.Snapshot()) // which may read files: not under the lock
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pins == nil {
		r.pins = map[string]*pin{}
	}
	p := r.pins[session]
	if p == nil {
		p = &pin{snap: seen}
		r.pins[session] = p
	}
	p.count++
	var once sync.Once
	return p.snap, func() {
		once.Do(func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if p.count--; p.count == 0 {
				delete(r.pins, session)
			}
		})
	}
}

// For returns the view that a session has pinned, else the current one.
func (r *Registry) For(session string) *Snapshot {
	r.mu.Lock()
	p := r.pins[session]
	r.mu.Unlock()
	if p != nil {
		return p.snap
	}
	return r.seen(session, r.Snapshot())
}

// Watch calls f after every change, on the changing goroutine; f must not
// block. The returned function ends it.
func (r *Registry) Watch(f func(generation uint64)) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watchers == nil {
		r.watchers = map[int]func(uint64){}
	}
	r.watchSeq++
	id := r.watchSeq
	r.watchers[id] = f
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, id)
	}
}

// Provided is a provider's tool for [Registry.Replace].
type Provided struct {
	Tool   Tool
	Hidden bool
	// Withheld is the reason why the tool cannot be called. It is then not registered;
	// only callers learn the reason.
	Withheld string
}

// Register adds built-in tools. If a name is taken, it returns an error and
// registers nothing.
func (r *Registry) Register(tools ...Tool) error {
	var ps []Provided
	for _, t := range tools {
		ps = append(ps, Provided{Tool: t})
	}
	var errs []error
	r.change(func(next map[string]*Entry, _ map[string]Withheld) bool {
		for _, p := range ps {
			e, err := newEntry("", p)
			if err == nil && next[e.Def.Name] != nil {
				err = fmt.Errorf("tool %s is registered already", e.Def.Name)
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
			next[e.Def.Name] = e
		}
		return len(errs) == 0
	})
	return errors.Join(errs...)
}

// Exchange puts a tool in the place of the built-in one of its name.
func (r *Registry) Exchange(t Tool) (err error) {
	r.change(func(next map[string]*Entry, _ map[string]Withheld) bool {
		var e *Entry
		if e, err = newEntry("", Provided{Tool: t}); err != nil {
			return false
		}
		if was := next[e.Def.Name]; was == nil || was.Def.Identity.Provider != "" {
			err = fmt.Errorf("there is no built-in tool %s", e.Def.Name)
			return false
		}
		next[e.Def.Name] = e
		return true
	})
	return err
}

// Unregister removes built-in tools, as when the plugin that brought them is
// unloaded. A turn that has pinned a snapshot still sees them.
func (r *Registry) Unregister(names ...string) {
	r.change(func(next map[string]*Entry, _ map[string]Withheld) bool {
		n := len(next)
		for _, name := range names {
			if e := next[name]; e != nil && e.Def.Identity.Provider == "" {
				delete(next, name)
			}
		}
		return len(next) < n
	})
}

// Replace atomically replaces all tools of a provider. It leaves out a tool with an
// invalid definition, or with a name that is taken, and names it in the returned
// errors; it registers the others. A provider cannot shadow built-in tools and
// tools of other providers. A different order alone is not a change.
func (r *Registry) Replace(provider string, tools []Provided) []error {
	if provider == "" {
		return []error{errors.New("a provider needs a name")}
	}
	var errs []error
	r.change(func(next map[string]*Entry, withheld map[string]Withheld) bool {
		changed := false
		old := map[string]*Entry{}
		for name, e := range next {
			if e.Def.Identity.Provider == provider {
				old[name] = e
				delete(next, name)
			}
		}
		gone := map[string]string{}
		for name, w := range withheld {
			if w.Def.Identity.Provider == provider {
				gone[name] = w.Why
				delete(withheld, name)
			}
		}
		for rank, p := range tools {
			e, err := newEntry(provider, p)
			if err == nil && p.Withheld != "" {
				name := e.Def.Name
				changed = changed || gone[name] != p.Withheld
				delete(gone, name)
				if _, taken := withheld[name]; !taken {
					withheld[name] = Withheld{e.Def, p.Withheld}
				}
				continue
			}
			if err == nil {
				if other := next[e.Def.Name]; other != nil {
					err = fmt.Errorf("tool %s: the name is taken by %s", e.Def.Name, other.Def.Identity)
				}
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
			e.Rank = rank
			if have := old[e.Def.Name]; have == nil || have.Tool != p.Tool || have.Hidden != p.Hidden {
				changed = true
			} else if have.Rank == rank {
				e = have
			} else {
				e.schema = have.schema
			}
			delete(old, e.Def.Name)
			next[e.Def.Name] = e
		}
		return changed || len(old)+len(gone) > 0
	})
	return errs
}

func newEntry(provider string, p Provided) (*Entry, error) {
	def := p.Tool.Definition()
	if err := CheckDefinition(def); err != nil {
		return nil, err
	}
	def.Identity.Provider = provider
	if def.Identity.Tool == "" {
		def.Identity.Tool = def.Name
	}
	e := &Entry{Tool: p.Tool, Def: def, Hidden: p.Hidden}
	e.schema = compiled(def.InputSchema)
	return e, nil
}

// change builds the next snapshot from a copy of the current one; edit returns
// whether the copy replaces it.
func (r *Registry) change(edit func(next map[string]*Entry, withheld map[string]Withheld) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	cur := r.Snapshot()
	next := &Snapshot{generation: cur.generation + 1, byName: make(map[string]*Entry, len(cur.byName))}
	maps.Copy(next.byName, cur.byName)
	next.withheld = maps.Clone(cur.withheld)
	if next.withheld == nil {
		next.withheld = map[string]Withheld{}
	}
	if !edit(next.byName, next.withheld) {
		return
	}
	for name, e := range next.byName {
		if plugin, ok := r.legacy[name]; ok && cur.byName[name] == nil {
			r.warnTwice(name, plugin)
		}
		if !e.Hidden {
			next.listed = append(next.listed, e)
		}
	}
	slices.SortFunc(next.listed, func(a, b *Entry) int { return strings.Compare(a.Def.Name, b.Def.Name) })
	r.current.Store(next)
	for _, w := range r.watchers {
		w(next.generation)
	}
}

// DeclareLegacy records that a plugin answers requests for name itself, without
// schema version. A name that is also registered here may be answered twice, which
// is logged.
func (r *Registry) DeclareLegacy(plugin, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.legacy == nil {
		r.legacy = map[string]string{}
	}
	r.legacy[name] = plugin
	if _, ok := r.Snapshot().Lookup(name); ok {
		r.warnTwice(name, plugin)
	}
}

func (r *Registry) warnTwice(name, plugin string) {
	r.Log.Warn().Str("tool", name).Str("plugin", plugin).
		Msg("a tool name is claimed by a v1 tool and by a legacy plugin: calls may be answered twice")
}
