package mcpbridge_test

import (
	"testing"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

// form is a client that can be asked.
type form struct{ relay.Peer }

func (form) Capabilities() jsonrpc.Object {
	o, err := jsonrpc.ParseObject([]byte(`{"elicitation":{}}`))
	if err != nil {
		panic(err)
	}
	return o
}

// MIS-7: a rule that has a caller's call asked about is not answered by that caller,
// unless it may answer asks.
func TestOnlyWhoMayAnswerIsAsked(t *testing.T) {
	has := func(scope string) func(string) bool { return func(s string) bool { return s == scope } }
	for name, c := range map[string]struct {
		caller tool.Caller
		want   bool
	}{
		"the owner":                   {tool.LocalOwner, true},
		"a device that may answer":    {tool.Caller{Principal: "device:desk", Has: has("approvals:answer")}, true},
		"a device that may only call": {tool.Caller{Principal: "device:phone", Has: has("tools:call")}, false},
		"a token of the issuer":       {tool.Caller{Principal: "issuer:alice", Has: has("tools:call")}, false},
		"nobody":                      {tool.Caller{}, false},
	} {
		ask := mcpbridge.AskCaller(tool.Call{Args: []byte(`{}`), Caller: c.caller, Native: &tool.NativeCall{Protocol: "mcp", Peer: form{}}})
		if (ask != nil) != c.want {
			t.Errorf("%s: is asked: %v, want %v", name, ask != nil, c.want)
		}
	}
}
