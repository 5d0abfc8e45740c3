package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/sse"
)

// comparedRequest is one request of the comparison.
type comparedRequest struct {
	method, params string
	mask           *regexp.Regexp // what differs from one answer to the next
}

// compared are the servers whose answers are compared, as they come directly and
// through yaya. The requests leave the servers unchanged. Another server is another row.
var compared = []struct {
	name, script string
	// command starts a server that npm does not have.
	command func(t *testing.T, node string) []string
	args    func(dir string) []string
	env     func(dir string) map[string]string
	ask     func(dir string) []comparedRequest
}{
	{
		name: "everything", script: "server-everything/dist/index.js",
		args: func(string) []string { return []string{"stdio"} },
		ask: func(string) []comparedRequest {
			at := regexp.MustCompile(`\d{1,2}:\d\d:\d\d( [AP]M)?`)
			return []comparedRequest{
				comparedCall("echo", `{"message":"hi – \u00e9 \ud83d\ude00"}`), comparedCall("get-sum", `{"a":1,"b":2.50}`), comparedCall("get-tiny-image", `{}`),
				comparedCall("get-annotated-message", `{"messageType":"error","includeImage":true}`), comparedCall("get-structured-content", `{"location":"New York"}`),
				comparedCall("get-resource-links", `{"count":3}`), {"tools/call", `{"name":"get-resource-reference","arguments":{"resourceType":"Text","resourceId":1}}`, at},
				comparedCall("get-sum", `{"a":"x"}`), // which it refuses
				{"prompts/get", `{"name":"simple-prompt"}`, nil}, {"prompts/get", `{"name":"args-prompt","arguments":{"city":"Paris"}}`, nil}, {"prompts/get", `{"name":"args-prompt"}`, nil},
				{"resources/read", `{"uri":"demo://resource/static/document/architecture.md"}`, nil}, {"resources/read", `{"uri":"demo://resource/dynamic/text/1"}`, at},
				{"resources/read", `{"uri":"demo://nowhere"}`, nil},
				{"completion/complete", `{"ref":{"type":"ref/prompt","name":"completable-prompt"},"argument":{"name":"department","value":"E"}}`, nil},
			}
		},
	},
	{
		name: "filesystem", script: "server-filesystem/dist/index.js",
		args: func(dir string) []string { return []string{filepath.Join(dir, "files")} },
		ask: func(dir string) []comparedRequest {
			path := func(name string) string { return string(jsonrpc.AppendString(nil, filepath.Join(dir, "files", name))) }
			return []comparedRequest{
				comparedCall("list_allowed_directories", `{}`), comparedCall("list_directory", `{"path":`+path(".")+`}`), comparedCall("directory_tree", `{"path":`+path(".")+`}`),
				comparedCall("read_text_file", `{"path":`+path("hello.txt")+`}`), comparedCall("read_media_file", `{"path":`+path("dot.png")+`}`),
				comparedCall("read_multiple_files", `{"paths":[`+path("hello.txt")+`,`+path("absent")+`]}`), comparedCall("read_text_file", `{"path":"/etc/passwd"}`),
				comparedCall("write_file", `{"path":`+path("written.txt")+`,"content":"\u0000 <&>"}`), comparedCall("edit_file", `{"path":`+path("hello.txt")+`,"edits":[{"oldText":"hello","newText":"bye"}],"dryRun":true}`),
				comparedCall("search_files", `{"path":`+path(".")+`,"pattern":"*.txt"}`),
				{"tools/call", `{"name":"get_file_info","arguments":{"path":` + path("hello.txt") + `}}`, regexp.MustCompile(`accessed: [^\\]*`)},
			}
		},
	},
	{
		name: "memory", script: "server-memory/dist/index.js",
		env: func(dir string) map[string]string {
			return map[string]string{"MEMORY_FILE_PATH": filepath.Join(dir, "memory.json")}
		},
		ask: func(string) []comparedRequest {
			return []comparedRequest{
				comparedCall("create_entities", `{"entities":[{"name":"Ada","entityType":"person","observations":["counts"]},{"name":"Bob","entityType":"person","observations":[]}]}`),
				comparedCall("create_relations", `{"relations":[{"from":"Ada","to":"Bob","relationType":"knows"}]}`), comparedCall("add_observations", `{"observations":[{"entityName":"Bob","contents":["sleeps"]}]}`),
				comparedCall("read_graph", `{}`), comparedCall("search_nodes", `{"query":"sleeps"}`), comparedCall("open_nodes", `{"names":["Ada"]}`), comparedCall("add_observations", `{"observations":[{"entityName":"nobody","contents":[]}]}`),
				comparedCall("delete_entities", `{"entityNames":["Ada","Bob"]}`), comparedCall("read_graph", `{}`),
			}
		},
	},
	{
		name: "thinking", script: "server-sequential-thinking/dist/index.js",
		ask: func(string) []comparedRequest {
			return []comparedRequest{
				comparedCall("sequentialthinking", `{"thoughtNumber":1}`), // which it refuses
			}
		},
	},
	{
		name: "time", command: func(t *testing.T, _ string) []string { return []string{python(t, "mcp-server-time")} },
		ask: func(string) []comparedRequest {
			now := regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+|[MTWFS][a-z]+day`)
			return []comparedRequest{
				{"tools/call", `{"name":"get_current_time","arguments":{"timezone":"Asia/Tokyo"}}`, now},
				{"tools/call", `{"name":"convert_time","arguments":{"source_timezone":"UTC","time":"12:30","target_timezone":"Asia/Tokyo"}}`, now},
				comparedCall("get_current_time", `{"timezone":"Nowhere"}`), comparedCall("convert_time", `{}`),
			}
		},
	},
	{
		name: "git", command: func(t *testing.T, _ string) []string { return []string{python(t, "mcp-server-git")} },
		ask: func(dir string) []comparedRequest {
			return []comparedRequest{comparedCall("git_status", `{"repo_path":`+string(jsonrpc.AppendString(nil, dir))+`}`), comparedCall("git_log", `{}`)}
		},
	},
	{name: "fetch", command: func(t *testing.T, _ string) []string { return []string{python(t, "mcp-server-fetch")} }, ask: func(string) []comparedRequest {
		return []comparedRequest{comparedCall("fetch", `{"url":"http://127.0.0.1:1/"}`), comparedCall("fetch", `{}`)}
	}},
	{name: "fastmcp", command: func(t *testing.T, _ string) []string {
		return []string{python(t, "python"), absolute(t, peersPython, "fast.py")}
	}, ask: func(string) []comparedRequest {
		return append(comparedSmall(), comparedCall("dot", `{}`), comparedCall("other_mounted", `{}`), comparedRequest{"resources/read", `{"uri":"fast://items/7"}`, nil}, comparedRequest{"prompts/get", `{"name":"greet","arguments":{"name":"Ada"}}`, nil})
	}},
	{name: "python", command: func(t *testing.T, _ string) []string {
		return []string{python(t, "python"), absolute(t, peersPython, "small.py")}
	}, ask: func(string) []comparedRequest { return comparedSmall() }},
	{name: "typescript1", command: func(t *testing.T, node string) []string {
		return []string{node, absolute(t, peersJS, "small-v1.mjs")}
	}, ask: func(string) []comparedRequest { return comparedSmall() }},
	{name: "typescript2", command: func(t *testing.T, node string) []string {
		return []string{node, absolute(t, peersJS, "small-v2.mjs")}
	}, ask: func(string) []comparedRequest { return comparedSmall() }},
	{name: "go", command: func(t *testing.T, _ string) []string {
		return []string{buildTool(t, "github.com/yaya-ai/yaya/internal/peers/smallgo")}
	}, ask: func(string) []comparedRequest { return comparedSmall() }},
	{name: "mcpgo", command: func(t *testing.T, _ string) []string {
		return []string{buildTool(t, "github.com/yaya-ai/yaya/internal/peers/smallmcpgo")}
	}, ask: func(string) []comparedRequest { return comparedSmall() }},
}

// comparedSmall are calls of the small servers.
func comparedSmall() []comparedRequest {
	return []comparedRequest{comparedCall("add", `{"a":2,"b":3}`), comparedCall("add", `{"a":"two"}`), comparedCall("steps", `{}`)}
}

func comparedCall(name, args string) comparedRequest {
	return comparedRequest{"tools/call", `{"name":"` + name + `","arguments":` + args + `}`, nil}
}

// comparedLists are compared entry by entry, in their order: a list of several pages has one
// page through yaya.
var comparedLists = []struct{ method, member string }{
	{"tools/list", "tools"}, {"prompts/list", "prompts"}, {"resources/list", "resources"}, {"resources/templates/list", "resourceTemplates"},
}

// entrance is a way to an MCP server: it sends one message, and returns the response if
// there is one.
type entrance func(msg []byte, method string) []byte

// FID-3, FID-8: a client gets the same answers through yaya as from the server itself,
// byte by byte, by every door and in both eras.
func TestAnswersAreTheServersOwn(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	for _, s := range compared {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			if err := os.MkdirAll(filepath.Join(b.dir, "files"), 0o700); err != nil {
				t.Fatal(err)
			}
			for name, content := range map[string]string{"hello.txt": "hello\nworld\n", "dot.png": "\x89PNG\r\n", "written.txt": "\x00 <&>"} {
				if err := os.WriteFile(filepath.Join(b.dir, "files", name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			command := []string{node}
			if s.command != nil {
				command = s.command(t, node)
			} else {
				command = append(command, peerPath(t, strings.Split(s.script, "/")...))
			}
			args := command[1:]
			if s.args != nil {
				args = append(args, s.args(b.dir)...)
			}
			server := map[string]any{"command": command[0], "args": args}
			env := os.Environ()
			if s.env != nil {
				server["env"] = s.env(b.dir)
				for k, v := range s.env(b.dir) {
					env = append(env, k+"="+v)
				}
			}
			config := b.config(map[string]any{s.name: server})
			pipe := func(env []string, command string, args ...string) entrance { return overPipe(t, env, command, args...) }
			home := b.environ()
			prefix := s.name + "__"
			through := b.args("mcp", "serve", "--mcp-config", config)

			direct := &comparison{t: t, name: "directly", door: pipe(env, command[0], args...)}
			direct.hello()
			alone := pipe(home, b.bin, through...)
			for _, c := range []*comparison{
				{t: t, name: "stdio, legacy", door: alone, again: func() entrance { return pipe(home, b.bin, through...) }, prefix: prefix}, {t: t, name: "stdio, modern", door: alone, modern: true, prefix: prefix},
			} {
				c.compare(direct, s.ask(b.dir))
			}
			b.serve("--mcp-config", config)
			shared := pipe(home, b.bin, through...)
			for _, c := range []*comparison{
				{t: t, name: "HTTP, legacy", door: overHTTP(t, b.url()), prefix: prefix}, {t: t, name: "HTTP, modern", door: overHTTP(t, b.url()), modern: true, prefix: prefix},
				{t: t, name: "stdio through the daemon, legacy", door: shared, prefix: prefix}, {t: t, name: "stdio through the daemon, modern", door: shared, modern: true, prefix: prefix},
			} {
				c.compare(direct, s.ask(b.dir))
			}
		})
	}
}

// comparison is a client that shows what it gets.
type comparison struct {
	t      *testing.T
	name   string
	door   entrance
	again  func() entrance // opens another door like it, if another one helps
	modern bool
	prefix string // of the names of tools and prompts, which is taken off again
	ids    int
	said   string // the instructions
}

// hello introduces a legacy client, with what yaya declares to a server that several
// share.
func (c *comparison) hello() {
	c.t.Helper()
	c.instructed(c.ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{"sampling":{},"elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"raw","version":"1"}}`))
	c.door([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), "notifications/initialized")
}

