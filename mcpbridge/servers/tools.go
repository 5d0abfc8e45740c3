package servers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// tools reads lists of allowed and blocked tools. A tool that any spelling blocks is blocked.
func (e *entry) tools(s *Server) {
	d := dialects[e.format]
	include := func(key string, list []string) {
		if key == "" {
			return
		}
		if len(list) == 0 && d.noneIsNone {
			s.ExcludeTools = append(s.ExcludeTools, "*")
			e.changed("no tool is offered, as %q allows none", key)
		}
		if !slices.Contains(list, "*") {
			s.IncludeTools = append(s.IncludeTools, list...)
		}
	}
	keys := []string{"includeTools", "enabled_tools", "available_tools", "enabledTools"}
	_, key := e.get(keys...)
	in := e.list(keys...)
	s.ExcludeTools = e.list("excludeTools", "disabledTools", "disabled_tools")
	if d.filters { // tool(arguments) stands for the tool
		for _, list := range [][]string{in, s.ExcludeTools} {
			for i := range list {
				list[i], _, _ = strings.Cut(list[i], "(")
			}
		}
	}
	include(key, in)
	e.toolPermissions(s)
	switch t, _ := e.get("tools"); t := t.(type) {
	case nil:
	case []any:
		if names := texts(t); len(names) == len(t) { // Copilot: the names of the offered tools
			include("tools", names)
			return
		}
		e.toolPolicies(s, t) // Claude Code: [{name, permission_policy}]
	case map[string]any:
		e.toolModes(s, t)
	default:
		e.bad("tools", "a list or an object", t)
	}
}

// toolPermissions reads Claude Code's object of allow, ask and blocked.
func (e *entry) toolPermissions(s *Server) {
	m, _ := e.get("toolPermissions")
	perms, _ := m.(map[string]any)
	others := false
	for _, name := range slices.Sorted(maps.Keys(perms)) {
		if perms[name] == "blocked" {
			s.ExcludeTools = append(s.ExcludeTools, name)
		} else {
			others = true
		}
	}
	if others {
		e.warn(`only the blocked tools of "toolPermissions" are imported: yaya's own approval rules apply`)
	}
}

func (e *entry) toolPolicies(s *Server, list []any) {
	others := false
	for _, v := range list {
		m, _ := v.(map[string]any)
		n, ok := m["name"].(string)
		switch {
		case !ok:
			e.bad("tools", "a list of names, or of objects with a name", v)
		case m["permission_policy"] == "always_deny":
			s.ExcludeTools = append(s.ExcludeTools, n)
		default:
			others = true
		}
	}
	if others {
		e.warn(`only the always denied tools of "tools" are imported: yaya's own approval rules apply`)
	}
}

// toolModes reads an object by tool: false switches it off; Codex has objects with an
// approval_mode.
func (e *entry) toolModes(s *Server, tools map[string]any) {
	modes := false
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		switch v := tools[name].(type) {
		case bool:
			if !v {
				s.ExcludeTools = append(s.ExcludeTools, name)
			}
		case map[string]any:
			modes = true
		default:
			e.bad("tools."+name, "true, false or an object", v)
		}
	}
	if modes {
		e.warn(`"tools" is not imported: yaya's own approval rules apply`)
	}
}

