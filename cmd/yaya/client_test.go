package main

import (
	"strings"
	"testing"
)

// An entry is shown as if it stood by itself, wherever in a file it was.
func TestOutdented(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"JSON":             {"\"yaya\": {\r\n      \"args\": [\r\n        \"x\"\r\n      ]\r\n    }", "\"yaya\": {|  \"args\": [|    \"x\"|  ]|}"},
		"JSON on one line": {`"yaya": {"a": 1}`, `"yaya": {"a": 1}`},
		"TOML":             {"[mcp.yaya]\na = 1\n", "[mcp.yaya]|a = 1"},
		"YAML":             {"  yaya:\n    a: 1\n", "yaya:|  a: 1"},
		"YAML, a list":     {"- name: yaya\n  a: 1\n", "- name: yaya|  a: 1"},
		"none":             {"", ""},
	} {
		if got := strings.Join(outdented(c.in), "|"); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
