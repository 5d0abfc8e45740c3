package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/callargs"
	"github.com/yaya-ai/yaya/internal/screen"
)

// literally escapes text that looks like one of our escapes, so that the two stay distinct.
var literally = strings.NewReplacer(`\u`, `\\u`, `\U`, `\\U`, `\x`, `\\x`)

// shownArguments formats the arguments of a call of a tool for a terminal; a text of several
// lines stands behind a bar. Characters outside printable ASCII become \u escapes, so the
// arguments cannot imitate other output. The lines of a patch have its colours. whole is false if
// the arguments are too long to show in full.
func shownArguments(p screen.Palette, tool string, raw json.RawMessage) (shown string, whole bool) {
	var b strings.Builder
	for _, l := range callargs.Lines(tool, raw) {
		text := l.Text
		if !l.JSON {
			text = literally.Replace(text)
		}
		indent := "  "
		if l.Inner {
			indent = "  | "
		}
		if b.Len() <= maxShown {
			text = daemon.Escaped(l.Head+text, maxShown)
			fmt.Fprintf(&b, "%s%s\n", indent, screen.Paint(screen.DiffStyle(p, string(rune(l.Sign))), text))
		}
	}
	if b.Len() > maxShown {
		return "", false
	}
	return b.String(), true
}

// argumentLine returns a short form of a call's arguments, on one line.
func argumentLine(raw json.RawMessage) string {
	args := callargs.Read(raw)
	if args == nil {
		return callargs.Plain(raw)
	}
	parts := make([]string, len(args))
	for i, a := range args {
		text, isText := a.Text()
		if !isText {
			text = callargs.Plain(a.Value)
		}
		parts[i] = a.Name + "=" + daemon.OneLine(text)
	}
	return strings.Join(parts, " ")
}
