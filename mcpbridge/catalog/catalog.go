package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/cut"
)

// Bounds of a search.
const (
	MaxQuery   = 200 // bytes
	maxWords   = 3   // that a registry is asked for
	maxResults = 60
)

// Config assembles a [Catalog].
type Config struct {
	// Registries returns those of the settings.
	Registries func() []Registry
	// Data has the folder of the cache; nil keeps nothing.
	Data *os.Root
	// HTTP carries requests; nil is a transport that follows the proxies of the environment.
	HTTP http.RoundTripper
	Now  func() time.Time // nil is time.Now
	Warn func(error)      // is told about the cache's files; nil ignores it
}

// Catalog finds servers.
type Catalog struct {
	registries func() []Registry
	data       *os.Root
	http       *http.Client
	now        func() time.Time
	warn       func(error)
	fetching   chan struct{} // has a bundle in memory: one at a time

	mu      sync.Mutex
	shelves map[string]*shelf // by URL
}

// New returns a catalog.
func New(cfg Config) *Catalog {
	if cfg.HTTP == nil {
		cfg.HTTP = transport()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Warn == nil {
		cfg.Warn = func(error) {}
	}
	return &Catalog{registries: cfg.Registries, data: cfg.Data, http: client(cfg.HTTP), now: cfg.Now, warn: cfg.Warn, fetching: make(chan struct{}, 1), shelves: map[string]*shelf{}}
}

// Source is a registry, and how it answered.
type Source struct {
	Name    string
	URL     string
	Seen    time.Time // when it last answered, the zero time if never
	Err     error     // why what it says is old, nil if it is not
	Skipped int       // entries of its answer that cannot be used
}

// Found is the answer to a search.
type Found struct {
	Entries []Entry
	Next    string // cursor of the next page, "" for none
	Sources []Source
}

// ErrCursor is the error about a cursor that is not one of [Found].
var ErrCursor = errors.New("the cursor is not one of this catalogue: begin at the first page")

// Search finds servers by words, best first. Without words it lists all, page by page: those of
// yaya's own list first. A registry that does not answer is an error of its [Source]: what it
// said before is shown. A registry compares words with names alone; words of descriptions find
// what was seen before.
func (c *Catalog) Search(ctx context.Context, words, cursor string) (Found, error) {
	if len(words) > MaxQuery {
		return Found{}, fmt.Errorf("the words have %d bytes, %d at most", len(words), MaxQuery)
	}
	if words = strings.TrimSpace(words); words == "" {
		return c.browse(ctx, cursor)
	}
	if cursor != "" {
		return Found{}, ErrCursor
	}
	all := bundled()
	registries := c.registries()
	sources := make([]Source, len(registries))
	var wait sync.WaitGroup
	for i, r := range registries {
		wait.Go(func() {
			sources[i] = Source{Name: r.Name, URL: r.URL}
			for _, w := range searched(words) {
				a, skipped, err := c.query(ctx, r, w, "")
				sources[i].Skipped += skipped
				sources[i].take(a, err)
				if err != nil {
					break
				}
			}
		})
	}
	wait.Wait()
	c.mu.Lock()
	for _, r := range registries {
		for _, e := range c.shelf(r).kept.Entries {
			all = append(all, e)
		}
	}
	c.mu.Unlock()
	return Found{Entries: ranked(words, all), Sources: sources}, ctx.Err()
}

func (s *Source) take(a asked, err error) {
	if s.Seen.IsZero() || a.At.Before(s.Seen) && !a.At.IsZero() {
		s.Seen = a.At
	}
	s.Err = err
}

// searched are the words that a registry is asked for: the longest, as they tell most.
func searched(words string) []string {
	var out []string
	for w := range strings.FieldsSeq(strings.ToLower(words)) {
		if w = strings.Trim(w, `"'.,;:()`); len(w) >= 3 && !Odd(w) && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return out[:min(len(out), maxWords)]
}

// browse lists a page: first yaya's own list, then the registries in their order. A cursor names
// the registry, and its own cursor.
func (c *Catalog) browse(ctx context.Context, cursor string) (Found, error) {
	registries := c.registries()
	next := func(i int) string {
		if i < len(registries) {
			return registries[i].Name + ":"
		}
		return ""
	}
	if cursor == "" {
		return Found{Entries: bundled(), Next: next(0)}, nil
	}
	name, rest, ok := strings.Cut(cursor, ":")
	i := slices.IndexFunc(registries, func(r Registry) bool { return r.Name == name })
	if !ok || i < 0 || !cursorPattern().MatchString(rest) {
		return Found{}, ErrCursor
	}
	r := registries[i]
	source := Source{Name: r.Name, URL: r.URL}
	a, skipped, err := c.query(ctx, r, "", rest)
	source.take(a, err)
	source.Skipped = skipped
	out := Found{Sources: []Source{source}, Next: next(i + 1)}
	if a.Next != "" {
		out.Next = r.Name + ":" + a.Next
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range a.Names {
		if e, ok := c.shelf(r).kept.Entries[n]; ok {
			out.Entries = append(out.Entries, e)
		}
	}
	return out, ctx.Err()
}

// query returns the answer of a registry: the one that is kept while it is fresh, or if there is
// no newer one, which is the error.
func (c *Catalog) query(ctx context.Context, r Registry, search, cursor string) (a asked, skipped int, err error) {
	key := queryKey(search, cursor)
	release, err := c.ask(ctx, r)
	if err != nil {
		return asked{}, 0, err
	}
	defer release()
	c.mu.Lock()
	s := c.shelf(r)
	a = s.kept.Queries[key]
	failed, why := s.failed, s.why
	c.mu.Unlock()
	now := c.now()
	switch {
	case now.Sub(a.At) < Fresh && !a.At.After(now):
		return a, 0, nil
	case why != nil && now.Sub(failed) < again:
		return a, 0, why
	}
	p, err := c.list(ctx, r, search, cursor)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.missed(ctx, s, err)
		return a, 0, err
	}
	s.why = nil
	if s.loops(search, cursor, p.next, now) {
		p.next = ""
	}
	c.keep(r, s, key, p)
	return s.kept.Queries[key], p.skipped, nil
}

// loops reports whether the page after another one leads back to it: a registry whose cursors go
// round would never end, and hide those after it.
func (s *shelf) loops(search, cursor, next string, now time.Time) bool {
	for range maxQueries {
		if next == "" || next == cursor {
			return next != ""
		}
		a, ok := s.kept.Queries[queryKey(search, next)]
		if !ok || now.Sub(a.At) >= Fresh {
			return false
		}
		next = a.Next
	}
	return true
}

// missed notes that a registry did not answer, unless the caller went away; mu is held.
func (c *Catalog) missed(ctx context.Context, s *shelf, err error) {
	if ctx.Err() == nil {
		s.failed, s.why = c.now(), err
	}
}

// ask waits until no other request to a registry is under way.
func (c *Catalog) ask(ctx context.Context, r Registry) (release func(), err error) {
	c.mu.Lock()
	s := c.shelf(r)
	c.mu.Unlock()
	select {
	case s.asking <- struct{}{}:
		return func() { <-s.asking }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ErrUnknown is the error about a server that no registry has. ErrSeveral is that about one that
// several have.
var (
	ErrUnknown = errors.New("not in the catalogue")
	ErrSeveral = errors.New("several registries have it")
)

// Get returns a server by its name, of the named registry or of the only one that has it, in the
// newest or the named version. The registry is asked; if it does not answer, the entry is the one
// that it had last, whose Seen is old, and stale is why.
func (c *Catalog) Get(ctx context.Context, registry, name, version string) (e Entry, stale, err error) {
	if !strings.Contains(name, "/") { // a short name of yaya's own list
		name = Bundled + "/" + name
	}
	if err := CheckName(name); err != nil {
		return Entry{}, nil, err
	}
	if version != "" {
		if err := checkVersion(version); err != nil {
			return Entry{}, nil, err
		}
	}
	registries := c.registries()
	if registry != "" && registry != Bundled && !slices.ContainsFunc(registries, func(r Registry) bool { return r.Name == registry }) {
		return Entry{}, nil, fmt.Errorf("%w: there is no registry %q (yaya config get catalog.registries)", ErrUnknown, cut.Text(registry, 80))
	}
	var found []Entry
	var failed []error
	if i := slices.IndexFunc(bundled(), func(e Entry) bool { return e.Server.Name == name }); i >= 0 && (registry == "" || registry == Bundled) {
		if e := bundled()[i]; version == "" || e.Server.Version == version {
			found = append(found, e)
		}
	}
	for _, r := range registries {
		if registry != "" && r.Name != registry || strings.HasPrefix(name, Bundled+"/") {
			continue
		}
		e, old, err := c.getOf(ctx, r, name, version)
		switch {
		case errors.Is(err, errMissing):
		case err != nil:
			failed = append(failed, fmt.Errorf("registry %s: %w", r.Name, err))
		default:
			found, stale = append(found, e), old
		}
	}
	switch {
	case len(found) == 1:
		return found[0], stale, nil
	case len(found) > 1:
		return Entry{}, nil, fmt.Errorf("%w: name the registry of %s, one of %s", ErrSeveral, name, strings.Join(registriesOf(found), ", "))
	case len(failed) > 0:
		return Entry{}, nil, errors.Join(failed...)
	}
	what := name
	if version != "" {
		what += " " + version
	}
	return Entry{}, nil, fmt.Errorf("%w: %s (yaya catalog search finds servers by words)", ErrUnknown, what)
}

func registriesOf(all []Entry) (out []string) {
	for _, e := range all {
		out = append(out, e.Registry)
	}
	return out
}

func isEntryError(err error) bool {
	_, ok := errors.AsType[*entryError](err)
	return ok
}

// getOf asks one registry for a server.
func (c *Catalog) getOf(ctx context.Context, r Registry, name, version string) (e Entry, stale, err error) {
	release, err := c.ask(ctx, r)
	if err != nil {
		return Entry{}, nil, err
	}
	defer release()
	c.mu.Lock()
	s := c.shelf(r)
	old, known := s.kept.Entries[name]
	failed, why := s.failed, s.why
	c.mu.Unlock()
	if why == nil || c.now().Sub(failed) >= again {
		e, err = c.one(ctx, r, name, cmp.Or(version, latest))
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case err == nil:
			s.why = nil
			if version == "" {
				c.keep(r, s, "", page{entries: []Entry{e}})
			}
			return e, nil, nil
		case errors.Is(err, errMissing) || isEntryError(err): // the registry answers
			s.why = nil
			if version == "" && errors.Is(err, errMissing) {
				delete(s.kept.Entries, name)
			}
			return Entry{}, nil, err
		}
		c.missed(ctx, s, err)
		why = err
	}
	if known && (version == "" || old.Server.Version == version) {
		return old, why, nil
	}
	return Entry{}, nil, why
}
