package clients

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// yamlFile edits YAML by lines: yaya's entry is the first in the member that contains the
// servers.
type yamlFile struct{}

// textYAML is a document as lines with their line ends.
type textYAML struct {
	lines [][]byte
	nl    string
	key   *yaml.Node // of the servers; nil if there is none
	value *yaml.Node
}

func parseYAML(c Client, data []byte) (textYAML, error) {
	t := textYAML{lines: slices.Collect(bytes.Lines(data)), nl: "\n"}
	if bytes.Contains(data, []byte("\r\n")) {
		t.nl = "\r\n"
	}
	if bytes.ContainsAny(bytes.ReplaceAll(data, []byte("\r\n"), nil), "\r\u0085\u2028\u2029") {
		return t, fmt.Errorf("the file of %s uses line ends other than a newline; save it with newlines", c.Name)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return t, fmt.Errorf("the file of %s: %w", c.Name, err)
	}
	if len(doc.Content) == 0 {
		return t, nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return t, fmt.Errorf("the file of %s is not an object", c.Name)
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == c.top {
			t.key, t.value = root.Content[i], root.Content[i+1]
		}
	}
	if root.Style&yaml.FlowStyle != 0 || (t.value != nil && t.value.Style&yaml.FlowStyle != 0 && len(t.value.Content) > 0) {
		return t, fmt.Errorf("the file of %s has %q in braces or brackets; write it with one line per member, or add the entry by hand", c.Name, c.top)
	}
	return t, nil
}

// entry returns the first line of yaya's entry and the line after its end; -1 if there is none.
func (t textYAML) entry(c Client) (from, to int) {
	if t.value == nil {
		return -1, -1
	}
	at := -1
	switch {
	case c.list:
		for _, item := range t.value.Content {
			for i := 0; i+1 < len(item.Content); i += 2 {
				if item.Content[i].Value == "name" && item.Content[i+1].Value == servers.OwnName {
					at = item.Line - 1
				}
			}
		}
	default:
		for i := 0; i+1 < len(t.value.Content); i += 2 {
			if t.value.Content[i].Value == servers.OwnName {
				at = t.value.Content[i].Line - 1
			}
		}
	}
	if at < 0 {
		return -1, -1
	}
	depth := indentOf(t.lines[at])
	to = at + 1
	for i := at + 1; i < len(t.lines); i++ {
		if len(bytes.TrimSpace(t.lines[i])) == 0 {
			continue
		}
		if indentOf(t.lines[i]) <= depth {
			break
		}
		to = i + 1
	}
	return at, to
}

func indentOf(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " ")) }

// write writes the entry with an indentation.
func (t textYAML) write(c Client, m members, indent int) []byte {
	var b bytes.Buffer
	pad := strings.Repeat(" ", indent)
	inner := pad + "  "
	if c.list {
		fmt.Fprintf(&b, "%s- ", pad)
	} else {
		fmt.Fprintf(&b, "%s%s:%s", pad, servers.OwnName, t.nl)
	}
	for i, x := range m {
		if i > 0 || !c.list {
			b.WriteString(inner)
		}
		fmt.Fprintf(&b, "%s: %s%s", x.key, compact(x.value), t.nl)
	}
	return b.Bytes()
}

func (yamlFile) set(c Client, data []byte, m members) (out []byte, was, now string, err error) {
	t, err := parseYAML(c, data)
	if err != nil {
		return nil, "", "", err
	}
	join := func(from, to int, text []byte) []byte {
		return slices.Concat(bytes.Join(t.lines[:from], nil), text, bytes.Join(t.lines[to:], nil))
	}
	if from, to := t.entry(c); from >= 0 {
		text := t.write(c, m, indentOf(t.lines[from]))
		return join(from, to, text), string(bytes.Join(t.lines[from:to], nil)), string(text), nil
	}
	if t.key == nil {
		if n := len(t.lines); n > 0 && !bytes.HasSuffix(t.lines[n-1], []byte("\n")) {
			t.lines[n-1] = append(slices.Clone(t.lines[n-1]), t.nl...)
		}
		text := t.write(c, m, 2)
		return join(len(t.lines), len(t.lines), append([]byte(c.top+":"+t.nl), text...)), "", string(text), nil
	}
	indent := 2
	line := t.key.Line - 1
	switch {
	case len(t.value.Content) > 0 && c.list:
		indent = t.value.Column - 1
	case len(t.value.Content) > 0:
		indent = t.value.Content[0].Column - 1
	case t.value.Line == t.key.Line && t.value.Value+t.value.Tag != "!!null": // {} or []
		l := t.lines[line]
		at := min(t.value.Column-1, len(l))
		rest := bytes.TrimLeft(l[at:], "{}[]nul~")
		t.lines[line] = slices.Concat(bytes.TrimRight(l[:at], " "), rest)
	}
	if !bytes.HasSuffix(t.lines[line], []byte("\n")) {
		t.lines[line] = append(slices.Clone(t.lines[line]), t.nl...)
	}
	text := t.write(c, m, indent)
	return join(line+1, line+1, text), "", string(text), nil
}

func (yamlFile) unset(c Client, data []byte, empty bool) (out []byte, was string, err error) {
	t, err := parseYAML(c, data)
	if err != nil {
		return nil, "", err
	}
	from, to := t.entry(c)
	if from < 0 {
		return data, "", nil
	}
	was = string(bytes.Join(t.lines[from:to], nil))
	sole := len(t.value.Content) == 2
	if c.list {
		sole = len(t.value.Content) == 1
	}
	if sole && from == t.key.Line { // no lines between the member and the entry
		if from--; !empty {
			none := map[bool]string{false: "{}", true: "[]"}[c.list]
			t.lines[from] = []byte(string(bytes.TrimRight(t.lines[from], blank)) + " " + none + t.nl)
			from++
		}
	}
	return slices.Concat(bytes.Join(t.lines[:from], nil), bytes.Join(t.lines[to:], nil)), was, nil
}