// globMatch reports whether a name matches a pattern, in which * matches any characters and ?
// matches one.
func globMatch(pattern, name string) bool {
	if !isGlob(pattern) {
		return pattern == name
	}
	p, n, star, mark := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

func isGlob(pattern string) bool { return strings.ContainsAny(pattern, "*?") }

// overlap reports whether a name may match both patterns; for two patterns with wildcards, it
// says so without a closer look.
func overlap(a, b string) bool {
	switch {
	case !isGlob(a):
		return globMatch(b, a)
	case !isGlob(b):
		return globMatch(a, b)
	}
	return true
}

// afterPrefix returns the rest of a pattern after it has matched prefix: a list of patterns for
// the possible remaining names, at most one for each position of the pattern.
func afterPrefix(pattern, prefix string) []string {
	at := map[int]bool{0: true}
	skipStars := func(set map[int]bool) {
		for i := range len(pattern) {
			if set[i] && pattern[i] == '*' {
				set[i+1] = true
			}
		}
	}
	skipStars(at)
	for _, c := range []byte(prefix) {
		next := map[int]bool{}
		for i := range at {
			if i == len(pattern) {
				continue
			}
			switch pattern[i] {
			case '*':
				next[i] = true
			case '?', c:
				next[i+1] = true
			}
		}
		skipStars(next)
		at = next
	}
	var out []string
	for _, i := range slices.Sorted(maps.Keys(at)) {
		out = append(out, pattern[i:])
	}
	if len(out) > 0 && out[0] == "*" {
		return out[:1] // this one covers the others
	}
	return out
}

// Bounds of the patterns for tools in a file.
const (
	maxPatterns = 1000
	maxPattern  = 256
)

// rule is a pattern of opencode for tool names, limited to one server.
type rule struct {
	pattern string   // as written
	rests   []string // for the server's own names of its tools
	allow   bool
}

// opencodeTools applies opencode's rules for the tools of a server, which it calls server_tool:
// "tools" with true and false, and "permission" with deny. In opencode, the more exact pattern
// wins. A set of rules that lists of allowed and blocked tools cannot express is an error.
func opencodeTools(s *Server, doc map[string]any) error {
	prefix := strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') || (r >= '0' && r <= '9') || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, s.Name) + "_"
	var rules []rule
	add := func(pattern string, allow bool) {
		var rests []string
		for _, rest := range afterPrefix(pattern, prefix) {
			if rest != "" {
				rests = append(rests, rest)
			}
		}
		if len(rests) > 0 {
			rules = append(rules, rule{pattern, rests, allow})
		}
	}
	tools, _ := doc["tools"].(map[string]any)
	permission, _ := doc["permission"].(map[string]any)
	for _, m := range []map[string]any{tools, permission} {
		for pattern := range m {
			if len(pattern) > maxPattern {
				return fmt.Errorf(`"tools" or "permission" has a pattern of %d characters, the limit is %d`, len(pattern), maxPattern)
			}
		}
	}
	if n := len(tools) + len(permission); n > maxPatterns {
		return fmt.Errorf(`"tools" and "permission" have %d patterns, the limit is %d`, n, maxPatterns)
	}
	for pattern, v := range tools {
		if on, ok := v.(bool); ok {
			add(pattern, on)
		}
	}
	for pattern, v := range permission {
		if word, ok := v.(string); ok && tools[pattern] == nil {
			add(pattern, word != "deny")
		}
	}
	// From the least to the most exact.
	slices.SortFunc(rules, func(a, b rule) int {
		if d := len(a.pattern) - len(b.pattern); d != 0 {
			return d
		}
		return strings.Compare(a.pattern, b.pattern)
	})
	base := true // whether tools are offered that only match-all patterns match
	rest := rules[:0:0]
	for _, r := range rules {
		if strings.Trim(r.rests[0], "*") == "" {
			base, rest = r.allow, nil
			continue
		}
		rest = append(rest, r)
	}
	var blocked []string
	for _, r := range rest {
		if !r.allow {
			s.ExcludeTools = append(s.ExcludeTools, r.rests...)
			blocked = append(blocked, r.rests...)
			continue
		}
		for _, x := range r.rests {
			if slices.ContainsFunc(blocked, func(y string) bool { return overlap(x, y) }) {
				return fmt.Errorf(`the file allows the tools %q among others that it blocks, which lists of allowed and blocked tools cannot express; add the server by hand, with enabled_tools and disabled_tools`, r.pattern)
			}
		}
		if !base {
			s.IncludeTools = append(s.IncludeTools, r.rests...)
		}
	}
	if !base && len(s.IncludeTools) == 0 {
		s.ExcludeTools = []string{"*"}
	}
	return nil
}
