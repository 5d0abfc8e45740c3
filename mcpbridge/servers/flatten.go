package servers

import (
	"maps"
	"slices"
)

// nested maps members that some formats keep in a nested object to their names at the top.
// Other members of these objects cause a warning.
var nested = map[string][]string{
	"command":        {"path", "args", "env"},                                     // Zed until 2025
	"transport":      {"type", "command", "args", "cwd", "env", "url", "headers"}, // Cline's command line
	"requestInit":    {"headers"},                                                 // JetBrains
	"requestOptions": {"headers"},                                                 // Continue
}

// flatten moves the members of nested objects to the top, where other formats keep them. An
// existing member stays unchanged, except that headers are merged.
func (e *entry) flatten() {
	flat := maps.Clone(e.obj)
	for _, key := range slices.Sorted(maps.Keys(nested)) {
		obj, ok := e.obj[key].(map[string]any)
		if !ok {
			continue
		}
		delete(flat, key)
		for _, k := range slices.Sorted(maps.Keys(obj)) {
			v := obj[k]
			if !slices.Contains(nested[key], k) {
				if !empty(v) {
					e.warn("%q is not used by this version of yaya", key+"."+k)
				}
				continue
			}
			if k == "path" {
				k = "command"
			}
			if have, ok := flat[k].(map[string]any); ok && k == "headers" {
				if more, ok := v.(map[string]any); ok {
					both := maps.Clone(more)
					maps.Copy(both, have)
					v = both
				}
			} else if _, taken := flat[k]; taken {
				e.warn("%q is left out: it contradicts %q", key+"."+k, k)
				continue
			}
			flat[k] = v
		}
	}
	e.obj = flat
}
