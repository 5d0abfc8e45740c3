package plugin

import (
	"maps"
	"strings"
	"sync"

	"github.com/yaya-ai/yaya/kernel/config"
)

// Instances keeps what a provider plugin has for each of its instances, such as a
// client, and keeps it up to date. It is safe for concurrent use.
type Instances[T any] struct {
	plugin string
	build  func(c Context, i config.Instance) T

	mu sync.Mutex
	m  map[string]T
}

// NewInstances returns the instances of a plugin; build makes what the plugin
// has for one.
func NewInstances[T any](plugin string, build func(c Context, i config.Instance) T) *Instances[T] {
	return &Instances[T]{plugin: plugin, build: build, m: map[string]T{}}
}

// Load builds all instances anew.
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

// Get returns what there is for an instance; false when it is another plugin's
// (Y-85). One that was configured a moment ago may be asked before the news of it
// is here, and is built then.
func (s *Instances[T]) Get(c Context, id string) (T, bool) {
	s.mu.Lock()
	v, ok := s.m[id]
	s.mu.Unlock()
	if ok {
		return v, true
	}
	if i := c.Providers().GetInstance(id); i != nil && i.Plugin == s.plugin {
		return s.set(c, *i), true
	}
	return v, false
}

// Changed takes over the change of a key: an instance of this plugin is built
// anew, one that is not (any more) is dropped, and the plugin's own settings
// concern all. Other keys are ignored (Y-74, Y-86, Y-87). What was there is left
// to those who use it.
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

// All returns what there is, by instance.
func (s *Instances[T]) All() map[string]T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.m)
}
