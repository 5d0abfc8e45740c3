package tool

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/yaya-ai/yaya/internal/members"
)

// elsewhere has the names of tools of other agents, which models know and try, by that of the one here.
var elsewhere = map[string]string{"bash": "shell", "sh": "shell", "terminal": "shell", "run_command": "shell", "execute_command": "shell"}

// meant asks, at the end of the error about an agent's call of an unknown tool, whether one that it has
// was meant. Others learn no names: clients have the list, as far as they may.
func meant(snap *Snapshot, call Call) string {
	if call.Origin != OriginLoop {
		return ""
	}
	var names []string
	other := ""
	for e := range snap.All() {
		if !call.Caller.Reaches(e.Def.Identity.Provider) {
			continue
		}
		names = append(names, e.Def.Name)
		if e.Def.Name == elsewhere[strings.ToLower(call.Name)] {
			other = fmt.Sprintf(" (did you mean %q?)", e.Def.Name)
		}
	}
	if other != "" {
		return other
	}
	return members.Meant(call.Name, names)
}

// notJSON explains arguments that are a string, "" if they are not: what a model has written as
// arguments is passed on as text if it is not JSON.
func notJSON(args json.RawMessage) string {
	var text string
	if json.Unmarshal(args, &text) != nil {
		return ""
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return fmt.Sprintf("the arguments are not valid JSON: %v", err)
	}
	return "the arguments are a string: give the object itself"
}
