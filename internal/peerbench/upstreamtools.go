//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// The tools of the upstream, in pages: the list ends on the last one.
const (
	pages   = 3
	perPage = 50
)

// fullTool has every member that a tool may have, and some that are unknown.
const fullTool = `{"name":"full","title":"Full title","description":"Has every field","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"$ref":"#/$defs/a"},"n":{"type":"integer","maximum":9}},"$defs":{"a":{"type":"string","enum":["x","y"]}},"anyOf":[{"required":["a"]},{"required":["n"]}],"additionalProperties":false,"x-vendor":{"k":[1,null]}},"outputSchema":{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]},"annotations":{"title":"Annotated","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false},"icons":[{"src":"data:image/png;base64,AAAA","mimeType":"image/png","sizes":["16x16"]}],"_meta":{"bench.example/kept":{"deep":[1,2,{"x":"y"}]}},"x-unknown":{"a":1}}`

// The results of "result" and "failed".
const (
	richResult   = `{"content":[{"type":"text","text":"rich","annotations":{"audience":["user"],"priority":0.5},"_meta":{"bench.example/part":1}},{"type":"resource_link","uri":"bench://text","name":"text","title":"Text","mimeType":"text/plain","size":12}],"structuredContent":{"rows":[{"id":1,"note":null},{"id":2,"note":"ü"}],"ok":true},"_meta":{"bench.example/trace":"t-1"}}`
	failedResult = `{"content":[{"type":"text","text":"the disk is full"}],"structuredContent":{"free":0},"isError":true}`
	errorData    = `{"retryAfter":30,"path":["a",1]}`
	numbersBack  = `{"big":12345678901234567890,"exact":0.1000000000000000055511151231257827,"huge":1e400}`
)

// simple is a tool that takes whatever it is given.
func simple(name string) string {
	return `{"name":"` + name + `","description":"Does ` + name + `","inputSchema":{"type":"object","additionalProperties":true}}`
}

// page is a page of tools/list.
func (u *upstream) page(cursor string) []byte {
	n, _ := strconv.Atoi(strings.TrimPrefix(cursor, "page-"))
	n = min(max(n, 0), pages-1)
	var tools []string
	if n == 0 {
		tools = append(tools, `{"name":"echo","description":"Returns its argument","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}`, fullTool)
		for _, name := range []string{"raw", "numbers", "result", "failed", "refuse", "progress", "wait", "counts", "log", "elicit", "sample", "change", "large", "crash"} {
			tools = append(tools, simple(name))
		}
	}
	for i := len(tools); i < perPage; i++ {
		tools = append(tools, simple(fmt.Sprintf("filler%dx%d", n, i)))
	}
	if n == 0 {
		u.mu.Lock()
		for i := range u.added {
			tools = append(tools, simple(fmt.Sprintf("added%d", i+1)))
		}
		u.mu.Unlock()
	}
	next := fmt.Sprintf(`,"nextCursor":"page-%d"`, n+1)
	if n == pages-1 {
		next = ""
	}
	body := `{"tools":[` + strings.Join(tools, ",") + `]` + next
	if u.modern {
		body += `,"resultType":"complete","ttlMs":0,"cacheScope":"private"`
	}
	return []byte(body + "}")
}

// said is a result of one text, given as a JSON string.
func said(text []byte) []byte {
	out := append(make([]byte, 0, len(text)+64), `{"content":[{"type":"text","text":`...)
	return append(append(out, text...), `}]}`...)
}

func saidText(text string) []byte { return said(jsonrpc.AppendString(nil, text)) }

// call runs a tool.
func (s *session) call(ctx context.Context, m *jsonrpc.Message, send func([]byte)) ([]byte, *jsonrpc.Error) {
	name, _ := m.Params.String("name")
	raw := m.Params.Get("arguments")
	if raw == nil {
		raw = []byte("{}")
	}
	args, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the arguments are not an object"}
	}
	switch name {
	case "echo":
		text := args.Get("text")
		if text == nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "echo needs text"}
		}
		if s.up.modern {
			return append(bytes.TrimSuffix(said(text), []byte("}")), `,"resultType":"complete"}`...), nil
		}
		return said(text), nil
	case "raw":
		return saidText(string(raw)), nil
	case "numbers":
		return []byte(`{"content":[{"type":"text","text":"numbers"}],"structuredContent":` + numbersBack + `}`), nil
	case "result":
		return []byte(richResult), nil
	case "failed":
		return []byte(failedResult), nil
	case "refuse":
		return nil, &jsonrpc.Error{Code: -32099, Message: "refused as asked", Data: []byte(errorData)}
	case "counts":
		return saidText(fmt.Sprintf("%d %d", s.up.waiting.Load(), s.up.ended.Load())), nil
	case "large":
		return saidText(largeText()), nil
	case "crash":
		s.up.crash()
	}
	if slow(m) {
		return s.callSlow(ctx, name, m, args, send)
	}
	return saidText("this is " + name), nil
}

// largeText is 1 MiB whose parts differ.
func largeText() string {
	var b strings.Builder
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "%07d ", i)
	}
	return b.String()[:1<<20]
}

func (s *session) callSlow(ctx context.Context, name string, m *jsonrpc.Message, args jsonrpc.Object, send func([]byte)) ([]byte, *jsonrpc.Error) {
	switch name {
	case "progress":
		text := args.Get("text")
		if text == nil {
			text = []byte(`"progress"`)
		}
		meta, err := jsonrpc.ParseObject(m.Params.Get("_meta"))
		if token := meta.Get("progressToken"); err == nil && token != nil {
			for i := range 3 {
				send(jsonrpc.AppendRequest(nil, nil, "notifications/progress", fmt.Appendf(nil, `{"progressToken":%s,"progress":%d,"total":3,"message":%s}`, token, i+1, text)))
			}
		}
		return said(text), nil
	case "wait":
		s.up.waiting.Add(1)
		ctx, cancel := context.WithTimeout(ctx, 2*bound)
		defer cancel()
		<-ctx.Done()
		if errors.Is(context.Cause(ctx), errCancelled) {
			s.up.ended.Add(1)
		}
		return saidText("waited"), nil
	case "log":
		send(jsonrpc.AppendRequest(nil, nil, "notifications/message", []byte(`{"level":"warning","logger":"upstream","data":{"text":"a warning"}}`)))
		return saidText("logged"), nil
	case "elicit":
		return saidText(string(s.ask(ctx, send, "elicitation/create", `{"message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}`))), nil
	case "sample":
		return saidText(string(s.ask(ctx, send, "sampling/createMessage", `{"maxTokens":10,"messages":[{"role":"user","content":{"type":"text","text":"ping"}}]}`))), nil
	}
	// change
	s.up.mu.Lock()
	s.up.added++
	all := make([]*session, 0, len(s.up.sessions))
	for _, one := range s.up.sessions {
		all = append(all, one)
	}
	s.up.mu.Unlock()
	for _, one := range all {
		one.tell(jsonrpc.AppendRequest(nil, nil, "notifications/tools/list_changed", nil))
	}
	return saidText("changed"), nil
}
