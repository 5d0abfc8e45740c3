package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"unicode"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// evil is text that would do something to a terminal: a control sequence in its 8-bit
// form, text that runs the other way, marks that cannot be seen, DEL, a tag.
const evil = "a\u009b31m b\u202ec\u2066d\u200fe\u061cf\u2028g\u200bh\u007fi\U000e0041j é 😀"

// hostileServer is a server all of whose words are evil.
func hostileServer(t *testing.T) string {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: evil, Version: "1"}, &sdk.ServerOptions{Instructions: evil})
	s.AddTool(&sdk.Tool{Name: "say", Description: evil, InputSchema: map[string]any{"type": "object", "description": evil}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: evil}}, StructuredContent: map[string]any{"x": evil}}, nil
	})
	s.AddTool(&sdk.Tool{Name: "fail", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: evil}}}, nil
	})
	h := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(h.Close)
	return h.URL
}

// Y-143: what servers say does nothing to a terminal, as text and as JSON, in which
// nothing of it is lost.
func TestNothingReachesATerminalRaw(t *testing.T) {
	b := newBox(t)
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	config := b.config(map[string]any{
		"h":  map[string]any{"url": hostileServer(t)},
		"up": map[string]any{"command": "sh", "args": []string{"-c", `printf '%s\n' "$1" >&2; exec "$0"`, fixture, evil}},
		"no": map[string]any{"command": "sh", "args": []string{"-c", `printf '%s\n' "$0" >&2; exit 1`, evil}, "startup_timeout_sec": 2},
	})
	b.serve("--mcp-config", config)
	b.call("h__say", `{"x":"`+evil+`"}`)
	b.call("h__fail", `{}`)
	b.must("run", "--session", "s1", "say "+evil)
	eventually.True(t, "the calls are recorded", func() bool { return len(b.calls("").Calls) == 2 })
	follow := b.daemon("traffic", "-f", "--json")
	eventually.True(t, "traffic -f shows the calls", func() bool { return strings.Count(follow.said.String(), "\n") == 2 })
	b.set("plugin.evil.word", `"`+evil+`"`)
	for name, out := range map[string]string{"traffic -f --json": follow.said.String()} {
		terminalSafe(t, name, out)
	}
	for _, c := range []struct {
		command string
		whole   bool // all of the text is in its JSON
		fails   bool
	}{
		{command: "mcp list"}, {command: "mcp list --json"},
		{command: "mcp tools"}, {command: "mcp tools --json", whole: true},
		{command: "mcp get up"}, {command: "mcp get up --json", whole: true},
		{command: "mcp get no"}, {command: "mcp get no --json"},
		{command: "mcp logs up"}, {command: "mcp logs up --json", whole: true},
		{command: "mcp call h__say"}, {command: "mcp call h__say --json", whole: true},
		{command: "mcp call h__fail", fails: true}, {command: "mcp call h__fail --json", whole: true, fails: true},
		{command: "mcp approve"}, {command: "mcp approve --json"},
		{command: "traffic"}, {command: "traffic --json", whole: true},
		{command: "traffic show 1"}, {command: "traffic show 1 --json", whole: true},
		{command: "run --session s2 again"}, {command: "run --json --session s1 again"},
		{command: "session list"}, {command: "session list --json"},
		{command: "session show s1"}, {command: "session export s1", whole: true},
		{command: "config list"}, {command: "config list --json", whole: true},
		{command: "config get plugin.evil.word"}, {command: "config get plugin.evil.word --show"},
		{command: "audit"}, {command: "audit --json"},
		{command: "doctor", fails: true}, {command: "doctor --json", fails: true}, // a server has failed
	} {
		t.Run(c.command, func(t *testing.T) {
			out, err := b.run(strings.Fields(c.command)...)
			if (err != nil) != c.fails {
				t.Fatalf("%v\n%s", err, out)
			}
			terminalSafe(t, c.command, out)
			if !c.whole {
				return
			}
			found := false
			for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
				var v any
				if err := d.Decode(&v); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				found = found || holds(v, evil)
			}
			if !found {
				t.Errorf("the text is not in it as it was: %+q", out)
			}
		})
	}
}

// terminalSafe fails if a text would do something to a terminal.
func terminalSafe(t *testing.T, what, out string) {
	t.Helper()
	for _, r := range out {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			t.Errorf("%s prints %U: %+q", what, r, out)
			return
		}
	}
}

// holds reports whether a text is in a string of v.
func holds(v any, text string) bool {
	switch v := v.(type) {
	case string:
		var inner any
		return strings.Contains(v, text) || (strings.ContainsAny(v, `{["`) && json.Unmarshal([]byte(v), &inner) == nil && holds(inner, text))
	case []any:
		for _, x := range v {
			if holds(x, text) {
				return true
			}
		}
	case map[string]any:
		for _, x := range v {
			if holds(x, text) {
				return true
			}
		}
	}
	return false
}

// Y-143: nor does what is logged, on a terminal and elsewhere.
func TestNothingIsLoggedRaw(t *testing.T) {
	for name, w := range map[string]func(io.Writer) io.Writer{
		"for people": consoleLog,
		"as JSON":    func(w io.Writer) io.Writer { return plainLines{w} },
	} {
		var out bytes.Buffer
		l := zerolog.New(w(&out))
		l.Warn().Str("text", evil).Strs("list", []string{evil}).Err(errors.New(evil)).Any("object", map[string]any{"a": evil}).Msg("said: " + evil)
		got := regexp.MustCompile("\x1b\\[\\d+m").ReplaceAllString(out.String(), "") // its own colours
		if strings.Count(got, "é 😀") != 5 {
			t.Errorf("%s: not all of it is there: %q", name, got)
		}
		terminalSafe(t, name, got)
	}
}

// JSON for people and programs keeps its meaning, whatever is in it.
func TestPlainJSON(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"plain":               {`{"a":"é 😀 <b>"}`, `{"a":"é 😀 <b>"}`},
		"C1":                  {"\"\u009b\"", `"\u009b"`},
		"DEL":                 {"\"\u007f\"", `"\u007f"`},
		"the other way":       {"\"\u202e\"", `"\u202e"`},
		"beyond 16 bits":      {"\"\U000e0041\"", `"\udb40\udc41"`},
		"not UTF-8":           {"\"\x9b\"", `"\ufffd"`},
		"an escape before it": {"\"\\\\\u009b\"", `"\\\u009b"`},
		"returns between":     {"[1,\r\n2]", "[1,\n2]"},
	} {
		got := plainJSON([]byte(c.in))
		if string(got) != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		if !bytes.Equal(plainJSON(got), got) {
			t.Errorf("%s: %q changes when it is done again", name, got)
		}
	}
}
