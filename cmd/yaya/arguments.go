package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/yaya-ai/yaya/daemon"
)

// argument is one member of a call's arguments; a slice keeps the order of the JSON.
type argument struct {
	name  string
	value json.RawMessage
}

// arguments reads the arguments of a call. It returns nil unless they are an object with
// distinct member names.
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

// text returns the value if it is a JSON string; otherwise ok is false.
func (a argument) text() (s string, ok bool) {
	return s, json.Unmarshal(a.value, &s) == nil && len(a.value) > 0 && a.value[0] == '"'
}

// plain returns JSON without the escapes that only HTML needs. Everything else, such as a
// duplicate member, stays as it is.
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
		end := min(i+2, len(raw)) // the byte after a backslash cannot start an escape
		b.Write(raw[i:end])
		i = end - 1
	}
	return b.String()
}

var htmlEscapes = map[string]byte{`\u0026`: '&', `\u003c`: '<', `\u003e`: '>'}

// literally escapes text that looks like one of our escapes, so that the two stay distinct.
var literally = strings.NewReplacer(`\u`, `\\u`, `\U`, `\\U`, `\x`, `\\x`)

// shownArguments formats the arguments of a call for a terminal: one member per line, and a
// string of several lines as a block of lines behind a bar. Characters outside printable ASCII
// become \u escapes, so the arguments cannot imitate other output. whole is false if the
// arguments are too long to show in full.
func shownArguments(raw json.RawMessage) (shown string, whole bool) {
	var b strings.Builder
	line := func(indent, text string) {
		if b.Len() <= maxShown {
			fmt.Fprintf(&b, "%s%s\n", indent, daemon.Escaped(text, maxShown))
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
		if isText && json.Valid([]byte(text)) { // tell the string "5" from the number 5
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

// argumentLine returns a short form of a call's arguments, on one line.
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
		parts[i] = a.name + "=" + daemon.OneLine(text)
	}
	return strings.Join(parts, " ")
}
