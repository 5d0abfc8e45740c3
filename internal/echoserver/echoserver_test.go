package echoserver

import (
	"bytes"
	"strings"
	"testing"
)

func TestServe(t *testing.T) {
	var out bytes.Buffer
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize"}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":"two","method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}
{"jsonrpc":"2.0","id":3,"method":"other"}
`)
	if err := Serve(in, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], `"tools":{}`) || !strings.Contains(lines[1], `"id":"two"`) || !strings.Contains(lines[1], `{\"text\":\"hello\"}`) || !strings.Contains(lines[2], "-32601") {
		t.Errorf("the answers are\n%s\nwant those to the three requests", out.String())
	}
	if err := Serve(strings.NewReader("no JSON\n"), &out); err == nil {
		t.Error("Serve() of a line without JSON = nil, want an error")
	}
}
