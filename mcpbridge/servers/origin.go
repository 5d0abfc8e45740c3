package servers

import (
	"fmt"
	"maps"
	"slices"

	"github.com/yaya-ai/yaya/internal/members"
)

// Origin says which entry of the catalogue a server was made from, so that yaya can tell of newer
// versions. It decides nothing about what runs.
type Origin struct {
	Registry string `json:"registry"`
	Name     string `json:"name"`
	Version  string `json:"version"`
	Package  string `json:"package"` // id of the entry's package or remote: npm, pypi, remote
}

// origin reads the member catalog, which is yaya's own.
func (e *entry) origin() *Origin {
	if e.format != FormatYaya || e.project {
		return nil
	}
	v, key := e.get("catalog")
	if key == "" || v == nil {
		return nil
	}
	obj, ok := v.(map[string]any)
	if !ok {
		e.bad(key, "an object", v)
		return nil
	}
	inner := &entry{obj: obj, used: map[string]bool{}, format: e.format}
	out := &Origin{Registry: inner.str("registry"), Name: inner.str("name"), Version: inner.str("version"), Package: inner.str("package")}
	for _, k := range slices.Sorted(maps.Keys(obj)) {
		if !inner.used[k] {
			inner.errs = append(inner.errs, fmt.Errorf("unknown key %q%s", k, members.Known(k, new(Origin))))
		}
	}
	for _, err := range inner.errs {
		e.errs = append(e.errs, fmt.Errorf("catalog: %w", err))
	}
	return out
}
