// Package callargs formats the arguments of a call for a person who is asked about it: a patch as
// a patch, a command as it was typed, and other arguments by name. Its texts are as hostile as
// the arguments: who prints them makes them safe.
package callargs

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// Argument is one member of a call's arguments; a slice keeps the order of the JSON.
type Argument struct {
	Name  string
	Value json.RawMessage
}

// Read reads the arguments of a call. It returns nil unless they are an object with
// distinct member names.
func Read(raw json.RawMessage) []Argument {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	out, seen := []Argument{}, map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		var v json.RawMessage
		if err != nil || !ok || seen[name] || dec.Decode(&v) != nil {
			return nil
		}
		seen[name] = true
		out = append(out, Argument{name, v})
	}
	if _, err := dec.Token(); err != nil {
		return nil
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil
	}
	return out
}

// Text returns the value if it is a JSON string; otherwise ok is false.
func (a Argument) Text() (s string, ok bool) {
	return s, json.Unmarshal(a.Value, &s) == nil && len(a.Value) > 0 && a.Value[0] == '"'
}

// Plain returns JSON without the escapes that only HTML needs. Everything else, such as a
// duplicate member, stays as it is.
func Plain(raw json.RawMessage) string {
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

// Line is a line of formatted arguments.
type Line struct {
	Head string // the member's name with its colon, where it begins
	Text string
	JSON bool // the text is JSON, and not a string's content
	// Inner is part of a text of several lines, whose name is above.
	Inner bool
	// Sign is '+', '-' or '@' in a patch, and 0 otherwise.
	Sign byte
}

// longList is from how many bytes on the elements of a list have a line each.
const longList = 60

// elements returns the elements of a list that is too long for a line, nil for other values.
func elements(v json.RawMessage) (out []json.RawMessage) {
	if len(v) < longList || v[0] != '[' || json.Unmarshal(v, &out) != nil {
		return nil
	}
	return out
}

// Lines formats the arguments of a call of a tool: one member per line, or several for a string
// with several lines and for a long list. Arguments that are not an object stay as they are.
func Lines(tool string, raw json.RawMessage) (out []Line) {
	args := Read(raw)
	if args == nil {
		return []Line{{Text: Plain(raw), JSON: true}}
	}
	if len(args) == 0 {
		return []Line{{Text: "(no arguments)", JSON: true}}
	}
	change := edited(tool, args)
	for _, a := range args {
		text, isText := a.Text()
		sign := signs[tool+" "+a.Name]
		switch {
		case change != nil && a.Name == oldText:
			out = append(append(out, Line{Head: "change:"}), change...)
		case change != nil && a.Name == newText: // is in the change
		case len(elements(a.Value)) > 0:
			out = append(out, Line{Head: a.Name + ":"})
			for _, e := range elements(a.Value) {
				out = append(out, Line{Text: Plain(e), Inner: true, JSON: true})
			}
		case !isText, json.Valid([]byte(text)) && sign == 0: // tell the string "5" from the number 5
			out = append(out, Line{Head: a.Name + ": ", Text: Plain(a.Value), JSON: true})
		case strings.Contains(text, "\n"), sign != 0:
			out = append(out, Line{Head: a.Name + ":"})
			for l := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
				out = append(out, inner(l, sign))
			}
		default:
			out = append(out, Line{Head: a.Name + ": ", Text: text})
		}
	}
	return out
}
