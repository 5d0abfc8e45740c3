package plugin

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// CheckSetting is the function of that name for the plugins of this registry.
func (r *Registry) CheckSetting(key string, v json.RawMessage) error {
	r.mu.Lock()
	all := slices.Clone(r.order)
	r.mu.Unlock()
	for _, l := range all {
		if err := CheckSetting(l.manifest, key, v); err != nil {
			return err
		}
	}
	return nil
}

// CheckSetting returns why a value does not fit the schema of a plugin's setting. It knows nothing of keys of others,
// nor of fields without a schema, and a value that refers to a secret may be any.
func CheckSetting(m Manifest, key string, v json.RawMessage) error {
	field, is := strings.CutPrefix(key, namespace(m))
	if !is || strings.Contains(string(v), "${secret:") {
		return nil
	}
	if why := violates(fields(m)[field], v); why != "" {
		return fmt.Errorf("%s: %s", key, why)
	}
	return nil
}

// wrongSettings names the settings of a plugin that do not fit its schema, from a file, say. The plugin itself may
// take such a value for one that is not set, and nobody would notice.
func (r *Registry) wrongSettings(m Manifest) (out []HealthCheck) {
	for _, field := range slices.Sorted(maps.Keys(fields(m))) {
		key := namespace(m) + field
		v, _, ok := r.cfg.Config.Get(key)
		if !ok {
			continue
		}
		if err := CheckSetting(m, key, v); err != nil {
			out = append(out, HealthCheck{Name: key, Status: Degraded, Message: strings.TrimPrefix(err.Error(), key+": ")})
		}
	}
	return out
}

// Default returns the default of a plugin's setting in the schema of the plugin, nil if it has none.
// The schema is read once: the loop asks before each call of a model.
func (r *Registry) Default(name, field string) json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := slices.IndexFunc(r.order, func(l *loaded) bool { return l.manifest.Name == name })
	if n < 0 {
		return nil
	}
	l := r.order[n]
	if l.defaults == nil {
		l.defaults = map[string]json.RawMessage{}
		for field, schema := range fields(l.manifest) {
			var s struct {
				Default json.RawMessage `json:"default"`
			}
			if json.Unmarshal(schema, &s) == nil && s.Default != nil {
				l.defaults[field] = s.Default
			}
		}
	}
	return l.defaults[field]
}

func namespace(m Manifest) string { return "plugin." + config.Namespace(m.Name) + "." }

// fields returns the schemas of a plugin's settings.
func fields(m Manifest) map[string]json.RawMessage {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if m.ConfigSchema == nil || json.Unmarshal(m.ConfigSchema, &schema) != nil {
		return nil // a manifest is checked when it is loaded
	}
	return schema.Properties
}

// violates returns why a value does not fit a schema, "" if it does, or if there is no schema.
func violates(schema, v json.RawMessage) string {
	if schema == nil {
		return ""
	}
	why, err := tool.Violates(schema, v)
	if err != nil { // it refers to another part of the whole
		return ""
	}
	var text string
	if json.Unmarshal(v, &text) == nil && text != "" && strings.Contains(why, text) { // it may be a secret
		return "it does not fit the plugin's schema"
	}
	return why
}
