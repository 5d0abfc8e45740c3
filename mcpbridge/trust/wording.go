package trust

import (
	"bytes"
	"encoding/json"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// contract are the members of a definition that specify a tool's call and result. All other
// members describe the tool, for people and models.
var contract = []string{"name", "inputSchema", "outputSchema", "execution"}

// onlyWording reports whether two definitions of a tool differ only in its description. The
// tool then stays callable with the approved description. Annotations are part of the
// description, unless the tool now declares a greater effect than approved: a client that was
// told "only reads" may have stopped asking its user.
func onlyWording(was, is json.RawMessage) bool {
	var a, b map[string]json.RawMessage
	if len(was) == 0 || json.Unmarshal(was, &a) != nil || json.Unmarshal(is, &b) != nil {
		return false
	}
	for _, member := range contract {
		if !same(a[member], b[member]) {
			return false
		}
	}
	return effect(b["annotations"]) <= effect(a["annotations"])
}

func same(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	x, err1 := jsonrpc.Canonical(a)
	y, err2 := jsonrpc.Canonical(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// The effect that a tool declares in its annotations.
const (
	reads = iota
	writes
	destroys
)

// effect reads readOnlyHint and destructiveHint, with the defaults of the specification.
func effect(annotations json.RawMessage) int {
	var a struct {
		ReadOnly    bool  `json:"readOnlyHint"`
		Destructive *bool `json:"destructiveHint"`
	}
	if len(annotations) > 0 && json.Unmarshal(annotations, &a) != nil {
		return destroys
	}
	switch {
	case a.ReadOnly:
		return reads
	case a.Destructive != nil && !*a.Destructive:
		return writes
	}
	return destroys
}
