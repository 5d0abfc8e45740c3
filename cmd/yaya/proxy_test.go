package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// stdioClient talks to yaya mcp serve, line by line.
type stdioClient struct {
	t     *testing.T
	in    io.Writer
	lines chan string
}

func (b *box) stdioClient(args ...string) *stdioClient {
	b.t.Helper()
	cmd := exec.Command(b.bin, b.args(append([]string{"mcp", "serve"}, args...)...)...)
	cmd.Env = b.environ()
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	c := &stdioClient{b.t, in, make(chan string, 100)}
	go func() {
		defer close(c.lines)
		s := bufio.NewScanner(out)
		s.Buffer(nil, 16<<20)
		for s.Scan() {
			c.lines <- s.Text()
		}
	}()
	b.t.Cleanup(func() {
		_ = in.Close()
		for range c.lines {
		}
		_ = cmd.Wait()
	})
	return c
}

func (c *stdioClient) say(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, format+"\n", args...); err != nil {
		c.t.Fatal(err)
	}
}

// next returns the next message that is not a list change.
func (c *stdioClient) next() string {
	c.t.Helper()
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				c.t.Fatal("the connection has ended")
			}
			if !strings.Contains(line, "list_changed") {
				return line
			}
		case <-time.After(eventually.Limit):
			c.t.Fatal("nothing came")
		}
	}
}

// A client that starts yaya itself is asked like any other, whether yaya runs the
// servers in that process or passes the messages on to the daemon: questions,
// their answers, input_required, progress and log messages take the same way.
func TestQuestionsOverStdio(t *testing.T) {
	t.Parallel()
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	b := newBox(t)
	config := b.config(map[string]any{
		"old": map[string]any{"command": fixture, "protocolEra": "legacy"}, "new": map[string]any{"command": fixture, "protocolEra": "modern"},
	})
	b.serve("--mcp-config", config)
	for name, args := range map[string][]string{"daemon": nil, "own": {"--mcp-config", config}} {
		t.Run(name, func(t *testing.T) {
			c := b.stdioClient(args...)
			c.t = t
			c.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"x","version":"1"}}}`)
			if got := c.next(); !strings.Contains(got, `"protocolVersion":"2025-11-25"`) {
				t.Fatalf("got %v, want %q in it", got, `"protocolVersion":"2025-11-25"`)
			}
			c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			for i, server := range []string{"old", "new"} {
				c.say(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s__elicit","arguments":{}}}`, 10+i, server)
				var q struct {
					ID     json.RawMessage
					Method string
					Params struct{ Message string }
				}
				if line := c.next(); json.Unmarshal([]byte(line), &q) != nil || q.Method != "elicitation/create" || q.Params.Message != "["+server+"] Your name?" {
					t.Fatalf("%s: asked %s", server, line)
				}
				c.say(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"name":"Ada"}}}`, q.ID)
				if got := c.next(); !strings.Contains(got, "accept Ada") {
					t.Errorf(`%s: got %s, want "accept Ada" in it`, server, got)
				}
				c.say(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s__progress","arguments":{},"_meta":{"progressToken":"p"}}}`, 20+i, server)
				for n := 1; n <= 3; n++ {
					if got := c.next(); !strings.Contains(got, fmt.Sprintf(`"progress":%d`, n)) || !strings.Contains(got, `"progressToken":"p"`) {
						t.Errorf("%s: got %s, want %v in it, %q in it", server, got, fmt.Sprintf(`"progress":%d`, n), `"progressToken":"p"`)
					}
				}
				if got := c.next(); !strings.Contains(got, "done") {
					t.Errorf(`%s: got %s, want "done" in it`, server, got)
				}
				const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
				c.say(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s__elicit","arguments":{},%s}}`, 30+i, server, meta)
				var r struct {
					Result struct {
						ResultType, RequestState string
						InputRequests            map[string]json.RawMessage
					}
				}
				if line := c.next(); json.Unmarshal([]byte(line), &r) != nil || r.Result.ResultType != "input_required" || len(r.Result.InputRequests) != 1 {
					t.Fatalf("%s: got %s, want one question of the server", server, line)
				}
				for key := range r.Result.InputRequests {
					state, err := json.Marshal(r.Result.RequestState)
					if err != nil {
						t.Fatal(err)
					}
					c.say(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s__elicit","arguments":{},"inputResponses":{"%s":{"action":"accept","content":{"name":"Bob"}}},"requestState":%s,%s}}`, 40+i, server, key, state, meta)
				}
				if got := c.next(); !strings.Contains(got, "accept Bob") {
					t.Errorf(`%s: got %s, want "accept Bob" in it`, server, got)
				}
			}
		})
	}
}