// instructed takes the instructions out of a handshake.
func (c *comparison) instructed(raw []byte) {
	c.t.Helper()
	obj, err := jsonrpc.ParseObject(raw)
	if err != nil {
		c.t.Fatalf("%s: the handshake has %s, %v; want an object", c.name, raw, err)
	}
	c.said, _ = obj.String("instructions")
}

func (c *comparison) compare(direct *comparison, all []comparedRequest) {
	c.t.Helper()
	if c.modern {
		c.instructed(c.ask("server/discover", `{}`))
	} else {
		c.hello()
	}
	// FID-7: under the server's name, with its headings below that.
	want := strings.ReplaceAll("\n"+direct.said, "\n# ", "\n## ")
	instructs := func() bool {
		return direct.said == "" || strings.Contains(c.said, "# MCP server "+strings.TrimSuffix(c.prefix, "__")+"\n\n"+strings.TrimSpace(want))
	}
	if c.again != nil && !instructs() {
		// A handshake waits two seconds for a server that starts, which are not enough on
		// a busy machine. The next one knows the instructions from this start.
		eventually.True(c.t, c.name+": the server is there", func() bool { return c.list("tools/list", "tools") != "" })
		c.door = c.again()
		c.hello()
	}
	if !instructs() {
		c.t.Errorf("%s: instructions: %s", c.name, differ(c.said, want))
	}
	for _, l := range comparedLists {
		var got, want string
		// A server may add to its lists after the handshake.
		for deadline := time.Now().Add(eventually.Limit); ; time.Sleep(100 * time.Millisecond) {
			got, want = c.list(l.method, l.member), direct.list(l.method, l.member)
			if got == want || time.Now().After(deadline) {
				break
			}
		}
		if got != want {
			c.t.Errorf("%s: %s: %s", c.name, l.method, differ(got, want))
		}
	}
	var results [][]byte
	for _, r := range all { // one after the other: they may share what they change
		results = append(results, direct.ask(r.method, r.params))
	}
	for i, r := range all {
		got := c.ask(r.method, r.params)
		if r.mask != nil {
			got, results[i] = r.mask.ReplaceAll(got, []byte("…")), r.mask.ReplaceAll(results[i], []byte("…"))
		}
		if !bytes.Equal(got, results[i]) {
			c.t.Errorf("%s: %s %s: %s", c.name, r.method, r.params, differ(string(got), string(results[i])))
		}
	}
}

