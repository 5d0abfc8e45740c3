package clients

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// tomlFile edits TOML, in which yaya's entry is a separate table. It does not find an entry in
// another form; the check of the result then fails.
type tomlFile struct{}

var header = lazyregexp.New(`^\s*\[`)

// ownHeader matches the header of yaya's table, and of those below it.
func ownHeader(c Client) *regexp.Regexp {
	return regexp.MustCompile(`^\s*\[\s*` + regexp.QuoteMeta(c.top) + `\s*\.\s*["']?` + servers.OwnName + `["']?\s*[.\]]`)
}

// table returns the begin and the end of yaya's table, without the blank lines and comments
// that precede the next one; -1 if there is none.
func table(c Client, data []byte) (start, end int) {
	own := ownHeader(c)
	start, pos := -1, 0
	inside := false
	for line := range bytes.Lines(data) {
		switch text := bytes.TrimSpace(line); {
		case own.Match(line):
			if start < 0 {
				start = pos
			}
			inside = true
			end = pos + len(line)
		case header().Match(line) && start >= 0:
			inside = false
		case inside && len(text) > 0 && text[0] != '#':
			end = pos + len(line)
		}
		pos += len(line)
	}
	return start, end
}

func (tomlFile) set(c Client, data []byte, m members) (out []byte, was, now string, err error) {
	nl := "\n"
	if bytes.Contains(data, []byte("\r\n")) {
		nl = "\r\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[%s.%s]%s", c.top, servers.OwnName, nl)
	for _, x := range m {
		b.WriteString(x.key + " = " + tomlValue(x.value) + nl)
	}
	now = b.String()
	if start, end := table(c, data); start >= 0 {
		return slices.Concat(data[:start], []byte(now), data[end:]), string(data[start:end]), now, nil
	}
	out = slices.Clone(data)
	if len(out) > 0 {
		if !bytes.HasSuffix(out, []byte("\n")) {
			out = append(out, nl...)
		}
		out = append(out, nl...)
	}
	return append(out, now...), "", now, nil
}

func tomlValue(v any) string {
	m, ok := v.(members)
	if !ok {
		return compact(v)
	}
	parts := make([]string, len(m))
	for i, x := range m {
		parts[i] = x.key + " = " + tomlValue(x.value)
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

func (tomlFile) unset(c Client, data []byte, _ bool) (out []byte, was string, err error) {
	start, end := table(c, data)
	if start < 0 {
		return nil, "", fmt.Errorf("the file of %s does not have the entry as a separate table; remove %q by hand", c.Name, servers.OwnName)
	}
	before := data[:start]
	if rest := bytes.TrimSuffix(bytes.TrimSuffix(before, []byte("\n")), []byte("\r")); len(rest) == 0 || bytes.HasSuffix(rest, []byte("\n")) {
		before = rest // the blank line between it and what precedes
	}
	return slices.Concat(before, data[end:]), string(data[start:end]), nil
}
