package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/freeport"
)

var updateDocs = flag.Bool("update-docs", false, "write what is generated: the behaviour matrix of docs/MCP.md, docs/asyncapi.json, the types of the page")

// matrixServers are the servers behind yaya: every transport, in every era that
// it has.
var matrixServers = []struct{ name, title string }{
	{"sl", "stdio, legacy"}, {"sm", "stdio, modern"}, {"hl", "HTTP, legacy"}, {"hm", "HTTP, modern"}, {"ss", "HTTP+SSE"},
}

// capability is a row of the matrix. It is tried with one client against one
// server.
type capability struct {
	name string
	try  func(c *rawClient, server string) error
	// not says why the specification gives a client of an era nothing here.
	not func(modern bool) string
}

func want(got, expected string, err error) error {
	if err == nil && got != expected {
		return fmt.Errorf("got %q, want %q", got, expected)
	}
	return err
}

// wrong says what came instead of what was expected.
func wrong(what string, got any, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s: %v", what, got)
}

// says makes a row of a tool and what it says.
func says(tool, expected string) func(*rawClient, string) error {
	return func(c *rawClient, s string) error {
		got, err := c.text(s+"__"+tool, nil)
		return want(got, expected, err)
	}
}

// changes makes a row of a notification that follows on a call.
func changes(tool, note string) func(*rawClient, string) error {
	return func(c *rawClient, s string) error {
		from := c.mark()
		if _, err := c.text(s+"__"+tool, nil); err != nil {
			return err
		}
		return c.noted(from, func(m rawMessage) bool { return m.Method == note })
	}
}

var matrix = []capability{
	{name: "tools", try: func(c *rawClient, s string) error {
		got, err := c.text(s+"__echo", map[string]any{"text": "hi"})
		return want(got, "hi", err)
	}},
	{name: "errors with code and data", try: func(c *rawClient, s string) error {
		_, err := c.try("tools/call", map[string]any{"name": s + "__fail", "arguments": map[string]any{}})
		if err == nil || !strings.Contains(err.Error(), `as it was asked to (code -32099, data {"big":12345678901234567890})`) {
			return wrong("error", nil, err)
		}
		return nil
	}},
	{name: "progress", try: func(c *rawClient, s string) error {
		from := c.mark()
		if _, err := c.try("tools/call", map[string]any{"name": s + "__progress", "arguments": map[string]any{}, "_meta": map[string]any{"progressToken": "mine"}}); err != nil {
			return err
		}
		return c.noted(from, func(m rawMessage) bool {
			return m.Method == "notifications/progress" && m.Params["progressToken"] == "mine" && m.Params["progress"] == 3.0
		})
	}},
	{name: "logging", try: func(c *rawClient, s string) error {
		if !c.modern {
			if _, err := c.try("logging/setLevel", map[string]any{"level": "debug"}); err != nil {
				return err
			}
		}
		from := c.mark()
		if _, err := c.text(s+"__log", nil); err != nil {
			return err
		}
		return c.noted(from, func(m rawMessage) bool { return m.Method == "notifications/message" && m.Params["data"] == "a warning" })
	}},
	{name: "cancellation", try: func(c *rawClient, s string) error {
		before, err := c.text(s+"__cancelled", nil)
		if err != nil {
			return err
		}
		begun, err := c.text(s+"__waits", nil)
		if err != nil {
			return err
		}
		const id = "to-be-cancelled"
		ctx, cancel := context.WithCancel(context.WithValue(c.t.Context(), requestID{}, id))
		defer cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = c.request(ctx, "tools/call", map[string]any{"name": s + "__wait", "arguments": map[string]any{}})
		}()
		// The call has to be there before it can be cancelled.
		for deadline := time.Now().Add(eventually.Limit); ; time.Sleep(5 * time.Millisecond) {
			if now, err := c.text(s+"__waits", nil); err != nil {
				return err
			} else if now != begun {
				break
			}
			if time.Now().After(deadline) {
				return errors.New("the call does not begin")
			}
		}
		if c.modern {
			cancel() // the stream is closed
		} else if _, err := c.post(c.t.Context(), map[string]any{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": map[string]any{"requestId": id}}, "", ""); err != nil {
			return err
		}
		<-done
		for deadline := time.Now().Add(eventually.Limit); time.Now().Before(deadline); {
			if now, err := c.text(s+"__cancelled", nil); err != nil || now != before {
				return err
			}
			time.Sleep(50 * time.Millisecond)
		}
		return fmt.Errorf("the server did not learn of it")
	}},
	{name: "resources", try: func(c *rawClient, s string) error {
		r, err := c.try("resources/list", nil)
		if err != nil || !strings.Contains(fmt.Sprint(r), s+"://text") {
			return wrong("list", r, err)
		}
		r, err = c.try("resources/read", map[string]any{"uri": s + "://text"})
		if err != nil || !strings.Contains(fmt.Sprint(r), "content of "+s+"://text") {
			return wrong("read", r, err)
		}
		return nil
	}},
	{name: "resource templates", try: func(c *rawClient, s string) error {
		r, err := c.try("resources/templates/list", nil)
		if err != nil || !strings.Contains(fmt.Sprint(r), s+"://item/{id}") {
			return wrong("list", r, err)
		}
		r, err = c.try("resources/read", map[string]any{"uri": s + "://item/7"})
		if err != nil || !strings.Contains(fmt.Sprint(r), "content of "+s+"://item/7") {
			return wrong("read", r, err)
		}
		return nil
	}},
	{name: "resource subscriptions", try: func(c *rawClient, s string) error {
		if !c.modern { // a modern client has said so when it began to listen
			if _, err := c.try("resources/subscribe", map[string]any{"uri": s + "://text"}); err != nil {
				return err
			}
		}
		return changes("touch", "notifications/resources/updated")(c, s)
	}},
	{name: "prompts", try: func(c *rawClient, s string) error {
		r, err := c.try("prompts/list", nil)
		if err != nil || !strings.Contains(fmt.Sprint(r), s+"__greet") {
			return wrong("list", r, err)
		}
		r, err = c.try("prompts/get", map[string]any{"name": s + "__greet", "arguments": map[string]any{"name": "Ada"}})
		if err != nil || !strings.Contains(fmt.Sprint(r), "Hello Ada") {
			return wrong("get", r, err)
		}
		return nil
	}},
	{name: "completions", try: func(c *rawClient, s string) error {
		for _, ref := range []map[string]any{{"type": "ref/prompt", "name": s + "__greet"}, {"type": "ref/resource", "uri": s + "://item/{id}"}} {
			r, err := c.try("completion/complete", map[string]any{"ref": ref, "argument": map[string]any{"name": "name", "value": "A"}})
			if err != nil || !strings.Contains(fmt.Sprint(r), "[A… "+s+"]") {
				return wrong(fmt.Sprint(ref), r, err)
			}
		}
		return nil
	}},
	{name: "elicitation", try: says("elicit", "accept Ada")},
	{name: "sampling", try: says("sample", "pong")},
	{name: "roots", try: says("roots", "file:///r")},
	{name: "tools/list_changed", try: changes("change", "notifications/tools/list_changed")},
	{name: "prompts/list_changed", try: changes("change", "notifications/prompts/list_changed")},
	{name: "resources/list_changed", try: changes("change", "notifications/resources/list_changed")},
	{name: "ping", try: func(c *rawClient, _ string) error { _, err := c.try("ping", nil); return err },
		not: func(modern bool) string {
			if modern {
				return "–¹"
			}
			return ""
		}},
}

