package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// Keys of the providers' part of the configuration.
const (
	ActiveKey = "provider"
	seededKey = "_meta.providers_seeded_at"
)

// Fields of a provider that say what the catalogue of models says otherwise.
const (
	// WindowField is the size of the model's window in tokens.
	WindowField = "context_window"
	// ImagesField is whether the model takes pictures.
	ImagesField = "images"
	// The prices are in US dollars for a million tokens.
	InputPriceField      = "input_price"
	OutputPriceField     = "output_price"
	CacheReadPriceField  = "cache_read_price"
	CacheWritePriceField = "cache_write_price"
)

// windows is the range of [WindowField].
var windows = span{1024, 100_000_000}

var instancePattern = lazyregexp.New(`^[a-z0-9][a-z0-9-]{1,62}[a-z0-9]$`)

// ValidInstanceID reports whether id can name a provider instance: 3 to 64
// lower-case letters, digits and dashes, no dash at either end.
func ValidInstanceID(id string) bool { return instancePattern().MatchString(id) }

// checkProviderKey checks providers.<id>.<field>.
func checkProviderKey(key string, v json.RawMessage) error {
	id, field, ok := strings.Cut(strings.TrimPrefix(key, "providers."), ".")
	if !ok || field == "" {
		return fmt.Errorf("%s: a provider's key is providers.<id>.<field>", key)
	}
	if !ValidInstanceID(id) {
		return fmt.Errorf("%s: %q cannot be the id of a provider: 3 to 64 lower-case letters, digits and dashes, no dash at either end", key, id)
	}
	if field == WindowField {
		if n, ok := (Key{kind: number}).read(v); !ok || n < windows.from || n > windows.to {
			return fmt.Errorf("%s must be a whole number of tokens from %d to %d, not %s", key, windows.from, windows.to, cut.Text(string(v), maxValueShown))
		}
	}
	var s string
	if (field == "plugin" || field == "label") && json.Unmarshal(v, &s) != nil {
		return fmt.Errorf("%s must be a string, not %s", key, cut.Text(string(v), maxValueShown))
	}
	return nil
}

// checkProviderFact checks the fields that say what the catalogue of models says otherwise. The live
// part may hold others, which count as not set.
func checkProviderFact(key string, v json.RawMessage) error {
	_, field, _ := strings.Cut(strings.TrimPrefix(key, "providers."), ".")
	switch field {
	case InputPriceField, OutputPriceField, CacheReadPriceField, CacheWritePriceField:
		var x float64
		if json.Unmarshal(v, &x) != nil || string(v) == "null" || x < 0 || x > maxPrice {
			return fmt.Errorf("%s must be US dollars for a million tokens, a number from 0 to %d, not %s", key, maxPrice, cut.Text(string(v), maxValueShown))
		}
	case ImagesField:
		var b bool
		if json.Unmarshal(v, &b) != nil || string(v) == "null" {
			return fmt.Errorf("%s must be true or false, not %s", key, cut.Text(string(v), maxValueShown))
		}
	}
	return nil
}

// maxPrice excludes mistakes, in US dollars for a million tokens.
const maxPrice = 100_000

// Instance is one configured provider.
type Instance struct {
	ID     string                     `json:"id"`
	Plugin string                     `json:"plugin"`
	Label  string                     `json:"label"`
	Config map[string]json.RawMessage `json:"config"` // every field but plugin and label
	// Missing explains why a field that refers to a secret has no value, after
	// [Providers.Reveal].
	Missing error `json:"-"`
}

// Text returns a field as a string, "" when it is not a string.
func (i Instance) Text(field string) string {
	return TextOf(i.Config[field])
}

// Providers is a read-only view of the providers. It reads the store on every call.
type Providers struct{ s *Store }

// Providers returns the view.
func (s *Store) Providers() Providers { return Providers{s} }

// ActiveID returns the id of the active instance, "" if none is set.
func (p Providers) ActiveID() string { return p.s.Text(ActiveKey) }

// ListInstances returns all instances by id. It leaves out rows without a plugin.
func (p Providers) ListInstances() []Instance {
	byID := p.all()
	out := make([]Instance, 0, len(byID))
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		out = append(out, byID[id].clone())
	}
	return out
}

