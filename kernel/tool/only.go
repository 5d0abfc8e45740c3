package tool

import (
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/cut"
)

// Only returns a view of the snapshot with the named tools alone; nil names all.
func (s *Snapshot) Only(names []string) *Snapshot {
	if names == nil {
		return s
	}
	return s.only(func(d *Definition) bool { return slices.Contains(names, d.Name) })
}

// limited refuses calls of tools that are not in the caller's list.
func limited(e *Entry, call *Call) (Result, bool) {
	if call.Caller.Tools == nil || slices.Contains(call.Caller.Tools, e.Def.Name) {
		return Result{}, true
	}
	if len(call.Caller.Tools) == 0 {
		return Fail(ErrRejected, "denied: this agent was started without tools"), false
	}
	return Fail(ErrRejected, "denied: this agent was started without the tool %s, and has %s", e.Def.Name, cut.Text(strings.Join(call.Caller.Tools, ", "), maxNamedTools)), false
}

// maxNamedTools bounds the list of an agent's tools in a refusal, in characters.
const maxNamedTools = 2000