// differ shows where two answers part.
func differ(got, want string) string {
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	around := func(s string) string { return s[max(0, min(at, len(s))-80):min(len(s), at+300)] }
	return fmt.Sprintf("from byte %d on\ngot  …%s\nwant …%s", at, around(got), around(want))
}

// list returns the entries of all pages, one a line.
func (c *comparison) list(method, member string) string {
	c.t.Helper()
	var out []string
	for cursor := ""; ; {
		params := `{}`
		if cursor != "" {
			params = `{"cursor":` + string(jsonrpc.AppendString(nil, cursor)) + `}`
		}
		raw := c.ask(method, params)
		if bytes.Contains(raw, []byte(`"code":-32601`)) {
			return "" // such as without prompts
		}
		obj, err := jsonrpc.ParseObject(raw)
		if err != nil {
			c.t.Fatalf("%s: %s = %s, %v; want an object", c.name, method, raw, err)
		}
		if entries := obj.Get(member); string(entries) != "[]" {
			parts, err := jsonrpc.Batch(entries)
			if err != nil {
				c.t.Fatalf("%s: %s = %s, %v; want a list", c.name, method, raw, err)
			}
			for _, p := range parts {
				e, err := jsonrpc.ParseObject(p)
				if err != nil {
					c.t.Fatal(err)
				}
				name, _ := e.String("name")
				own, its := strings.CutPrefix(name, c.prefix)
				switch template, _ := e.String("uriTemplate"); {
				case strings.HasPrefix(template, "yaya://"): // yaya's own
				case c.prefix == "" || strings.HasPrefix(method, "resources/"):
					out = append(out, string(p))
				case its: // a name without the prefix is yaya's own
					out = append(out, string(e.Append(nil, jsonrpc.Edit{Name: "name", Value: jsonrpc.AppendString(nil, own)})))
				}
			}
		}
		if cursor, _ = obj.String("nextCursor"); cursor == "" {
			return strings.Join(out, "\n")
		}
	}
}

