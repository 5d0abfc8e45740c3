package servers_test

import (
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Switching a server off and on changes one word of the file: comments, the order, the
// layout and what is written in other words stay.
func TestSetDisabled(t *testing.T) {
	for _, c := range []struct{ name, in, off, on string }{
		{"own lines", "{\n  \"mcpServers\": {\n    \"a\": {\n      // mine\n      \"command\": \"x\"\n    }\n  }\n}\n", "{\n  \"mcpServers\": {\n    \"a\": {\n      // mine\n      \"command\": \"x\",\n      \"disabled\": true\n    }\n  }\n}\n", ""},
		{"one line", `{"mcpServers": {"a": {"command": "x"}, "b":{"url":"y"}}}`, `{"mcpServers": {"a": {"command": "x", "disabled": true}, "b":{"url":"y"}}}`, ""},
		{"it is there", `{"mcpServers":{"a":{"disabled":false,"command":"x"}}}`, `{"mcpServers":{"a":{"disabled":true,"command":"x"}}}`, ""},
		{"it is called enabled", `{"mcpServers":{"a":{"enabled":true,"command":"x"}}}`, `{"mcpServers":{"a":{"enabled":false,"command":"x"}}}`, ""},
		{"both", `{"mcpServers":{"a":{"enabled":true,"disabled":false,"command":"x"}}}`, `{"mcpServers":{"a":{"enabled":false,"disabled":true,"command":"x"}}}`, ""},
		{"a trailing comma and a comment", "{\n\t\"mcpServers\": {\n\t\t\"a\": {\n\t\t\t\"command\": \"x\", // why\n\t\t},\n\t},\n}", "{\n\t\"mcpServers\": {\n\t\t\"a\": {\n\t\t\t\"command\": \"x\", // why\n\t\t\t\"disabled\": true,\n\t\t},\n\t},\n}", ""},
		{"a comment without a comma", "{\"mcpServers\": {\"a\": {\"command\": \"x\" // why\n}}}", "{\"mcpServers\": {\"a\": {\"command\": \"x\", // why\n  \"disabled\": true\n}}}", ""},
		{"carriage returns", "{\r\n  \"mcpServers\": {\r\n    \"a\": {\r\n      \"command\": \"x\"\r\n    }\r\n  }\r\n}\r\n", "{\r\n  \"mcpServers\": {\r\n    \"a\": {\r\n      \"command\": \"x\",\r\n      \"disabled\": true\r\n    }\r\n  }\r\n}\r\n", ""},
		{"a mark of the byte order", "\xef\xbb\xbf{\"mcpServers\":{\"a\":{\"command\":\"x\", \"disabled\":false}}}", "\xef\xbb\xbf{\"mcpServers\":{\"a\":{\"command\":\"x\", \"disabled\":true}}}", ""},
		{"an odd name", `{"mcpServers":{"a~/b":{},"a":{"command":"x","disabled":false}}}`, `{"mcpServers":{"a~/b":{},"a":{"command":"x","disabled":true}}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			off, found, err := servers.SetDisabled("f", []byte(c.in), "a", true)
			if err != nil || !found || string(off) != c.off {
				t.Fatalf("off: got found %v, %v\n%s\nwant\n%s", found, err, off, c.off)
			}
			on, _, err := servers.SetDisabled("f", off, "a", false)
			want := strings.Replace(strings.Replace(c.off, `disabled": true`, `disabled": false`, 1), `disabled":true`, `disabled":false`, 1)
			want = strings.Replace(want, `enabled":false`, `enabled":true`, 1)
			if err != nil || string(on) != want {
				t.Errorf("on: got %v\n%s\nwant\n%s", err, on, want)
			}
		})
	}
	if _, found, err := servers.SetDisabled("f", []byte(`{"mcpServers":{}}`), "a", true); found || err != nil {
		t.Errorf("a server that is not there: found %v, %v", found, err)
	}
	if _, _, err := servers.SetDisabled("f", []byte(`{"mcpServers":{"a":5}}`), "a", true); err == nil {
		t.Error("an entry that is not an object was switched")
	}
}

// Adding and removing servers keeps the layout of the file, and characters as they are.
func TestSetKeepsTheLayout(t *testing.T) {
	x := servers.Server{Name: "new", Transport: servers.Stdio, Command: "a & b"}
	for _, c := range []struct{ name, in, added, removed string }{
		{"nothing", "", "{\n  \"mcpServers\": {\n    \"new\": {\n      \"type\": \"stdio\",\n      \"command\": \"a & b\"\n    }\n  }\n}\n", ""},
		{"no servers", "{\n}\n", "{\n  \"mcpServers\": {\n    \"new\": {\n      \"type\": \"stdio\",\n      \"command\": \"a & b\"\n    }\n  }\n}\n", ""},
		{"tabs", "{\n\t\"mcpServers\": {\n\t\t\"a\":   {\"command\":\"x\"} // one\n\t}\n}\n", "{\n\t\"mcpServers\": {\n\t\t\"a\":   {\"command\":\"x\"}, // one\n\t\t\"new\": {\n\t\t\t\"type\": \"stdio\",\n\t\t\t\"command\": \"a & b\"\n\t\t}\n\t}\n}\n", "{\n\t\"mcpServers\": {\n\t\t\"a\":   {\"command\":\"x\"} // one\n\t}\n}\n"},
		{"one line", `{"mcpServers":{"a":{"command":"x"}}}`, `{"mcpServers":{"a":{"command":"x"}, "new": {"type":"stdio","command":"a & b"}}}`, `{"mcpServers":{"a":{"command":"x"}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := servers.Set("f", []byte(c.in), x)
			if err != nil || string(out) != c.added {
				t.Fatalf("added: got %v\n%s\nwant\n%s", err, out, c.added)
			}
			out, _, err = servers.Unset("f", out, "new")
			if c.removed != "" && (err != nil || string(out) != c.removed) {
				t.Errorf("removed: got %v\n%s\nwant\n%s", err, out, c.removed)
			}
		})
	}
}

// A syntax error names its place, and no package.
func TestSyntaxErrors(t *testing.T) {
	_, err := servers.Parse("mcp.json", []byte("{\n  \"mcpServers\": {,}\n}"), servers.FormatYaya)
	if err == nil || strings.Contains(err.Error(), "hujson") || strings.Count(err.Error(), "mcp.json") != 1 || !strings.Contains(err.Error(), "line 2, column 18") {
		t.Errorf("got %v, want the file once, and line 2, column 18", err)
	}
}