// Everything passes, between clients and servers of either era, over every
// transport: the matrix of docs/MCP.md is what this test has seen.
func TestMatrix(t *testing.T) {
	t.Parallel()
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	b := newBox(t)
	servers := map[string]any{}
	start := func(name string, flags ...string) string {
		addr := freeport.Addr(t)
		ctx, cancel := context.WithCancel(context.Background())
		cmd := exec.CommandContext(ctx, fixture, append([]string{"-name", name, flags[0], addr}, flags[1:]...)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cancel()
			_ = cmd.Wait()
		})
		waitFor(t, addr)
		return "http://" + addr
	}
	for _, s := range []struct {
		name string
		conf map[string]any
	}{
		{"sl", map[string]any{"command": fixture, "args": []string{"-name", "sl"}, "protocolEra": "legacy"}},
		{"sm", map[string]any{"command": fixture, "args": []string{"-name", "sm"}, "protocolEra": "modern"}},
		{"hl", map[string]any{"type": "http", "url": start("hl", "-http"), "protocolEra": "legacy"}},
		{"hm", map[string]any{"type": "http", "url": start("hm", "-http", "-modern"), "protocolEra": "modern"}},
		{"ss", map[string]any{"type": "sse", "url": start("ss", "-sse")}},
	} {
		s.conf["trust"] = "always" // its tools change as part of the test
		servers[s.name] = s.conf
	}
	b.serve("--mcp-config", b.config(servers))

	cells := map[string]string{}
	for _, modern := range []bool{false, true} {
		era := map[bool]string{false: "legacy", true: "modern"}[modern]
		for _, s := range matrixServers {
			for row, cell := range tryMatrix(t, s.name, modern, era+" client, "+s.title, newRawClient(t, b.url(), modern)) {
				cells[row+era+s.name] = cell
			}
		}
	}
	compareMatrix(t, cells)
}

// tryMatrix tries each capability with a client against a server, and returns the cells by row.
func tryMatrix(t *testing.T, server string, modern bool, title string, c *rawClient) map[string]string {
	t.Helper()
	if modern {
		c.listen(t.Context(), "POST", map[string]any{"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": map[string]any{
			"notifications": map[string]any{"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": []string{server + "://text"}},
			"_meta": map[string]any{
				"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": c.caps,
				"io.modelcontextprotocol/clientInfo": map[string]any{"name": "raw", "version": "1"},
			},
		}})
		if err := c.noted(0, func(m rawMessage) bool { return m.Method == "notifications/subscriptions/acknowledged" }); err != nil {
			t.Fatalf("%s: got %v, want the subscription to be acknowledged", title, err)
		}
	}
	cells := map[string]string{}
	for _, row := range matrix {
		cell := "✓"
		if row.not != nil && row.not(modern) != "" {
			cell = row.not(modern)
		} else if err := row.try(c, server); err != nil {
			t.Errorf("%s, %s: %v", row.name, title, err)
			cell = "✗"
		}
		cells[row.name] = cell
	}
	return cells
}