// ask returns a result, or an error object, as it came; without what yaya's own hop adds
// to it in the modern era.
func (c *comparison) ask(method, params string) []byte {
	c.t.Helper()
	c.ids++
	if rest, ok := strings.CutPrefix(params, `{"name":"`); ok {
		params = `{"name":"` + c.prefix + rest
	}
	params = strings.Replace(params, `"type":"ref/prompt","name":"`, `"type":"ref/prompt","name":"`+c.prefix, 1)
	if c.modern {
		obj, err := jsonrpc.ParseObject([]byte(params))
		if err != nil {
			c.t.Fatal(err)
		}
		params = string(obj.Append(nil, jsonrpc.Edit{Name: "_meta", Value: []byte(`{"` + mcp.MetaKeyProtocolVersion + `":"2026-07-28","` + mcp.MetaKeyClientCapabilities + `":{}}`)}))
	}
	raw := c.door(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.ids, method, params), method)
	var msg jsonrpc.Message
	if err := msg.Parse(raw); err != nil {
		c.t.Fatalf("%s: %s = %.500s, %v; want a message", c.name, method, raw, err)
	}
	if msg.Err != nil {
		return bytes.Clone(msg.Err)
	}
	if !c.modern {
		return bytes.Clone(msg.Result.Raw())
	}
	var edits []jsonrpc.Edit
	for _, name := range []string{"resultType", "ttlMs", "cacheScope"} {
		edits = append(edits, jsonrpc.Edit{Name: name})
	}
	if bytes.Contains(msg.Result.Get("_meta"), []byte(`{"name":"yaya"`)) {
		edits = append(edits, jsonrpc.Edit{Name: "_meta"})
	}
	return msg.Result.Append(nil, edits...)
}

