package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// jsonFile edits JSON, with or without comments and trailing commas, in its text.
type jsonFile struct{}

// textJSON is a document and its layout.
type textJSON struct {
	data []byte
	root hujson.Value
	nl   string
	unit string // one level of indentation
}

var bom = []byte("\xef\xbb\xbf")

func parseJSON(data []byte) (textJSON, error) {
	t := textJSON{data: data, nl: "\n", unit: "  "}
	if bytes.Contains(data, []byte("\r\n")) {
		t.nl = "\r\n"
	}
	var err error
	if t.root, err = hujson.Parse(data); err != nil {
		return t, err
	}
	root, ok := t.root.Value.(*hujson.Object)
	if !ok {
		return t, fmt.Errorf("it is not an object")
	}
	if len(root.Members) > 0 {
		if indent, own := t.indentAt(root.Members[0].Name.StartOffset); own && indent != "" {
			t.unit = indent
		}
	}
	return t, nil
}

// indentAt returns the indentation of a position's line, and whether the line begins there.
func (t textJSON) indentAt(pos int) (indent string, begins bool) {
	line := t.data[bytes.LastIndexByte(t.data[:pos], '\n')+1 : pos]
	rest := bytes.TrimLeft(line, " \t")
	return string(line[:len(line)-len(rest)]), len(rest) == 0 && bytes.IndexByte(t.data[:pos], '\n') >= 0
}

// find returns the member of an object by name. Two members with one name are ambiguous.
func find(obj *hujson.Object, name string) (int, error) {
	at := -1
	for i, m := range obj.Members {
		if lit, ok := m.Name.Value.(hujson.Literal); ok && lit.String() == name {
			if at >= 0 {
				return 0, fmt.Errorf("it has %q twice; remove one of them", name)
			}
			at = i
		}
	}
	return at, nil
}

// commaAfter returns the position of the comma that follows a position, -1 if there is none.
func (t textJSON) commaAfter(pos int) int {
	for pos < len(t.data) {
		switch rest := t.data[pos:]; {
		case bytes.HasPrefix(rest, []byte("//")):
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				return -1
			}
			pos += end
		case bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest[2:], []byte("*/"))
			if end < 0 {
				return -1
			}
			pos += end + 4
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			pos++
		case rest[0] == ',':
			return pos
		default:
			return -1
		}
	}
	return -1
}

const blank = " \t\r\n"

// insert adds a member to the end of an object.
func (t textJSON) insert(v hujson.Value, key string, value any) []byte {
	obj := v.Value.(*hujson.Object) //nolint:forcetypeassert // the callers check it
	open, end := v.StartOffset, v.EndOffset-1
	last := open + 1 + len(bytes.TrimRight(t.data[open+1:end], blank))
	outer, _ := t.indentAt(open)
	indent, lines := outer+t.unit, true
	comma, trailing := -1, false
	if n := len(obj.Members); n > 0 {
		m := obj.Members[n-1]
		if own, begins := t.indentAt(m.Name.StartOffset); begins {
			indent = own
		} else {
			lines = bytes.IndexByte(t.data[open:end], '\n') >= 0
		}
		if trailing = t.commaAfter(m.Value.EndOffset) >= 0; !trailing {
			comma = m.Value.EndOffset
		}
	}
	in := " " + quote(key) + ": " + compact(value)
	if lines {
		in = t.nl + indent + quote(key) + ": " + render(value, indent, t.unit, t.nl)
	}
	if trailing {
		in += ","
	}
	if lines && bytes.IndexByte(t.data[last:end], '\n') < 0 {
		in += t.nl + outer
	}
	if comma >= 0 {
		return slices.Concat(t.data[:comma], []byte(","), t.data[comma:last], []byte(in), t.data[last:])
	}
	return slices.Concat(t.data[:last], []byte(in), t.data[last:])
}

// cut removes a member, with the whitespace before it and the comma that is no longer needed.
func (t textJSON) cut(v hujson.Value, i int) []byte {
	obj := v.Value.(*hujson.Object) //nolint:forcetypeassert // the callers check it
	m := obj.Members[i]
	start := len(bytes.TrimRight(t.data[:m.Name.StartOffset], blank))
	end := m.Value.EndOffset
	if c := t.commaAfter(end); c >= 0 {
		end = c + 1
	} else if i > 0 {
		c := t.commaAfter(obj.Members[i-1].Value.EndOffset)
		return slices.Concat(t.data[:c], t.data[c+1:start], t.data[end:])
	}
	if len(obj.Members) == 1 && len(bytes.Trim(t.data[v.StartOffset+1:start], blank))+len(bytes.Trim(t.data[end:v.EndOffset-1], blank)) == 0 {
		start, end = v.StartOffset+1, v.EndOffset-1
	}
	return slices.Concat(t.data[:start], t.data[end:])
}

