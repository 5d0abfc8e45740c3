package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import "strings"

// between are the characters at which a word is split into parts: sh -c './x y', --file=x, <x,
// PATH=a:b.
const between = " \t\r\n;&|()<>`'\"=,:{}[]$@"

// words returns the strings in a command that could name a file or a program. It does not parse
// sh: other strings are looked up, too, and not found. It cannot find names that only a run
// creates, from variables or by substitution.
func words(command string) []string {
	var out []string
	seen := map[string]bool{}
	add := func(w string) {
		if w != "" && len(w) <= 4096 && !seen[w] {
			seen[w] = true
			out = append(out, w)
		}
	}
	for _, t := range split(command) {
		add(t)
		for part := range strings.FieldsFuncSeq(t, func(r rune) bool { return strings.ContainsRune(between, r) }) {
			add(part)
			if len(part) > 2 && part[0] == '-' && part[1] != '-' {
				add(part[2:]) // -fx.mk
			}
		}
	}
	return out
}

// split splits a command into words like sh, without the quotes.
func split(command string) []string {
	var out []string
	var word strings.Builder
	quote := rune(0)
	escaped := false
	end := func() {
		out = append(out, word.String())
		word.Reset()
	}
	for _, r := range command {
		switch {
		case escaped:
			escaped = false
			if r != '\n' {
				word.WriteRune(r)
			}
		case r == '\\' && quote != '\'':
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote = r
		case strings.ContainsRune(" \t\r\n;&|()<>`", r):
			end()
		default:
			word.WriteRune(r)
		}
	}
	end()
	return out
}