const (
	matrixBegin = "<!-- matrix: written by TestMatrix -->\n"
	matrixEnd   = "<!-- end of matrix -->\n"
)

// compareMatrix holds docs/MCP.md to what was seen.
func compareMatrix(t *testing.T, cells map[string]string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("| | legacy client |" + strings.Repeat(" |", len(matrixServers)-1) + " modern client |" + strings.Repeat(" |", len(matrixServers)-1) + "\n|---|" + strings.Repeat("---|", 2*len(matrixServers)) + "\n| **server** |")
	for range 2 {
		for _, s := range matrixServers {
			b.WriteString(" " + s.title + " |")
		}
	}
	b.WriteString("\n")
	for _, row := range matrix {
		b.WriteString("| " + row.name + " |")
		for _, era := range []string{"legacy", "modern"} {
			for _, s := range matrixServers {
				b.WriteString(" " + cells[row.name+era+s.name] + " |")
			}
		}
		b.WriteString("\n")
	}
	path := filepath.Join("..", "..", "docs", "MCP.md")
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(doc), matrixBegin)
	old, after, ok2 := strings.Cut(rest, matrixEnd)
	if !ok1 || !ok2 {
		t.Fatal("docs/MCP.md has no place for the matrix")
	}
	if old == b.String() {
		return
	}
	if !*updateDocs {
		t.Errorf("docs/MCP.md does not show what was seen; run go test ./cmd/yaya -run TestMatrix -update-docs\n%s", b.String())
		return
	}
	if err := os.WriteFile(path, []byte(before+matrixBegin+b.String()+matrixEnd+after), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Tasks (SEP-2663) pass through to clients that know them, and are followed for
// those that do not: a tool that only works as a task works for a legacy client.
func TestTasksForEverybody(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.serve("--mcp-config", b.config(map[string]any{"ts": map[string]any{"command": buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/taskserver")}}))
	tryTasks(t, b.url())
}

// tryTasks tries tasks of the server ts.
func tryTasks(t *testing.T, url string) {
	t.Helper()
	legacy := newRawClient(t, url, false)
	for tool, want := range map[string]string{"slow_compute": "computed for", "confirm_delete": "done", "multi_input": "done", "test_tool_with_task": "Hello, Ada", "greet": "Hello, !"} {
		if got, err := legacy.text("ts__"+tool, nil); err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q %v, want %v at its start", tool, got, err, want)
		}
	}
	if got, err := legacy.text("ts__failing_job", nil); err == nil || !strings.Contains(err.Error(), "it failed, as it always does") {
		t.Errorf("failing_job: %q %v", got, err)
	}
	if _, err := legacy.try("tools/call", map[string]any{"name": "ts__protocol_error_job", "arguments": map[string]any{}}); err == nil || !strings.Contains(err.Error(), "broken (code -32603") {
		t.Errorf("protocol_error_job: %v", err)
	}
	knows := newRawClient(t, url, true, func(c *rawClient) {
		c.caps["extensions"] = map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}}
	})
	r := knows.must("tools/call", map[string]any{"name": "ts__slow_compute", "arguments": map[string]any{"seconds": 30}})
	id, _ := r["taskId"].(string)
	if r["resultType"] != "task" || !strings.HasPrefix(id, "ts~") && !strings.HasPrefix(id, "ts@") { // of a node
		t.Fatalf("got %v, want a task with an id of ts", r)
	}
	if r := knows.must("tasks/get", map[string]any{"taskId": id}); r["status"] != "working" || r["taskId"] != id {
		t.Errorf("tasks/get = %v, want the task %s working", r, id)
	}
	knows.must("tasks/cancel", map[string]any{"taskId": id})
	if r := knows.must("tasks/get", map[string]any{"taskId": id}); r["status"] != "cancelled" {
		t.Errorf("tasks/get = %v, want the task %s cancelled", r, id)
	}
	for _, bad := range []string{"", "ts~nothing", "nobody~x", id[3:]} {
		if _, err := knows.try("tasks/get", map[string]any{"taskId": bad}); err == nil || !strings.Contains(err.Error(), "-32602") {
			t.Errorf(`%q: got %v, want an error, err with "-32602"`, bad, err)
		}
	}
	plain := newRawClient(t, url, true)
	if _, err := plain.try("tasks/get", map[string]any{"taskId": id}); err == nil || !strings.Contains(err.Error(), "-32021") {
		t.Errorf("without the extension: %v", err)
	}
}