func (f jsonFile) set(c Client, data []byte, m members) (out []byte, was, now string, err error) {
	data, hadBOM := bytes.CutPrefix(data, bom)
	defer func() {
		if hadBOM {
			out = slices.Concat(bom, out)
		}
	}()
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}\n")
	}
	t, err := parseJSON(data)
	if err != nil {
		return nil, "", "", fmt.Errorf("the file of %s: %w", c.Name, err)
	}
	root := t.root.Value.(*hujson.Object) //nolint:forcetypeassert // parseJSON checked it
	i, err := find(root, c.top)
	if err != nil {
		return nil, "", "", fmt.Errorf("the file of %s: %w", c.Name, err)
	}
	if i < 0 {
		return t.insert(t.root, c.top, members{{servers.OwnName, m}}), "", entryText(m), nil
	}
	top := root.Members[i].Value
	obj, ok := top.Value.(*hujson.Object)
	if !ok {
		return nil, "", "", fmt.Errorf("the file of %s: %q is not an object of servers", c.Name, c.top)
	}
	j, err := find(obj, servers.OwnName)
	if err != nil {
		return nil, "", "", fmt.Errorf("the file of %s: %w", c.Name, err)
	}
	if j < 0 {
		return t.insert(top, servers.OwnName, m), "", entryText(m), nil
	}
	v := obj.Members[j].Value
	indent, _ := t.indentAt(v.StartOffset)
	text := render(m, indent, t.unit, t.nl)
	if bytes.IndexByte(data[v.StartOffset:v.EndOffset], '\n') < 0 {
		text = compact(m)
	}
	was = quote(servers.OwnName) + ": " + string(data[v.StartOffset:v.EndOffset])
	return slices.Concat(data[:v.StartOffset], []byte(text), data[v.EndOffset:]), was, entryText(m), nil
}

func entryText(m members) string { return quote(servers.OwnName) + ": " + render(m, "", "  ", "\n") }

func (f jsonFile) unset(c Client, data []byte, empty bool) (out []byte, was string, err error) {
	data, hadBOM := bytes.CutPrefix(data, bom)
	defer func() {
		if hadBOM {
			out = slices.Concat(bom, out)
		}
	}()
	t, err := parseJSON(data)
	if err != nil {
		return nil, "", fmt.Errorf("the file of %s: %w", c.Name, err)
	}
	root := t.root.Value.(*hujson.Object) //nolint:forcetypeassert // parseJSON checked it
	i, err := find(root, c.top)
	if err != nil || i < 0 {
		return data, "", err
	}
	top := root.Members[i].Value
	obj, ok := top.Value.(*hujson.Object)
	if !ok {
		return data, "", nil
	}
	j, err := find(obj, servers.OwnName)
	if err != nil || j < 0 {
		return data, "", err
	}
	m := obj.Members[j]
	was = string(data[m.Name.StartOffset:m.Value.EndOffset])
	out = t.cut(top, j)
	if len(obj.Members) > 1 || !empty {
		return out, was, nil
	}
	// The object is empty; a comment in it keeps it.
	if t, err = parseJSON(out); err != nil {
		return nil, "", err
	}
	root = t.root.Value.(*hujson.Object) //nolint:forcetypeassert // as before
	top = root.Members[i].Value
	if len(bytes.Trim(out[top.StartOffset+1:top.EndOffset-1], blank)) > 0 {
		return out, was, nil
	}
	return t.cut(t.root, i), was, nil
}

func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // a string always can be
		return `""`
	}
	return strings.TrimSpace(b.String())
}

// compact writes a value on one line.
func compact(v any) string {
	switch v := v.(type) {
	case members:
		parts := make([]string, len(v))
		for i, m := range v {
			parts[i] = quote(m.key) + ": " + compact(m.value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []string:
		parts := make([]string, len(v))
		for i, s := range v {
			parts[i] = quote(s)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		return quote(v)
	}
	return fmt.Sprint(v)
}

// render writes a value, objects with a line for each member.
func render(v any, indent, unit, nl string) string {
	m, ok := v.(members)
	if !ok || len(m) == 0 {
		return compact(v)
	}
	var b strings.Builder
	b.WriteString("{")
	for i, x := range m {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(nl + indent + unit + quote(x.key) + ": " + render(x.value, indent+unit, unit, nl))
	}
	b.WriteString(nl + indent + "}")
	return b.String()
}