func (i Instance) clone() Instance {
	i.Config = maps.Clone(i.Config)
	return i
}

// all returns the instances by id. They are shared: a turn asks for its instance several times.
func (p Providers) all() map[string]Instance {
	byID, _ := p.s.providers() // it never fails
	return byID
}

func instances(s *Store) (map[string]Instance, error) {
	byID := map[string]Instance{}
	for _, v := range s.All("providers.") {
		id, field, _ := strings.Cut(strings.TrimPrefix(v.Key, "providers."), ".")
		i, known := byID[id]
		if !known {
			i = Instance{ID: id, Config: map[string]json.RawMessage{}}
		}
		switch field {
		case "plugin":
			i.Plugin = TextOf(v.Value) // checked when it was set
		case "label":
			i.Label = TextOf(v.Value)
		default:
			i.Config[field] = v.Value
		}
		byID[id] = i
	}
	maps.DeleteFunc(byID, func(_ string, i Instance) bool { return i.Plugin == "" })
	return byID, nil
}

// Reveal returns an instance with its secret references resolved, for the plugin that
// uses it.
func (p Providers) Reveal(i Instance) Instance {
	out := maps.Clone(i.Config)
	for _, field := range slices.Sorted(maps.Keys(out)) {
		v, err := p.s.Reveal(out[field])
		if err != nil {
			i.Missing = errors.Join(i.Missing, fmt.Errorf("providers.%s.%s: %w", i.ID, field, err))
			delete(out, field)
			continue
		}
		out[field] = v
	}
	i.Config = out
	return i
}

// InstancesForPlugin returns the instances that a plugin backs.
func (p Providers) InstancesForPlugin(name string) []Instance {
	return slices.DeleteFunc(p.ListInstances(), func(i Instance) bool { return i.Plugin != name })
}

// GetInstance returns the instance with that id, or nil.
func (p Providers) GetInstance(id string) *Instance {
	if i, ok := p.all()[id]; ok {
		i = i.clone()
		return &i
	}
	return nil
}

// PluginOf returns the name of the plugin that backs an instance, "" if no instance has that id.
func (p Providers) PluginOf(id string) string { return p.all()[id].Plugin }

// Active returns the active instance and its model.
func (p Providers) Active() (Instance, string, error) {
	id := p.ActiveID()
	if id == "" {
		return Instance{}, "", errors.New("no provider is active: yaya provider list shows them, yaya provider use <id> chooses one")
	}
	i := p.GetInstance(id)
	if i == nil {
		return Instance{}, "", fmt.Errorf("the active provider %q does not exist: yaya provider list shows those that do", id)
	}
	return *i, i.Text("model"), nil
}

// Namespace is how a plugin's name is written in keys.
func Namespace(plugin string) string { return strings.ReplaceAll(plugin, "-", "_") }

// SeedProviders writes an instance for each loaded provider plugin, once in the
// life of a store: its plugin, a label, and copies of the plugin's own settings;
// and makes the first one active if none is. It writes the completion mark last, so
// that it runs again after a crash in between.
func (s *Store) SeedProviders(plugins []string) error {
	if _, _, done := s.Get(seededKey); done || len(plugins) == 0 {
		return nil
	}
	set := func(key string, v any) error {
		raw, err := json.Marshal(v)
		if err != nil {
			return err
		}
		return s.Set(key, raw)
	}
	for _, name := range plugins {
		at := "providers." + name + "."
		if err := set(at+"plugin", name); err != nil {
			return err
		}
		if _, _, there := s.Get(at + "label"); !there {
			if err := set(at+"label", name+" (default)"); err != nil {
				return err
			}
		}
		legacy := "plugin." + Namespace(name) + "."
		for _, v := range s.All(legacy) {
			field := strings.TrimPrefix(v.Key, legacy)
			if _, _, there := s.Get(at + field); there || field == "plugin" || field == "label" || field == "enabled" {
				continue
			}
			if err := s.Set(at+field, v.Value); err != nil {
				return err
			}
		}
	}
	if _, _, there := s.Get(ActiveKey); !there && len(plugins) > 0 {
		if err := set(ActiveKey, plugins[0]); err != nil {
			return err
		}
	}
	return set(seededKey, time.Now().UTC().Format(time.RFC3339))
}
