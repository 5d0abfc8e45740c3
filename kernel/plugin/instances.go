package plugin

import (
	"maps"
	"strings"
	"sync"

	"github.com/yaya-ai/yaya/kernel/config"
)

// Instances keeps a value for each instance of a provider plugin, such as a client,
// and keeps it up to date. It is safe for concurrent use.
type Instances[T any] struct {
	plugin string
	build  func(c Context, i config.Instance) T

	mu sync.Mutex
	m  map[string]T
}

// NewInstances returns the instances of a plugin; build creates the value for one.
func NewInstances[T any](plugin string, build func(c Context, i config.Instance) T) *Instances[T] {
	return &Instances[T]{plugin: plugin, build: build, m: map[string]T{}}
}

// Load rebuilds all instances.
func (s *Instances[T]) Load(c Context) {
	for _, i := range c.Providers().InstancesForPlugin(s.plugin) {
		s.set(c, i)
	}
}

func (s *Instances[T]) set(c Context, i config.Instance) T {
	v := s.build(c, c.Providers().Reveal(i))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.m[i.ID] = v
	return v
}

// Get returns the value of an instance; false if it belongs to another plugin. It
// builds the value of an instance that was configured so recently that Changed has
// not been called yet.
func (s *Instances[T]) Get(c Context, id string) (T, bool) {
	s.mu.Lock()
	v, ok := s.m[id]
	s.mu.Unlock()
	if ok {
		return v, true
	}
	if c.Providers().PluginOf(id) != s.plugin { // each plugin is asked about each request
		return v, false
	}
	if i := c.Providers().GetInstance(id); i != nil && i.Plugin == s.plugin {
		return s.set(c, *i), true
	}
	return v, false
}

// Changed applies the change of a key: it rebuilds an instance of this plugin,
// drops one that is no longer the plugin's, and rebuilds all when the plugin's own
// settings change. It ignores other keys. Present users keep their old values.
func (s *Instances[T]) Changed(c Context, key string) {
	if strings.HasPrefix(key, "plugin."+config.Namespace(s.plugin)+".") {
		s.Load(c)
		return
	}
	rest, ok := strings.CutPrefix(key, "providers.")
	if !ok {
		return
	}
	id, _, _ := strings.Cut(rest, ".")
	if i := c.Providers().GetInstance(id); i != nil && i.Plugin == s.plugin {
		s.set(c, *i)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.m, id)
}

// All returns the values by instance.
func (s *Instances[T]) All() map[string]T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.m)
}
