package callargs

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// patched is the sign of arguments that are patches, whose lines have their own; stays is that of
// a line that an edit does not change.
const (
	patched = 1
	stays   = 2
)

// The arguments of yaya's tool edit.
const (
	editTool = "edit"
	oldText  = "old_text"
	newText  = "new_text"
)

// signs are the signs of the lines of arguments, by tool and argument.
var signs = map[string]byte{"apply_patch patch": patched, editTool + " " + oldText: '-', editTool + " " + newText: '+'}

// edited returns what an edit removes and adds, by lines, with the lines that stay between them. It
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
	add := func(sign byte, text string) {
		for l := range strings.Lines(text) {
			out = append(out, inner(strings.TrimSuffix(l, "\n"), sign))
		}
	}
	done := 0
	for _, e := range udiff.Lines(before, after) {
		add(stays, before[done:e.Start])
		add('-', before[e.Start:e.End])
		add('+', e.New)
		done = e.End
	}
	add(stays, before[done:])
	return out
}

// IsChange reports whether an argument of a tool is the text of a change of files.
func IsChange(tool, argument string) bool { return signs[tool+" "+argument] != 0 }

// around is how many unchanged lines are shown before and after changed ones.
const around = 2

// Change returns the first lines of the change of files that a call makes, at most most, and whether
// there are more. Of unchanged lines it keeps those beside changed ones. Calls of other tools have none.
func Change(tool string, raw json.RawMessage, most int) (shown []Line, more bool) {
	var all []Line
	for _, a := range Lines(tool, raw) {
		if a.Inner && changes(tool) {
			all = append(all, a)
		}
	}
	last := -1 // line that is shown
	for i, l := range all {
		if !slices.ContainsFunc(all[max(0, i-around):min(len(all), i+around+1)], Line.differs) {
			continue
		}
		if last >= 0 && i > last+1 {
			shown = append(shown, Line{Text: "…", Inner: true})
		}
		last = i
		if len(shown) >= most {
			return shown[:most], true
		}
		shown = append(shown, l)
	}
	return shown, false
}

// differs reports whether a line of a change is something other than an unchanged line of the file.
func (l Line) differs() bool { return l.Sign != 0 || l.Text != "" && l.Text[0] != ' ' }

// changes reports whether a tool has an argument that is the text of a change.
func changes(tool string) bool {
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
	case sign == stays:
		out.Text, out.Sign = " "+text, 0
	case sign != 0:
		out.Text = string(rune(sign)) + text
	}
	return out
}
