package sessions_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/sessions"
	"github.com/yaya-ai/yaya/internal/mention"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// library is servers that have what a test gives them.
type library struct {
	mu    sync.Mutex
	calls []string
	read  tool.Result
}

func (l *library) note(call tool.Call, what ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, fmt.Sprint(call.Caller.Principal, " ", call.Origin, " ", strings.Join(what, " ")))
}

func (l *library) Servers(_ context.Context, call tool.Call) []mention.Server {
	l.note(call, "servers")
	return []mention.Server{{Name: "docs", Resources: true, Prompts: true}}
}

func (l *library) Resources(_ context.Context, call tool.Call, server, prefix string) ([]mention.Resource, int, error) {
	l.note(call, "resources", server, prefix)
	switch server {
	case "gone":
		return nil, 0, fmt.Errorf("%w: gone", mention.ErrNoServer)
	case "mute":
		return nil, 0, context.DeadlineExceeded
	}
	return []mention.Resource{{URI: "doc://1"}}, 7, nil
}

func (l *library) Prompts(_ context.Context, call tool.Call, server, prefix string) ([]mention.Prompt, int, error) {
	l.note(call, "prompts", server, prefix)
	return []mention.Prompt{{Name: "sum", Arguments: []mention.Argument{{Name: "topic", Required: true}}}}, 0, nil
}

func (l *library) Read(_ context.Context, call tool.Call, server, uri string) tool.Result {
	l.note(call, "read", server, uri)
	return l.read
}

func (l *library) Prompt(_ context.Context, call tool.Call, server, name string, args map[string]string) tool.Result {
	l.note(call, "prompt", server, name, fmt.Sprint(args))
	return tool.OK("", tool.Text("sum up "+args["topic"]))
}

// MIS-5: a user adds resources and prompts of servers to messages. A resource is an attachment that
// models read as text, whatever it begins with; both need the right to approve.
func TestMentions(t *testing.T) {
	l := &library{read: tool.OK("", tool.Text("GIF89a of a server\n❤\ufe0f"))}
	w := newWorld(t, "", func(c *sessions.Config) { c.Servers = l })
	id := w.create()
	at := "/v1/sessions/" + id + "/servers"

	for path, want := range map[string]string{
		"":                             "map[servers:[map[name:docs prompts:true resources:true]]]",
		"/docs/resources?prefix=doc:/": "map[more:7 resources:[map[uri:doc://1]]]",
		"/docs/prompts":                "map[prompts:[map[arguments:[map[name:topic required:true]] name:sum]]]",
	} {
		if got := fmt.Sprint(w.must("GET", at+path, "", 200)); got != want {
			t.Errorf("GET %s = %s, want %s", path, got, want)
		}
	}
	w.refused("GET", at+"/gone/resources", "", 404, "not_found")
	w.refused("GET", at+"/mute/resources", "", 502, "server_failed")
	w.refused("GET", "/v1/sessions/sess_none/servers", "", 404, "not_found")
	w.refused("POST", at+"/docs/resources", `{"uri":""}`, 400, "bad_request")

	up := w.must("POST", at+"/docs/resources", `{"uri":"doc://1"}`, 201)
	if up["mime_type"] != "text/plain" {
		t.Errorf("the attachment is %v, want text/plain", up)
	}
	if up["name"] != "docs-1" {
		t.Errorf("the attachment is named %q, want the server and the last part of the URI", up["name"])
	}
	for uri, want := range map[string]string{"file:///a/features.md": "docs-features.md", `c:\\a\\b.txt`: "docs-c:-a-b.txt", "urn:x:y": "docs-urn:x:y"} {
		if got := w.must("POST", at+"/docs/resources", `{"uri":"`+uri+`"}`, 201)["name"]; got != want {
			t.Errorf("the attachment of %s is named %q, want %q", uri, got, want)
		}
	}
	ref := fmt.Sprint(up["ref"])
	_, raw, _ := w.raw("GET", "/v1/sessions/"+id+"/"+ref, "")
	if want := "The resource \"doc://1\" of the MCP server \"docs\":\nGIF89a of a server\n❤\ufe0f"; string(raw) != want {
		t.Errorf("the attachment has %q, want %q", raw, want)
	}
	w.must("POST", "/v1/sessions/"+id+"/messages", fmt.Sprintf(`{"role":"user","parts":[{"type":"text","text":"see"},{"type":"file","ref":%q,"name":"docs:doc://1"}]}`, ref), 202)
	if got := w.must("POST", at+"/docs/prompts", `{"name":"sum","arguments":{"topic":"cats"}}`, 200)["text"]; got != "sum up cats" {
		t.Errorf("the prompt is %q, want its text", got)
	}

	for kind, c := range map[tool.ErrorKind]struct {
		status int
		code   string
	}{tool.ErrNotFound: {404, "not_found"}, tool.ErrRejected: {403, "forbidden"}, tool.ErrTool: {502, "server_failed"}, tool.ErrTimeout: {502, "server_failed"}} {
		l.read = tool.Fail(kind, "why")
		w.refused("POST", at+"/docs/resources", `{"uri":"doc://1"}`, c.status, c.code)
		_, out := w.do("POST", at+"/docs/resources", `{"uri":"doc://1"}`)
		if got, want := out["error"].(map[string]any)["message"], `"doc://1" of the server "docs" cannot be read: why`; got != want {
			t.Errorf("the error is %q, want %q", got, want)
		}
	}
	if want := "owner api read docs doc://1"; l.calls[len(l.calls)-1] != want {
		t.Errorf("a read is made as %q, want %q", l.calls[len(l.calls)-1], want)
	}

	// Somebody who may not approve gets lists alone.
	n := len(l.calls)
	w.who = auth.Principal{Kind: auth.External, ID: "issuer|ada"}
	w.refused("POST", at+"/docs/resources", `{"uri":"doc://1"}`, http.StatusForbidden, "forbidden")
	w.refused("POST", at+"/docs/prompts", `{"name":"sum"}`, http.StatusForbidden, "forbidden")
	if len(l.calls) != n {
		t.Errorf("somebody who may not approve has had %q done, want nothing", l.calls[n:])
	}
	w.must("GET", at, "", 200)
}
