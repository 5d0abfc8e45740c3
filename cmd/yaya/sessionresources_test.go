package main

import (
	"fmt"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// MIS-6: sessions are resources, as text and bounded, for callers that may read sessions, through
// profiles that show them; changes are told.
func TestSessionResources(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.cwd = b.workspace()
	b.scenarios(callsFor("look", map[string]any{"name": "read_file", "args": map[string]any{"path": "a.txt"}}))
	b.must("config", "set", "plugin.mcp_bridge.profiles", `{"docs":{"servers":["docs"]}}`)
	b.serve()
	session := fmt.Sprintf(`{"workspace_path":%q,"title":"An \u001b[31modd\u202e one"}`, b.cwd)
	_, made := b.v1("POST", "/sessions", session)
	id := made["session_id"].(string)
	say := func(n, text string) {
		t.Helper()
		if status, out := b.v1("POST", "/sessions/"+id+"/messages", fmt.Sprintf(`{"role":"user","id":%q,"parts":[{"type":"text","text":%q}]}`, n, text)); status != 202 {
			t.Fatalf("a message: %d, %v; want 202", status, out)
		}
		b.settled(id, "active")
	}
	say("first", "look at a.txt")
	uri := "yaya://sessions/" + id
	for era, version := range taskEras {
		c := b.tasker(b.url(), version, nil, nil).s
		templates, err := c.ListResourceTemplates(t.Context(), nil)
		if err != nil || len(templates.ResourceTemplates) != 1 || templates.ResourceTemplates[0].URITemplate != "yaya://sessions/{id}" {
			t.Errorf("%s: templates are %v, %v; want that of sessions", era, templates, err)
		}
		list, err := c.ListResources(t.Context(), nil)
		if err != nil || len(list.Resources) != 1 || list.Resources[0].URI != uri || strings.ContainsAny(list.Resources[0].Title, "\x1b\u202e") {
			t.Errorf("%s: resources are %+v, %v; want the session with a plain title", era, list, err)
		}
		r, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil || len(r.Contents) != 1 || r.Contents[0].URI != uri {
			t.Fatalf("%s: read %v, %v; want the session", era, r, err)
		}
		for _, want := range []string{"Session " + id, b.cwd, "user:\nlook at a.txt\n", "call: read_file", "two", "assistant:\ndone\n"} {
			if !strings.Contains(r.Contents[0].Text, want) {
				t.Errorf("%s: the text is %q, want %q in it", era, r.Contents[0].Text, want)
			}
		}
		for _, other := range []string{"yaya://sessions/sess_0", "yaya://sessions/..%2f..%2fx", "yaya://sessions/", "yaya://sessions/kernel"} {
			if r, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: other}); err == nil {
				t.Errorf("%s: read of %s = %v, want an error", era, other, r)
			}
		}
	}
	// Only for those who may read sessions, and through profiles that show them.
	for name, c := range map[string]*sdk.ClientSession{
		"a token without the scope": b.tasker(b.url(), "", nil, withToken(b.lasting("plain"))).s,
		"a profile without them":    b.tasker(b.url()+"/docs", "", nil, nil).s,
	} {
		if list, err := c.ListResources(t.Context(), nil); err != nil || len(list.Resources) != 0 {
			t.Errorf("%s lists %v, %v; want nothing", name, list, err)
		}
		if list, err := c.ListResourceTemplates(t.Context(), nil); err != nil || len(list.ResourceTemplates) != 0 {
			t.Errorf("%s lists templates %v, %v; want nothing", name, list, err)
		}
		if r, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s reads %v, want an error", name, r)
		}
	}
	if r, err := b.tasker(b.url(), "", nil, withToken(b.lasting("reader", "--scope", "tools:call,sessions:read"))).s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err != nil {
		t.Errorf("a token with the scope reads %v, %v; want the session", r, err)
	}

	// Changes are told, to those who may read.
	legacy, modern := newRawClient(t, b.url(), false), newRawClient(t, b.url(), true)
	blind := newRawClient(t, b.url(), false, func(c *rawClient) { c.header = map[string][]string{"Authorization": {"Bearer " + b.lasting("blind")}} })
	legacy.must("resources/subscribe", map[string]any{"uri": uri})
	if r, err := blind.try("resources/subscribe", map[string]any{"uri": uri}); err == nil {
		t.Errorf("a client without the scope subscribes: %v, want an error", r)
	}
	modern.heard(uri)
	say("second", "hello")
	_, another := b.v1("POST", "/sessions", session)
	for name, c := range map[string]*rawClient{"legacy": legacy, "modern": modern} {
		if err := c.noted(0, func(m rawMessage) bool {
			return m.Method == "notifications/resources/updated" && m.Params["uri"] == uri
		}); err != nil {
			t.Errorf("%s: %v, want a notification about the message", name, err)
		}
		if err := c.noted(0, func(m rawMessage) bool { return m.Method == "notifications/resources/list_changed" }); err != nil {
			t.Errorf("%s: %v, want a notification about session %v", name, err, another)
		}
	}
	if n := blind.mark(); n != 0 {
		t.Errorf("a client without the scope was told %d things, want none", n)
	}
}