// FID-3: a client's answer to a question comes through although it has sent a second
// large request before it, which waits for its turn.
func TestAnswersPassLargeRequests(t *testing.T) {
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	b := newBox(t)
	config := b.config(map[string]any{"old": map[string]any{"command": fixture, "protocolEra": "legacy"}})
	b.serve("--mcp-config", config)
	for name, args := range map[string][]string{"daemon": nil, "own": {"--mcp-config", config}} {
		t.Run(name, func(t *testing.T) {
			c := b.stdioClient(args...)
			c.t = t
			c.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"x","version":"1"}}}`)
			if got := c.next(); !strings.Contains(got, `"protocolVersion":"2025-11-25"`) {
				t.Fatalf("got %v, want %q in it", got, `"protocolVersion":"2025-11-25"`)
			}
			c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			large := func(id int) {
				c.say(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"old__elicit","arguments":{},"_meta":{"vendor/pad":"%s"}}}`, id, strings.Repeat("x", 2<<20))
			}
			var q struct {
				ID     json.RawMessage
				Method string
			}
			large(1)
			if line := c.next(); json.Unmarshal([]byte(line), &q) != nil || q.Method != "elicitation/create" {
				t.Fatalf("asked %.300s", line)
			}
			large(2) // it may ask before the first is answered
			c.say(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"name":"Ada"}}}`, q.ID)
			for answered := map[string]bool{}; len(answered) < 2; {
				line := c.next()
				var m struct {
					ID     json.RawMessage
					Method string
				}
				if err := json.Unmarshal([]byte(line), &m); err != nil {
					t.Fatal(err)
				}
				switch {
				case m.Method == "elicitation/create":
					c.say(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"name":"Ada"}}}`, m.ID)
				case strings.Contains(line, "accept Ada"):
					answered[string(m.ID)] = true
				default:
					t.Fatalf("got %.300s, want an answer or a question", line)
				}
			}
		})
	}
}

