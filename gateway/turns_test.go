package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// scrape returns the metrics as Prometheus reads them.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// OP-64: turns, model calls and tokens are counted as the bus announces them, by outcome.
func TestTurnsAreCounted(t *testing.T) {
	defer goleak.VerifyNone(t)
	b := bus.New(bus.Config{})
	m := NewMetrics()
	stop, err := m.Follow(b)
	if err != nil {
		t.Fatal(err)
	}
	k := b.Kernel()
	publish := func(_ event.Event, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, end := range []func(id string){
		func(id string) {
			publish(bus.Publish(k, event.TurnWasCompleted, "s", event.TurnCompleted{TurnID: id}))
		},
		func(id string) {
			publish(bus.Publish(k, event.TurnHasFailed, "s", event.TurnFailed{TurnID: id, Kind: "llm"}))
		},
		func(id string) {
			publish(bus.Publish(k, event.TurnWasCancelled, "s", event.TurnCancelled{TurnID: id}))
		},
		func(string) {}, // it goes on
	} {
		id := fmt.Sprint("turn", i)
		publish(bus.Publish(k, event.TurnWasStarted, "s", event.TurnStarted{TurnID: id}))
		end(id)
	}
	asked, err := bus.Publish(k, event.LLMCallRequest, "s", event.LLMRequest{Provider: "p", Model: "m"})
	publish(asked, err)
	publish(bus.Publish(k, event.LLMCallResponse, "s", event.LLMResponse{Usage: event.Usage{InputOther: 7, InputCacheRead: 5, Output: 3}, Request: event.Request{RequestID: asked.ID}}))
	asked, err = bus.Publish(k, event.LLMCallRequest, "s", event.LLMRequest{Provider: "p", Model: "m"})
	publish(asked, err)
	publish(bus.Publish(k, event.LLMCallError, "s", event.LLMError{Kind: event.LLMTimeout, Request: event.Request{RequestID: asked.ID}}))
	want := []string{
		`yaya_turns_total{outcome="completed"} 1`, `yaya_turns_total{outcome="failed"} 1`, `yaya_turns_total{outcome="cancelled"} 1`,
		`yaya_turns_running 1`, `yaya_turn_seconds_count 3`,
		`yaya_model_calls_total{model="m",outcome="ok",provider="p"} 1`, `yaya_model_calls_total{model="m",outcome="timeout",provider="p"} 1`,
		`yaya_model_call_seconds_count{model="m",provider="p"} 2`,
		`yaya_model_tokens_total{kind="input",model="m",provider="p"} 7`, `yaya_model_tokens_total{kind="cache_read",model="m",provider="p"} 5`,
		`yaya_model_tokens_total{kind="output",model="m",provider="p"} 3`,
	}
	eventually.True(t, "the metrics have every line", func() bool {
		text := scrape(t, m)
		for _, line := range want {
			if !strings.Contains(text, line+"\n") {
				return false
			}
		}
		return true
	})
	stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// OP-64: names from clients do not make the number of metrics grow without bound.
func TestModelsAreBounded(t *testing.T) {
	m := NewMetrics()
	turns := newTurns(m.reg)
	now := time.Unix(1, 0)
	for i := range 3 * maxModels {
		id := fmt.Sprint(i)
		turns.asked(id, model{"p", id}, now)
		turns.answered(id, "ok", now)
	}
	if n := strings.Count(scrape(t, m), "yaya_model_calls_total{"); n != maxModels+1 {
		t.Errorf("got %d models, want %d and other", n, maxModels)
	}
	for i := range 2 * maxPending {
		turns.asked(fmt.Sprint("unanswered", i), model{"p", "1"}, now)
	}
	if len(turns.pending) != maxPending {
		t.Errorf("%d model calls wait for their end, want %d at most", len(turns.pending), maxPending)
	}
}
