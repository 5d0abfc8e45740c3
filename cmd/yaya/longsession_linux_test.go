package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/fakellm"
	"github.com/yaya-ai/yaya/internal/sse"
)

// The session that TestLongSession has.
const (
	longCalls  = 400    // of the model
	longTurns  = 20     // in which they are
	longWindow = 32_768 // tokens

	longRule = "Rule: the tests run with make check."
	longPlan = "Plan: the migration comes last."
)

// facts finds the sentences that the model says it knows. Its summaries keep only what users have said: rules of
// the folder and the plan have to be there without them.
var facts = regexp.MustCompile(`(Remember|Rule|Plan): [^.\n"]*\.`)

// longModel is a model that works through a long session: it reads a file with each call, and says
// at the end of a turn what it has been told to remember and still sees.
type longModel struct {
	mu               sync.Mutex
	calls, summaries int
	tokens           int // of all prompts, without those for summaries
	last             int // tokens of the last of them
	shorter          int // how often a prompt was shorter than the one before
	between, hits    int // tokens of the others, and those of them that came from the cache
	spoke            time.Time
}

func (m *longModel) answer(p fakellm.Prompt) fakellm.Step {
	m.mu.Lock()
	defer m.mu.Unlock()
	messages, err := p.Messages()
	if err != nil {
		return fakellm.Step{Status: http.StatusBadRequest, Text: err.Error()}
	}
	var known []string
	for _, msg := range messages {
		for _, f := range facts.FindAllString(msg.Content, -1) {
			if !slices.Contains(known, f) {
				known = append(known, f)
			}
		}
	}
	if strings.HasPrefix(messages[0].Content, "Sum up the conversation") {
		m.summaries++
		known = slices.DeleteFunc(known, func(f string) bool { return !strings.HasPrefix(f, "Remember") })
		return fakellm.Step{Text: "What was said: " + strings.Join(known, " ")}
	}
	m.tokens += p.Tokens
	if p.Tokens < m.last {
		m.shorter++
	} else if m.last > 0 {
		m.between, m.hits = m.between+p.Tokens, m.hits+p.Cached
	}
	m.last = p.Tokens
	n := m.calls
	m.calls++
	if n == 0 {
		return fakellm.Step{ToolCalls: []fakellm.Call{{Name: "todo", Args: `{"steps":[{"text":"` + longPlan + `","state":"doing"}]}`}}}
	}
	if per := longCalls / longTurns; n%per < per-1 {
		return fakellm.Step{ToolCalls: []fakellm.Call{{Name: "read_file", Args: fmt.Sprintf(`{"path":"f%d.txt"}`, n%50)}}}
	}
	return fakellm.Step{Text: strings.Join(known, " ") + fmt.Sprintf(" Turn %d is done.", n*longTurns/longCalls), Sent: func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.spoke = time.Now()
	}}
}

// S-57, MIS-2, MIS-4: a session of 400 calls in a window of 32k tokens ends. No request is too long, what
// the user wants remembered is known at the end, and between two compactions at least 90 % of the
// prompts' tokens come from the service's cache. With -v it shows the times, which docs/BENCHMARKS.md
// has of a quiet machine.
func TestLongSession(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	m := &longModel{}
	model := fakellm.NewCaching(longWindow, m.answer)
	t.Cleanup(model.Close)
	b.provider(model)
	b.must("config", "set", "providers.local.context_window", fmt.Sprint(longWindow))
	ws := filepath.Join(b.dir, "ws")
	if err := os.Mkdir(ws, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		var text strings.Builder
		for line := range 60 {
			fmt.Fprintf(&text, "file %d, line %d: %s\n", i, line, strings.Repeat("abcdefg ", 5))
		}
		if err := os.WriteFile(filepath.Join(ws, fmt.Sprintf("f%d.txt", i)), []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(ws, "AGENTS.md"), []byte(longRule+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.must("trust", "--yes", ws)
	cmd := b.serve()
	_, out := b.v1("POST", "/sessions", fmt.Sprintf(`{"workspace_path":%q}`, ws))
	id, _ := out["session_id"].(string)

	told := map[int]string{0: "Remember: the release is called Wombat.", 1: "Remember: nobody may touch the folder vendor.", 9: "Remember: the customer is Ada."}
	follow := b.follow(id)
	before := used(t, cmd.Process.Pid)
	begun := time.Now()
	var first []time.Duration
	for n := range longTurns {
		body := fmt.Sprintf(`{"role":"user","parts":[{"type":"text","text":%q}]}`, strings.TrimSpace(fmt.Sprintf("Turn %d: read on. %s", n, told[n])))
		if status, out := b.v1("POST", "/sessions/"+id+"/messages", body); status != 202 {
			t.Fatalf("turn %d: got %v, %v, want status 202", n, status, out)
		}
		heard := follow(t)
		m.mu.Lock()
		first = append(first, heard.Sub(m.spoke))
		m.mu.Unlock()
	}
	took, spent := time.Since(begun), used(t, cmd.Process.Pid)-before

	_, out = b.v1("GET", "/sessions/"+id+"/messages", "")
	raw, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	end, _, _ := strings.Cut(string(raw), "Turn 18 is done") // the newest come first
	for _, f := range append(slices.Collect(maps.Values(told)), longRule, longPlan) {
		if !strings.Contains(end, f) {
			t.Errorf("the last answer lacks %q, want it still known", f)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	share := 100 * float64(m.hits) / float64(max(m.between, 1))
	if m.calls != longCalls || model.Refused() > 0 || m.tokens < 2_000_000 || m.shorter < 10 || m.summaries < 5 || share < 90 {
		t.Errorf("got %d calls, %d refused, %d tokens, %d compactions, %d summaries, %.1f %% from the cache; want %d, none, 2 M, some and 90 %%", m.calls, model.Refused(), m.tokens, m.shorter, m.summaries, share, longCalls)
	}
	slices.Sort(first)
	t.Logf("%d calls, %d tokens of prompts, %d compactions with %d summaries; between them %.1f %% of %d tokens from the cache", m.calls, m.tokens, m.shorter, m.summaries, share, m.between)
	t.Logf("%.1f s; CPU of a call %.2f ms; first words after the model's: median %.2f ms, longest %.2f ms", took.Seconds(), spent.Seconds()*1000/longCalls, ms(first[len(first)/2]), ms(first[len(first)-1]))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// used returns the processor time of a process.
func used(t *testing.T, pid int) time.Duration {
	t.Helper()
	p, err := procfs.NewProc(pid)
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(s.CPUTime() * float64(time.Second))
}

// follow reads the events of a session. The function that it returns waits for the end of the next
// turn, and returns when the first words of its answer came.
func (b *box) follow(id string) func(t *testing.T) (first time.Time) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	b.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.addr+"/v1/sessions/"+id+"/events", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.authorize(req)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = resp.Body.Close() })
	events := sse.NewReader(resp.Body, 8<<20)
	return func(t *testing.T) (first time.Time) {
		t.Helper()
		late := time.AfterFunc(eventually.Limit, cancel)
		defer late.Stop()
		for {
			ev, err := events.Next()
			if err != nil {
				t.Fatalf("no turn_completed: %v", err)
			}
			switch ev.Name {
			case "model_output_delta":
				if first.IsZero() {
					first = time.Now()
				}
			case "turn_completed":
				return first
			case "turn_failed", "session_failed":
				t.Fatalf("the turn has failed: %s", ev.Data)
			}
		}
	}
}
