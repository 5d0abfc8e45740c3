package toolsearch

import (
	"encoding/json"
	"maps"
	"slices"
)

// Arguments returns the arguments that a schema names, in the order of their names. A schema
// that is not an object has none: its tool is found by its other texts.
func Arguments(schema json.RawMessage) (list []Argument) {
	var object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &object) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(object.Properties)) {
		var p struct {
			Description string `json:"description"`
		}
		// true and false are schemas, too.
		if json.Unmarshal(object.Properties[name], &p) != nil {
			p.Description = ""
		}
		list = append(list, Argument{Name: name, Description: p.Description})
	}
	return list
}
