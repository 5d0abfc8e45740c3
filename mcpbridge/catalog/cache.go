package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/yaya-ai/yaya/internal/atomicfile"
)

// Bounds of what is kept of a registry.
const (
	maxKept    = 2000 // entries
	maxQueries = 256
	maxFile    = 24 << 20 // bytes
	// Fresh is how long an answer is used without asking again.
	Fresh = time.Hour
	// again is how long a registry that did not answer is not asked.
	again = time.Minute
)

// Folder is the cache's in the data folder.
const Folder = "catalog"

// shelf holds the known entries and answers of one registry. Its lock is the catalog's; asking is held by the one
// request that is under way.
type shelf struct {
	asking chan struct{}
	loaded bool
	kept   kept
	failed time.Time // when it last did not answer
	why    error
}

// kept is the part that is in the file.
type kept struct {
	URL     string           `json:"url"`
	Entries map[string]Entry `json:"entries"` // by name, as last seen
	Queries map[string]asked `json:"queries"` // by [queryKey]
}

// asked is the answer to a query.
type asked struct {
	At    time.Time `json:"at"`
	Names []string  `json:"names"`
	Next  string    `json:"next,omitempty"`
}

func queryKey(search, cursor string) string { return search + "\n" + cursor }

func (c *Catalog) file(r Registry) string {
	sum := sha256.Sum256([]byte(r.URL))
	return hex.EncodeToString(sum[:8]) + ".json"
}

// shelf returns the shelf of a registry, and reads it at first; mu is held.
func (c *Catalog) shelf(r Registry) *shelf {
	s := c.shelves[r.URL]
	if s == nil {
		s = &shelf{asking: make(chan struct{}, 1)}
		c.shelves[r.URL] = s
	}
	if !s.loaded {
		s.loaded = true
		if err := c.load(r, &s.kept); err != nil {
			c.warn(fmt.Errorf("the cache of the registry %s cannot be read, and is made again: %w", r.Name, err))
			s.kept = kept{}
		}
		if s.kept.Entries == nil {
			s.kept.Entries = map[string]Entry{}
		}
		if s.kept.Queries == nil {
			s.kept.Queries = map[string]asked{}
		}
	}
	return s
}

func (c *Catalog) load(r Registry, into *kept) (err error) {
	if c.data == nil {
		return nil
	}
	f, err := c.data.Open(Folder + "/" + c.file(r))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1)) //nolint:forbidigo // bounded by the reader
	if err != nil {
		return err
	}
	if len(raw) > maxFile {
		return fmt.Errorf("it is larger than %d MiB", maxFile>>20)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return err
	}
	if into.URL != r.URL {
		*into = kept{} // two addresses with one sum
		return nil
	}
	for name, e := range into.Entries {
		if name != e.Server.Name || ownName(name) || e.Server.check() != nil {
			delete(into.Entries, name)
			continue
		}
		e.Registry, e.Hosts = r.Name, nil // its name in the settings may be another one now
		into.Entries[name] = e
	}
	return nil
}

// keep adds an answer, drops the oldest of what is too much, and writes the file; mu is held.
func (c *Catalog) keep(r Registry, s *shelf, key string, p page) {
	k := &s.kept
	k.URL = r.URL
	names := make([]string, len(p.entries))
	for i, e := range p.entries {
		k.Entries[e.Server.Name] = e
		names[i] = e.Server.Name
	}
	if key != "" {
		k.Queries[key] = asked{At: c.now().UTC(), Names: names, Next: p.next}
	}
	oldest(k.Entries, maxKept, func(e Entry) time.Time { return e.Seen })
	oldest(k.Queries, maxQueries, func(a asked) time.Time { return a.At })
	if c.data == nil {
		return
	}
	if err := c.write(r, k); err != nil {
		c.warn(fmt.Errorf("the cache of the registry %s cannot be written: %w", r.Name, err))
	}
}

func (c *Catalog) write(r Registry, k *kept) (err error) {
	raw, err := json.Marshal(k)
	if err != nil {
		return err
	}
	for len(raw) > maxFile { // large entries
		oldest(k.Entries, len(k.Entries)/2, func(e Entry) time.Time { return e.Seen })
		if raw, err = json.Marshal(k); err != nil {
			return err
		}
	}
	if err := c.data.MkdirAll(Folder, 0o700); err != nil {
		return err
	}
	dir, err := c.data.OpenRoot(Folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	_, err = atomicfile.Write(dir, c.file(r), raw)
	return err
}

// oldest drops the oldest of a map that has more than limit.
func oldest[V any](m map[string]V, limit int, at func(V) time.Time) {
	if len(m) <= limit {
		return
	}
	keys := slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(at(m[a]).Compare(at(m[b])), cmp.Compare(a, b)) })
	for _, k := range keys[:len(m)-limit] {
		delete(m, k)
	}
}