// A server may break the lines of what it says over HTTP; what reaches a client
// over stdio is one line a message, and says the same. UP-35: text that looks like a
// message or an event in a tool's result stays text.
func TestLinesOfServers(t *testing.T) {
	t.Parallel()
	const fake = `{"jsonrpc":"2.0","id":77,"result":{"content":[]}}`
	text, err := json.Marshal("data: x\n\nevent: message\ndata: " + fake + "\n" + fake + "\n")
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := map[string]string{
			"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`,
			"tools/list": "{\n \"tools\":\r\n [{\"name\":\"t\",\n\"inputSchema\":\r{\"type\":\"object\"},\"x\":\n" + fake + "\n}]}",
			"tools/call": "{\n\"content\": [\r\n{\"type\":\"text\",\"text\":" + string(text) + "}],\r\"x\":\n" + fake + "\n}",
		}[m.Method]
		w.Header().Set("Content-Type", "application/json")
		if result == "" {
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
			return
		}
		_, _ = fmt.Fprintf(w, "{\n\"jsonrpc\":\"2.0\",\n\"id\":%s,\n\"result\":%s}\n", m.ID, result)
	}))
	defer srv.Close()
	b := newBox(t)
	config := b.config(map[string]any{"s": map[string]any{"type": "http", "url": srv.URL + "/mcp", "protocolEra": "legacy"}})
	b.serve("--mcp-config", config)
	for name, args := range map[string][]string{"daemon": nil, "own": {"--mcp-config", config}} {
		t.Run(name, func(t *testing.T) {
			c := b.stdioClient(args...)
			c.t = t
			c.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
			c.next()
			c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			// DN-09: input that is not a message is answered, however long it is, and the next one works.
			for in, code := range map[string]int{`{"x":"` + strings.Repeat("y", 10<<20) + `"}`: -32600, "{": -32700, `{"a":1,"a":1}`: -32700, `[]`: -32600} {
				c.say("%s", in)
				if got := c.next(); !strings.Contains(got, fmt.Sprintf(`"code":%d`, code)) {
					t.Errorf("got %.20s: %s, want %v in it", in, got, fmt.Sprintf(`"code":%d`, code))
				}
			}
			// The client waits for the id that it has sent, whatever is wrong with its request.
			for what, arg := range map[string]string{
				"too large": `"` + strings.Repeat("y", 70<<20) + `"`, "not UTF-8": "\"\xff\"", "too deep": strings.Repeat("[", 300) + strings.Repeat("]", 300),
			} {
				c.say(`{"jsonrpc":"2.0","id":"a b","method":"tools/call","params":{"name":"s__t","arguments":{"x":%s}}}`, arg)
				if got := c.next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":"a b","error":`) || what == "too large" && !strings.Contains(got, "larger than 64 MiB") {
					t.Errorf("%s: got %s, want an error that names the id", what, got)
				}
			}
			var list struct {
				ID     int
				Result struct{ Tools []struct{ X json.RawMessage } }
			}
			c.say(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			if line := c.next(); json.Unmarshal([]byte(line), &list) != nil || list.ID != 1 || len(list.Result.Tools) < 2 || string(list.Result.Tools[1].X) != fake { // after read_artifact
				t.Errorf("listed %s", line)
			}
			for i, meta := range []string{"", `,"_meta":{"progressToken":1}`} { // as JSON, and perhaps as a stream
				var res struct {
					ID     int
					Result struct {
						Content []struct{ Text json.RawMessage }
						X       json.RawMessage
					}
				}
				c.say(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"s__t","arguments":{}%s}}`, 2+i, meta)
				line := c.next()
				if err := json.Unmarshal([]byte(line), &res); err != nil || res.ID != 2+i || len(res.Result.Content) != 1 || string(res.Result.Content[0].Text) != string(text) || string(res.Result.X) != fake {
					t.Errorf("called %s: %v", line, err)
				}
			}
		})
	}
}

// The daemon is killed while it calls a tool: the client of yaya mcp serve, and the command
// line, are told that the call may have taken effect.
func TestDaemonKilledDuringACall(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	begun := filepath.Join(b.dir, "begun")
	program := `while read -r line; do
id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
case "$line" in
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}' ;;
*'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}' ;;
*'"tools/call"'*) echo begun >> "$1" ;;
*'"id"'*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no"}}' ;;
esac
done
`
	config := b.config(map[string]any{"slow": map[string]any{"command": "sh", "args": []string{"-c", program, "sh", begun}}})
	daemon := b.serve("--mcp-config", config)
	c := b.stdioClient()
	c.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	c.next()
	c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow__t","arguments":{}}}`)
	said := make(chan string, 1)
	go func() {
		out, _ := b.run("mcp", "call", "slow__t")
		said <- out
	}()
	eventually.True(t, "both calls have begun", func() bool {
		raw, err := os.ReadFile(begun)
		return err == nil && strings.Count(string(raw), "begun") == 2
	})
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	const want = "the call may or may not have taken effect"
	if got := c.next(); !strings.Contains(got, `"id":1,"error":`) || !strings.Contains(got, want) {
		t.Errorf("the client is told %s, want an error with %q", got, want)
	}
	if out := <-said; !strings.Contains(out, want) {
		t.Errorf("yaya mcp call says %s, want %q", out, want)
	}
	eventually.True(t, "a call that does not leave is told so", func() bool { // the killed process takes a moment to be gone
		c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow__t","arguments":{}}}`)
		got := c.next()
		return strings.Contains(got, "cannot be reached") && !strings.Contains(got, want)
	})
}
