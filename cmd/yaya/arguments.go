package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// argument is a member of a call's arguments, in the order in which it was written.
type argument struct {
	name  string
	value json.RawMessage
}

// arguments reads the arguments of a call; nil if they are not an object whose members
// have different names.
func arguments(raw json.RawMessage) []argument {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	out, seen := []argument{}, map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		var v json.RawMessage
		if err != nil || !ok || seen[name] || dec.Decode(&v) != nil {
			return nil
		}
		seen[name] = true
		out = append(out, argument{name, v})
	}
	if _, err := dec.Token(); err != nil {
		return nil
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil
	}
	return out
}

// text returns the value as a text; ok is false if it is something else.
func (a argument) text() (s string, ok bool) {
	return s, json.Unmarshal(a.value, &s) == nil && len(a.value) > 0 && a.value[0] == '"'
}

// plain returns JSON without the escapes that only HTML needs. All else, such as a member
// that is there twice, stays as it is.
func plain(raw json.RawMessage) string {
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			b.WriteByte(raw[i])
			continue
		}
		if end := min(i+6, len(raw)); htmlEscapes[strings.ToLower(string(raw[i:end]))] != 0 {
			b.WriteByte(htmlEscapes[strings.ToLower(string(raw[i:end]))])
			i = end - 1
			continue
		}
		end := min(i+2, len(raw)) // what follows a backslash begins no escape
		b.Write(raw[i:end])
		i = end - 1
	}
	return b.String()
}

var htmlEscapes = map[string]byte{`\u0026`: '&', `\u003c`: '<', `\u003e`: '>'}

// literally keeps what looks like an escape in a text apart from one of ours.
var literally = strings.NewReplacer(`\u`, `\\u`, `\U`, `\\U`, `\x`, `\\x`)

// shownArguments writes the arguments of a call so that a terminal shows all of them and
// nothing else: a member a line, and texts of several lines as these, behind a bar. Other
// characters than printable ASCII are \u escapes. whole is false when there is too much.
func shownArguments(raw json.RawMessage) (shown string, whole bool) {
	var b strings.Builder
	line := func(indent, text string) {
		if b.Len() <= maxShown {
			fmt.Fprintf(&b, "%s%s\n", indent, escaped(text, maxShown))
		}
	}
	args := arguments(raw)
	if args == nil {
		line("  ", plain(raw))
	}
	if args != nil && len(args) == 0 {
		line("  ", "(no arguments)")
	}
	for _, a := range args {
		text, isText := a.text()
		if isText && json.Valid([]byte(text)) { // the text 5 is not the number
			isText = false
		}
		text = literally.Replace(text)
		switch {
		case !isText:
			line("  ", a.name+": "+plain(a.value))
		case strings.Contains(text, "\n"):
			line("  ", a.name+":")
			for l := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
				line("  | ", l)
			}
		default:
			line("  ", a.name+": "+text)
		}
	}
	if b.Len() > maxShown {
		return "", false
	}
	return b.String(), true
}

// argumentLine writes the arguments of a call on one line, in short.
func argumentLine(raw json.RawMessage) string {
	args := arguments(raw)
	if args == nil {
		return plain(raw)
	}
	parts := make([]string, len(args))
	for i, a := range args {
		text, isText := a.text()
		if !isText {
			text = plain(a.value)
		}
		parts[i] = a.name + "=" + oneLine(text)
	}
	return strings.Join(parts, " ")
}

// oneLine is the first line of a text, with how many follow it.
func oneLine(s string) string {
	first, rest, more := strings.Cut(strings.TrimSpace(s), "\n")
	if !more {
		return first
	}
	lines := "lines"
	if !strings.Contains(rest, "\n") {
		lines = "line"
	}
	return fmt.Sprintf("%s … (%d more %s)", strings.TrimSpace(first), strings.Count(rest, "\n")+1, lines)
}
