package servers

import (
	"maps"
	"slices"
)

// nested are members that some formats keep in an object of their own, and where they
// belong. Their other members are warned about.
var nested = map[string][]string{
	"command":        {"path", "args", "env"},                                     // Zed until 2025
	"transport":      {"type", "command", "args", "cwd", "env", "url", "headers"}, // Cline's command line
	"requestInit":    {"headers"},                                                 // JetBrains
	"requestOptions": {"headers"},                                                 // Continue
}

// flatten brings the members of nested objects to the top, where every format that has
// no such object keeps them. A member that is there already stays as it is, but
// headers are put together.
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
				e.warn("%q is left out: %q says otherwise", key+"."+k, k)
				continue
			}
			flat[k] = v
		}
	}
	e.obj = flat
}
