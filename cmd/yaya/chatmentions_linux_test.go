package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/fakellm"
)

// hostileLibrary is an MCP server of a shell: resources with names that would act on a terminal, 10,000
// of them, a resource and a prompt that never come, and a resource with a text.
const hostileLibrary = `while read -r line; do
id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
case "$line" in
*'"initialize"'*) printf '%s\n' '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{},"prompts":{}},"serverInfo":{"name":"sh","version":"1"}}}' ;;
*'"resources/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"resources":[' "$id"
  printf '%s' '{"uri":"doc://guide","name":"The\u001b]0;owned\u0007 guide\u202e"},{"uri":"doc://\u001b[2J","name":"x"},'
  printf '{"uri":"long://'; head -c 8000 /dev/zero | tr '\0' y; printf '","name":"n"},'
  seq -f '{"uri":"many://%.0f","name":"n"},' 10000 | tr -d '\n'
  printf '%s\n' '{"uri":"doc://hang","name":"slow"}]}}' ;;
*'"resources/read"'*hang*) ;;
*'"resources/read"'*guide*) printf '%s\n' '{"jsonrpc":"2.0","id":'$id',"result":{"contents":[{"uri":"doc://guide","text":"forty-two \u001b[31mis the answer"}]}}' ;;
*'"prompts/list"'*) printf '%s\n' '{"jsonrpc":"2.0","id":'$id',"result":{"prompts":[{"name":"sum","description":"a\u001b[2Jb","arguments":[{"name":"topic","required":true}]}]}}' ;;
*'"prompts/get"'*) printf '%s\n' '{"jsonrpc":"2.0","id":'$id',"result":{"messages":[{"role":"user","content":{"type":"text","text":"Sum up the cats"}}]}}' ;;
*'"id"'*) printf '%s\n' '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no"}}' ;;
esac
done`

// requestOf returns the n-th request to a model.
func requestOf(t *testing.T, s *fakellm.Server, n int) string {
	t.Helper()
	eventually.True(t, fmt.Sprintf("the model is asked %d times", n), func() bool { return len(s.Requests()) >= n })
	raw, err := json.Marshal(s.Requests()[n-1])
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// USE-12, MIS-5: on a terminal, Tab completes servers, resources and prompts; the model gets the text of
// a resource that a message mentions, a prompt, and the output of the user's command. A hostile server
// does nothing to the terminal, and one that hangs is stopped with Esc.
func TestChatMentions(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.must("config", "set", "plugin.strategy_coder.auto_verify", "false")
	raw, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"docs": map[string]any{"command": "sh", "args": []string{"-c", hostileLibrary}},
		"bank": map[string]any{"command": "sh", "args": []string{"-c", hostileLibrary}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	b.edit("mcp.json", string(raw))
	b.must("config", "set", "approval.rules", `[{"provider":"bank","decision":"deny","origin":"loop"}]`)
	var steps []fakellm.Step
	for i := range 6 {
		steps = append(steps, fakellm.Step{Text: fmt.Sprint("answer ", i+1)})
	}
	s := fakellm.New(steps...)
	defer s.Close()
	b.provider(s)
	b.serve()
	ws := b.workspace()
	p := b.ptyWith([]string{"SHELL=/bin/sh"}, "chat", "--workspace", ws)
	p.wait("idle")
	eventually.True(t, "the servers are there", func() bool {
		ready := 0
		for _, s := range b.status().Servers {
			if s.State.Usable() {
				ready++
			}
		}
		return ready == 2
	})

	p.keys("read @do")
	p.keys("\t")
	p.wait("read @docs:")
	p.keys("\t")
	p.wait(`The\u{1b}]0;owned\u{7} guide\u{202e}`)
	p.keys("doc://g")
	p.keys("\t")
	p.wait("read @docs:doc://guide")
	p.keys("\r")
	p.wait("answer 1")
	if got := requestOf(t, s, 1); !strings.Contains(got, "forty-two") || !strings.Contains(got, "of the MCP server") || strings.Count(got, "[end of att_") != 2 {
		t.Errorf("the model got %s, want the text of the resource", got)
	}

	// Refused, and not lost.
	p.say("see @docs:doc://gone now")
	p.wait(`@docs:doc://gone: "doc://gone" of the server "docs" cannot be read`)
	p.wait("│ see @docs:doc://gone now")
	p.keys("\x15")
	p.say("see @docs:doc://hang")
	p.wait("Esc stops")
	p.keys("\x1b")
	p.wait("stopped; the message was not sent")
	p.wait("│ see @docs:doc://hang")
	p.keys("\x15")
	if n := len(s.Requests()); n != 1 {
		t.Errorf("the model was asked %d times, want once", n)
	}

	// A prompt.
	p.keys("/docs:s")
	p.keys("\t")
	p.wait("/docs:sum")
	p.keys("\r")
	p.wait("needs the argument topic")
	p.keys(" top")
	p.keys("\t")
	p.wait("/docs:sum topic=")
	p.keys(`"all cats"`)
	p.keys("\r")
	p.wait("answer 2")
	if got := requestOf(t, s, 2); !strings.Contains(got, `of the MCP server \"docs\":\nSum up the cats`) {
		t.Errorf("the model got %s, want the prompt", got)
	}

	// A command of the user's, in the folder.
	p.say(`!printf 'a \033[31mred %s\n' "$(cat a.txt | head -1)"; echo to-stderr >&2; (read x </dev/tty) 2>/dev/null || echo no-terminal; exit 3`)
	p.wait("└ exit status 3")
	p.wait("│ a red one")
	p.wait("│ to-stderr")
	p.wait("│ no-terminal")
	p.say("what was that?")
	p.wait("answer 3")
	if got := requestOf(t, s, 3); !strings.Contains(got, "a red one") || !strings.Contains(got, "to-stderr") || !strings.Contains(got, "(exit status 3)") {
		t.Errorf("the model got %s, want the output and the status of the command", got)
	}
	p.say("!echo $$ > pid.new; mv pid.new pid; sleep 1000")
	p.wait("Esc stops")
	eventually.True(t, "the command runs", func() bool { _, err := os.Stat(filepath.Join(ws, "pid")); return err == nil })
	p.keys("\x1b")
	p.wait("stopped by the user")

	// The server that a rule denies the agent has nothing for the user, either.
	p.say("hi @bank:doc://guide")
	p.wait(`no connected server "bank" has resources`)
	p.wait("│ hi @bank:doc://guide")
	p.keys("\x15")
	p.say("hi")
	p.wait("answer 4")
	if got := requestOf(t, s, 4); strings.Contains(got, `of the MCP server \"bank`) || !strings.Contains(got, "stopped by the user") {
		t.Errorf("the model got %s, want the end of the command, and one resource", got)
	}

	p.mu.Lock()
	out := p.out.String()
	p.mu.Unlock()
	for _, bad := range []string{"\x1b]0;owned", "\u202e", "\x1b[31mred"} {
		if strings.Contains(out, bad) {
			t.Errorf("the terminal got %q", bad)
		}
	}
	// The record of calls has the reads, made by the owner.
	if got := b.must("traffic", "--json"); !strings.Contains(got, `"resources/read"`) || !strings.Contains(got, `"prompts/get"`) {
		t.Errorf("the record of calls has %s, want the reads and the prompt", got)
	}
	p.keys("\x04")
	p.end()
}
