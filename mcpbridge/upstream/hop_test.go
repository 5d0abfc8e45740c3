package upstream_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// said is a call with params and what of it arrives where.
func (r *rig) exchanged(c *client, name, params string) (result string, progress []string) {
	r.t.Helper()
	obj, err := jsonrpc.ParseObject([]byte(params))
	if err != nil {
		r.t.Fatal(err)
	}
	res := r.disp.Call(r.t.Context(), r.reg.Snapshot(), tool.Call{
		Caller: tool.LocalOwner, ID: "1", Name: name, SessionID: c.name, Origin: tool.OriginMCP,
		Native:   &tool.NativeCall{Protocol: "mcp", Params: obj, Peer: c},
		Progress: func(p tool.Progress) { progress = append(progress, string(p.Native)) },
	})
	return native(r.t, res), progress
}

// FID-8: members that belong to a hop never reach the other era, in either direction, in
// results, notifications and requests; all else of a message stays as it came.
func TestHopsDoNotLeak(t *testing.T) {
	const params = `{"name":"x","arguments":{"resultType":"mine"},"requestState":"s","inputResponses":{},"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"c"},"v/x":1}}`
	t.Run("legacy server", func(t *testing.T) {
		r := newRig(t)
		r.stdio("srv", "other-era")
		r.ready("srv")
		got, notes := r.exchanged(&client{name: "m", modern: true}, "srv__echo", params)
		if want := `{"content":[],"requestState":"s","_meta":{"v/x":1},"params":{"name":"echo","arguments":{"resultType":"mine"},"_meta":{"v/x":1,"progressToken":`; !strings.HasPrefix(got, want) {
			t.Errorf("a modern client gets %s, want %s…", got, want)
		}
		if len(notes) != 1 || strings.Contains(notes[0], "subscriptionId") || !strings.Contains(notes[0], `"v/x":1`) {
			t.Errorf("progress: %v", notes)
		}
		// In the client's own era the members mean nothing, and are the server's to use.
		got, _ = r.exchanged(&client{name: "l"}, "srv__echo", params)
		if !strings.HasPrefix(got, `{"content":[],"resultType":"input_required","requestState":"s","ttlMs":1,"cacheScope":"public","_meta":{"v/x":1},"params":`) || !strings.Contains(got, `"requestState":"s","inputResponses":{}`) {
			t.Errorf("a legacy client gets %s", got)
		}
	})
	t.Run("modern server", func(t *testing.T) {
		var sent map[string]any
		url, _ := modernServer(t, func(_ string, params map[string]any) string {
			sent = params
			return `{"resultType":"complete","ttlMs":5,"cacheScope":"public","contents":[],"messages":[],"content":[{"type":"text","text":"resultType"}],"structuredContent":{"ttlMs":1},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"inner"}}}`
		})
		r := newRig(t)
		p := r.add(servers.Server{Name: "srv", Transport: servers.HTTP, URL: url, Era: servers.EraModern})
		r.ready("srv")
		const plain = `{"contents":[],"messages":[],"content":[{"type":"text","text":"resultType"}],"structuredContent":{"ttlMs":1}}`
		if got, _ := r.exchanged(&client{name: "l"}, "srv__t", params); got != plain {
			t.Errorf("a legacy client gets %s, want %s", got, plain)
		}
		if raw, err := json.Marshal(sent); err != nil || strings.Contains(string(raw), "requestState") || strings.Contains(string(raw), "inputResponses") || strings.Contains(string(raw), `"name":"c"`) {
			t.Errorf("the server gets %s, %v", raw, err)
		}
		want := `{"resultType":"complete","ttlMs":5,"cacheScope":"public",` + strings.TrimPrefix(plain, "{")
		if got, _ := r.exchanged(&client{name: "m", modern: true}, "srv__t", params); got != want {
			t.Errorf("a modern client gets %s, want %s", got, want)
		}
		obj, err := jsonrpc.ParseObject([]byte(`{"uri":"u"}`))
		if err != nil {
			t.Fatal(err)
		}
		for _, method := range []string{"resources/read", "prompts/get", "completion/complete"} {
			reply, err := p.Relay(t.Context(), &client{name: "l"}, method, obj)
			if err != nil || string(reply.Result.Raw()) != plain {
				t.Errorf("%s: a legacy client gets %s, %v", method, reply.Result.Raw(), err)
			}
		}
	})
}

var _ relay.Peer = (*client)(nil)
