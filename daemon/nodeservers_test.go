package daemon

import (
	"encoding/base64"
	"net/http"
	"testing"

	"github.com/yaya-ai/yaya/kernel/tool"
)

// The node that runs a server knows the caller as the node knows it that passes the call on, limited
// to that server, and takes a call of nobody for nothing.
func TestVouched(t *testing.T) {
	of := func(h http.Header) (tool.Caller, bool) { return vouched(&http.Request{Header: h}, "db") }
	scopes := func(s string) bool { return s == "tools:call" }
	who, ok := of(vouch(tool.Caller{Principal: "agent:react", Behind: []string{"agent:coder"}, Has: scopes, Servers: []string{"db", "other"}}, tool.OriginLoop))
	if !ok || who.Principal != "agent:react" || len(who.Behind) != 1 || who.Via != tool.OriginLoop || !who.May("tools:call") || who.May("config:write") {
		t.Errorf("got %+v, %v, want the agent with its rights", who, ok)
	}
	if !who.Reaches("db") || who.Reaches("other") || who.Reaches("") {
		t.Error("it reaches more than the one server, want that alone")
	}
	if who, ok := of(vouch(tool.Caller{Principal: "server:db"}, tool.OriginMCP)); !ok || who.Reaches("db") {
		t.Errorf("a server reaches itself: %+v, %v", who, ok)
	}
	for _, text := range []string{"", "{", `{"principal":"","origin":"mcp"}`, `{"principal":"owner"}`, `{"principal":"somebody","origin":"mcp"}`, `{"principal":"owner","origin":"node"}`, `{"principal":"owner","behind":[""],"origin":"mcp"}`, `{"principal":"*","origin":"mcp"}`} {
		h := http.Header{callHeader: {base64.StdEncoding.EncodeToString([]byte(text))}}
		if who, ok := of(h); ok {
			t.Errorf("%s: got %+v, want it refused", text, who)
		}
	}
	if _, ok := of(http.Header{callHeader: {"?"}}); ok {
		t.Error("what is not base64 was taken for a caller")
	}
}
