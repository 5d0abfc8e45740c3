package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/yaya-ai/yaya/internal/fakellm"
)

// MIS-2: /compact in a chat has the history summarized by the model, which is told what to keep. The next
// prompt is shorter, and has the summary, the rules of the folder and the plan; a session without a history
// says that there is nothing to gain.
func TestCompactOnDemand(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	var mu sync.Mutex
	var prompts []string // the last is the newest
	var asked string     // for a summary
	model := fakellm.NewCaching(longWindow, func(p fakellm.Prompt) fakellm.Step {
		messages, err := p.Messages()
		if err != nil {
			return fakellm.Step{Status: http.StatusBadRequest, Text: err.Error()}
		}
		var all strings.Builder
		for _, m := range messages {
			all.WriteString(m.Content + "\n")
		}
		mu.Lock()
		defer mu.Unlock()
		if strings.HasPrefix(messages[0].Content, "Sum up the conversation") {
			asked = all.String()
			return fakellm.Step{Text: "Notes: the port is 4711."}
		}
		prompts = append(prompts, all.String())
		if len(prompts) == 1 {
			return fakellm.Step{ToolCalls: []fakellm.Call{{Name: "todo", Args: `{"steps":[{"text":"` + longPlan + `","state":"doing"}]}`}}}
		}
		return fakellm.Step{Text: fmt.Sprintf("answer %d", len(prompts))}
	})
	t.Cleanup(model.Close)
	b.provider(model)
	ws := b.workspace()
	if err := os.WriteFile(filepath.Join(ws, "AGENTS.md"), []byte(longRule+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.must("trust", "--yes", ws)
	b.serve()
	id, last := b.session(ws), ""
	say := func(text string) {
		t.Helper()
		if status, out := b.v1("POST", "/sessions/"+id+"/messages", fmt.Sprintf(`{"role":"user","parts":[{"type":"text","text":%q}]}`, text)); status != 202 {
			t.Fatalf("a message: got %d, %v, want status 202", status, out)
		}
		_, last = b.until(id, last, "turn_completed")
	}
	p := b.pty("chat", "--session", id)
	p.wait("idle")
	p.say("/compact")
	p.wait("the history is too short to gain from a summary")
	for n := range 4 {
		say(fmt.Sprintf("Message %d. %s", n, strings.Repeat("Words of it. ", 300)))
	}
	p.say("/compact the port")
	p.wait("the earlier conversation was summarized for the model")
	p.wait("the history has about")
	say("and now?")
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(asked, "keep above all:\nthe port") || !strings.Contains(asked, "Message 0.") {
		t.Errorf("the model of the summary was asked\n%.2000s\nwant it told to keep the port, and Message 0 in it", asked)
	}
	before, after := prompts[len(prompts)-2], prompts[len(prompts)-1]
	for _, want := range []string{"Notes: the port is 4711.", longRule, longPlan, "answer 5", "and now?"} {
		if !strings.Contains(after, want) {
			t.Errorf("the prompt after the summary lacks %q", want)
		}
	}
	if strings.Contains(after, "Message 0.") || len(after) > len(before)-6000 {
		t.Errorf("the prompt has %d bytes after %d, want it shorter, without Message 0", len(after), len(before))
	}
}
