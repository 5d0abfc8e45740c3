package callargs

import (
	"encoding/json"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// patched is the sign of arguments that are patches, whose lines have their own.
const patched = 1

// The arguments of yaya's tool edit.
const (
	editTool = "edit"
	oldText  = "old_text"
	newText  = "new_text"
)

// signs are the signs of the lines of arguments, by tool and argument.
var signs = map[string]byte{"apply_patch patch": patched, editTool + " " + oldText: '-', editTool + " " + newText: '+'}

// edited returns what an edit removes and adds, by lines, with the lines beside them that stay. It
// returns nil for other calls, and for an edit that lacks a text.
func edited(tool string, args []Argument) (out []Line) {
	if tool != editTool {
		return nil
	}
	texts := map[string]string{}
	for _, a := range args {
		if text, ok := a.Text(); ok {
			texts[a.Name] = text
		}
	}
	before, hasOld := texts[oldText]
	after, hasNew := texts[newText]
	if !hasOld || !hasNew {
		return nil
	}
	if !strings.HasSuffix(before, "\n") && !strings.HasSuffix(after, "\n") { // within a line of the file
		before, after = before+"\n", after+"\n"
	}
	_, hunks, _ := strings.Cut(string(diff.Diff("", []byte(before), "", []byte(after))), "\n@@ ")
	_, hunks, _ = strings.Cut(hunks, "\n")
	for l := range strings.Lines(hunks) {
		switch l = strings.TrimSuffix(l, "\n"); {
		case strings.HasPrefix(l, "@@ "): // its numbers are not those of the file
			out = append(out, Line{Text: "…", Inner: true, Sign: '@'})
		default:
			out = append(out, inner(l, patched))
		}
	}
	return out
}

// IsChange reports whether an argument of a tool is the text of a change of files.
func IsChange(tool, argument string) bool { return signs[tool+" "+argument] != 0 }

// Change returns the first lines of the change of files that a call makes, at most most, and whether
// there are more. Calls of other tools have none.
func Change(tool string, raw json.RawMessage, most int) (shown []Line, more bool) {
	if !Changes(tool) {
		return nil, false
	}
	for _, l := range Lines(tool, raw) {
		switch {
		case !l.Inner:
		case len(shown) == most:
			return shown, true
		default:
			shown = append(shown, l)
		}
	}
	return shown, false
}

// Changes reports whether a tool is one of yaya's own that change files: an argument of it is the text of a
// change. Names of servers' tools are others.
func Changes(tool string) bool {
	for name := range signs {
		if t, _, _ := strings.Cut(name, " "); t == tool {
			return true
		}
	}
	return false
}

func inner(text string, sign byte) Line {
	out := Line{Text: text, Inner: true, Sign: sign}
	switch {
	case sign == patched && text != "" && strings.ContainsRune("+-@", rune(text[0])):
		out.Sign = text[0]
	case sign == patched:
		out.Sign = 0
	case sign != 0:
		out.Text = string(rune(sign)) + text
	}
	return out
}