// overPipe starts a process that is spoken to a line at a time.
func overPipe(t *testing.T, env []string, command string, args ...string) entrance {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Env = env
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	said := new(output)
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // which ends it
		done := time.AfterFunc(eventually.Limit, cancel)
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		done.Stop()
		cancel()
		if t.Failed() {
			t.Logf("%s said:\n%s", command, said)
		}
	})
	lines := bufio.NewReaderSize(out, 1<<20)
	return func(msg []byte, _ string) []byte {
		t.Helper()
		if _, err := in.Write(append(bytes.Clone(msg), '\n')); err != nil {
			t.Fatalf("a message to %s: %v, want it written", command, err)
		}
		var sent jsonrpc.Message
		if err := sent.Parse(msg); err != nil || !sent.IsRequest() {
			return nil
		}
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				t.Fatalf("the answer of %s to %s: %v, want a line", command, msg, err)
			}
			if responds(&sent, line) {
				return bytes.TrimSpace(line)
			}
		}
	}
}

func responds(sent *jsonrpc.Message, raw []byte) bool {
	var msg jsonrpc.Message
	return msg.Parse(raw) == nil && msg.IsResponse() && bytes.Equal(msg.ID, sent.ID)
}

// overHTTP posts each message.
func overHTTP(t *testing.T, url string) entrance {
	session := ""
	return func(raw []byte, method string) []byte {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		var msg jsonrpc.Message
		if err := msg.Parse(raw); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(msg.Params.Get("_meta"), []byte("2026-07-28")) {
			req.Header.Set(mcp.HeaderProtocolVersion, "2026-07-28")
			req.Header.Set(mcp.HeaderMethod, method)
			if name, ok := mcp.ExtractHeaderName(mcp.MCPMethod(method), msg.Params.Raw()); ok {
				req.Header.Set(mcp.HeaderName, name)
			}
		} else if session != "" {
			req.Header.Set(mcp.HeaderSessionID, session)
		}
		resp, err := http.DefaultClient.Do(req) //nolint:forbidigo // test
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if id := resp.Header.Get(mcp.HeaderSessionID); id != "" {
			session = id
		}
		if !msg.IsRequest() {
			return nil
		}
		if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
			data, err := io.ReadAll(resp.Body) //nolint:forbidigo // test
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
		for r := sse.NewReader(resp.Body, 16<<20); ; {
			ev, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if responds(&msg, ev.Data) {
				return ev.Data
			}
		}
	}
}
