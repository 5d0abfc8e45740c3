package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/fakellm"
)

// MIS-3: when a model's service is unreachable, too busy or broken, the next of model.fallbacks answers
// for the rest of the turn. Nothing falls back after text was shown, or when the request is wrong.
func TestFallbacks(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(nil)
	gone.Close()
	look := fakellm.Step{ToolCalls: []fakellm.Call{{Name: "repo_tree", Args: `{}`}}}
	for _, tt := range []struct {
		name  string
		at    string // of the first model; "" for a service with the steps
		steps []fakellm.Step
		next  []fakellm.Step // of the second
		want  string         // that the turn ends with
		first int            // requests to the first
		asked string         // of the second
		told  string         // of the fallback
		again int            // retries of the first
	}{
		{
			name: "too busy for too long", steps: []fakellm.Step{{Status: 429, RetryAfter: "600", Text: "slow down"}},
			next: []fakellm.Step{look, {Text: "from the second"}}, want: "from the second", first: 1, asked: "model-2 model-2", told: "slow down",
		},
		{
			name: "broken after its retries", steps: []fakellm.Step{{Status: 529, RetryAfter: "0.01", Text: "overloaded"}},
			next: []fakellm.Step{{Text: "from the second"}}, want: "from the second", first: 4, asked: "model-2", told: "overloaded", again: 3,
		},
		{
			name: "broken in the second step", steps: []fakellm.Step{look, {Status: 503, RetryAfter: "600", Text: "down"}},
			next: []fakellm.Step{{Text: "from the second"}}, want: "from the second", first: 2, asked: "model-2", told: "down",
		},
		{name: "unreachable", at: gone.URL, next: []fakellm.Step{{Text: "from the second"}}, want: "from the second", asked: "model-2", told: "refused", again: 3},
		{
			name: "the second is broken, too", steps: []fakellm.Step{{Status: 500, RetryAfter: "600", Text: "broken"}},
			next: []fakellm.Step{{Status: 502, RetryAfter: "600", Text: "no gateway"}}, want: "before it, first/model-1 could not answer", first: 1, asked: "model-2", told: "broken",
		},
		{name: "a wrong request", steps: []fakellm.Step{{Status: 400, Text: "no such parameter"}}, want: "no such parameter", first: 1},
		{name: "no key", steps: []fakellm.Step{{Status: 401, Text: "no such key"}}, want: "no such key", first: 1},
		{name: "cut off in its text", steps: []fakellm.Step{{Text: "the beginning ", Cut: true}}, want: "the turn failed", first: 4},
		{name: "cut off once", steps: []fakellm.Step{{Text: "the beginning ", Cut: true}, {Text: "and the rest"}}, want: "and the rest", first: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			var first *fakellm.Server
			if tt.at == "" {
				first = fakeModel(t, tt.steps...)
				tt.at = first.URL
			}
			if tt.next == nil {
				tt.next = []fakellm.Step{{Text: "from the second"}}
			}
			second := fakeModel(t, tt.next...)
			b.must("provider", "add", "first", "--base-url", tt.at+"/v1", "--model", "model-1", "--use")
			b.must("provider", "add", "second", "--base-url", second.URL+"/v1", "--model", "model-2")
			b.must("config", "set", "model.fallbacks", `["nobody","first","second"]`) // who is not there, or has failed, is passed over
			out, err := b.run("run", "--json", "--session", "s1", "hi")
			if !strings.Contains(out, tt.want) || strings.Contains(out, "llm.call.fallback") != (tt.told != "") {
				t.Errorf("got %v, %s; want %q, and a fallback: %v", err, out, tt.want, tt.told != "")
			}
			if first != nil && len(first.Requests()) != tt.first {
				t.Errorf("the first model was asked %d times, want %d", len(first.Requests()), tt.first)
			}
			if got := askedFor(second); got != tt.asked {
				t.Errorf("the second was asked for %q, want %q", got, tt.asked)
			}
			if tt.told == "" {
				return
			}
			_, by := events(t, eventLines(out))
			if got := string(by["llm.call.fallback"][0]); !strings.Contains(got, `"failed":{"provider":"first","model":"model-1"},"next":{"provider":"second","model":"model-2"}`) || !strings.Contains(got, tt.told) {
				t.Errorf("the fallback is told as %s, want both models and the reason", got)
			}
			if got := len(by["llm.call.retry"]); got != tt.again {
				t.Errorf("%d retries are told, want %d", got, tt.again)
			}
		})
	}
}

// eventLines leaves out the lines that are not events.
func eventLines(out string) string {
	var kept []string
	for line := range strings.SplitSeq(out, "\n") {
		if strings.HasPrefix(line, "{") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// The turn after a fallback begins with the session's own model, and the cost is that of the model that
// has answered. People read of it in the conversation.
func TestAfterAFallback(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	first := fakeModel(t, fakellm.Step{Status: 503, RetryAfter: "0.01", Text: "hiccup"}, fakellm.Step{Status: 503, RetryAfter: "600", Text: "down"}, fakellm.Step{Text: "back again"})
	second := fakeModel(t, fakellm.Step{Text: "in its place"})
	b.must("provider", "add", "first", "--base-url", first.URL+"/v1", "--model", "model-1", "--use")
	b.must("provider", "add", "second", "--base-url", second.URL+"/v1", "--model", "model-2")
	b.must("config", "set", "model.fallbacks", `["second"]`)
	for at, price := range map[string]string{"first.input_price": "1000", "first.output_price": "1000", "second.input_price": "10", "second.output_price": "100"} {
		b.must("config", "set", "providers."+at, price)
	}
	ws := filepath.Join(b.dir, "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	b.serve()
	_, out := b.v1("POST", "/sessions", fmt.Sprintf(`{"workspace_path":%q}`, ws))
	id, _ := out["session_id"].(string)
	before, _ := b.answers(id, "one", "turn_completed")
	events, _ := b.until(id, before, "turn_completed")
	var told []string
	for _, ev := range events {
		if ev.Name == "model_retry" || ev.Name == "model_fallback" || ev.Name == "model_output_completed" {
			told = append(told, ev.Name)
		}
	}
	if got := strings.Join(told, " "); got != "model_retry model_fallback model_output_completed" {
		t.Errorf("clients are told %s, want the retry, the fallback and the answer", got)
	}
	_, st := b.v1("GET", "/sessions/"+id, "")
	if u, _ := st["usage"].(map[string]any); u["cost_usd"] != (10*100.0+100*7.0)/1e6 {
		t.Errorf("the session's usage is %v, want the price of the second model: %v", u, (10*100.0+100*7.0)/1e6)
	}
	b.answers(id, "two", "turn_completed")
	if len(first.Requests()) != 3 || len(second.Requests()) != 1 {
		t.Errorf("%d and %d requests, want the first model to answer the second turn", len(first.Requests()), len(second.Requests()))
	}
}
