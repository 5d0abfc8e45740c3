package servers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tailscale/hujson"
)

// layout edits a document of JSON with comments in its syntax tree: everything else stays
// unchanged, byte for byte.
type layout struct {
	root hujson.Value
	bom  bool
	nl   string
	unit string // one level of indentation
}

var bom = []byte("\xef\xbb\xbf")

func parseLayout(data []byte) (*layout, error) {
	l := &layout{nl: "\n", unit: "  "}
	data, l.bom = bytes.CutPrefix(data, bom)
	if bytes.Contains(data, []byte("\r\n")) {
		l.nl = "\r\n"
	}
	var err error
	if l.root, err = hujson.Parse(bytes.Clone(data)); err != nil {
		return nil, syntaxError(err)
	}
	root, ok := l.root.Value.(*hujson.Object)
	if !ok {
		return nil, fmt.Errorf("it is not an object")
	}
	if len(root.Members) > 0 {
		if in, lines := indentation(root.Members[0].Name.BeforeExtra); lines && in != "" {
			l.unit = in
		}
	}
	return l, nil
}

func (l *layout) bytes() []byte {
	out := l.root.Pack()
	if l.bom {
		out = append(bytes.Clone(bom), out...)
	}
	return out
}

// object returns a member of an object that is itself an object.
func object(in *hujson.Object, name string) (*hujson.Object, bool) {
	i := member(in, name)
	if i < 0 {
		return nil, false
	}
	out, ok := in.Members[i].Value.Value.(*hujson.Object)
	return out, ok
}

// member returns the index of an object's member by its name, -1 if there is none.
func member(in *hujson.Object, name string) int {
	return slices.IndexFunc(in.Members, func(m hujson.ObjectMember) bool {
		lit, ok := m.Name.Value.(hujson.Literal)
		return ok && lit.String() == name
	})
}

// indentation returns the whitespace before a member, and whether the member begins a line.
func indentation(extra hujson.Extra) (in string, lines bool) {
	at := bytes.LastIndexByte(extra, '\n')
	rest := extra[at+1:]
	return string(rest[len(bytes.TrimRight(rest, " \t")):]), at >= 0
}

const blank = " \t\r\n"

// trailing returns the whitespace at the end of the text between members.
func trailing(extra hujson.Extra) []byte {
	return bytes.Clone(extra[len(bytes.TrimRight(extra, blank)):])
}

// set sets the value of an object's member, and adds a new member at the end. outer is the
// indentation of the object's own line.
func (l *layout) set(in *hujson.Object, outer, name string, value any) error {
	indent, lines := outer+l.unit, true
	if n := len(in.Members); n > 0 {
		if own, begins := indentation(in.Members[n-1].Name.BeforeExtra); begins {
			indent = own
		} else {
			lines = bytes.IndexByte(in.AfterExtra, '\n') >= 0
		}
	}
	text, err := unescaped(value)
	if err == nil && lines {
		var b bytes.Buffer
		if err = json.Indent(&b, text, indent, l.unit); err == nil {
			text = bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte(l.nl))
		}
	}
	if err != nil {
		return err
	}
	v, err := hujson.Parse(text)
	if err != nil {
		return err
	}
	if i := member(in, name); i >= 0 {
		in.Members[i].Value.Value = v.Value
		return nil
	}
	key, err := json.Marshal(name)
	if err != nil {
		return err
	}
	body, end := bytes.TrimRight(in.AfterExtra, blank), trailing(in.AfterExtra)
	before := slices.Concat(body, []byte(l.nl+indent))
	switch {
	case !lines && len(body) == 0: // otherwise a line comment would continue
		before = []byte(" ")
	case lines && bytes.IndexByte(end, '\n') < 0:
		end = []byte(l.nl + outer)
	}
	m := hujson.ObjectMember{Name: hujson.Value{BeforeExtra: before, Value: hujson.Literal(key)}, Value: hujson.Value{BeforeExtra: []byte(" "), Value: v.Value}}
	if n := len(in.Members); n > 0 && in.Members[n-1].Value.AfterExtra != nil { // the last is a comma
		m.Value.AfterExtra = []byte{}
	}
	in.Members = append(in.Members, m)
	in.AfterExtra = end
	return nil
}

// unescaped returns a value as people write it: json.Marshal adds escapes that only HTML needs.
func unescaped(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return bytes.TrimSpace(b.Bytes()), err
}
