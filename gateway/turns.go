package gateway

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// Bounds of what is kept of turns and model calls.
const (
	maxModels  = 100  // models that are counted by name; others count as one
	maxPending = 4096 // turns, and model calls, whose end is awaited
)

// otherModel is the label of models beyond maxModels.
const otherModel = "other"

// turns counts turns and model calls, by the events of the bus.
type turns struct {
	turns   *prometheus.CounterVec
	took    prometheus.Histogram
	calls   *prometheus.CounterVec
	calling *prometheus.HistogramVec
	tokens  *prometheus.CounterVec

	mu      sync.Mutex
	running map[string]time.Time // turns, by id
	pending map[string]asking    // model calls, by the id of the request
	models  map[model]struct{}
}

// model is a model of a provider instance.
type model struct{ provider, name string }

// asking is a model call that has not ended.
type asking struct {
	model
	since time.Time
}

// long are the buckets of what takes seconds to minutes.
var long = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800}

func newTurns(reg prometheus.Registerer) *turns {
	t := &turns{
		turns:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "yaya_turns_total", Help: "Turns that have ended, by outcome."}, []string{"outcome"}),
		took:    prometheus.NewHistogram(prometheus.HistogramOpts{Name: "yaya_turn_seconds", Help: "Time of turns.", Buckets: long}),
		calls:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "yaya_model_calls_total", Help: "Model calls by provider instance, model and outcome."}, []string{"provider", "model", "outcome"}),
		calling: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "yaya_model_call_seconds", Help: "Time of model calls by provider instance and model, with their retries.", Buckets: long}, []string{"provider", "model"}),
		tokens:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "yaya_model_tokens_total", Help: "Tokens by provider instance, model and kind: input, cache_read, cache_write or output."}, []string{"provider", "model", "kind"}),
		running: map[string]time.Time{}, pending: map[string]asking{}, models: map[model]struct{}{},
	}
	for _, outcome := range []string{"completed", "failed", "cancelled"} {
		t.turns.WithLabelValues(outcome)
	}
	running := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "yaya_turns_running", Help: "Turns that run."}, func() float64 {
		t.mu.Lock()
		defer t.mu.Unlock()
		return float64(len(t.running))
	})
	reg.MustRegister(t.turns, t.took, t.calls, t.calling, t.tokens, running)
	return t
}

// Follow counts the turns and model calls that b announces, until stop is called. It is
// called once.
func (m *Metrics) Follow(b *bus.Bus) (stop func(), err error) {
	t := newTurns(m.reg)
	return bus.Keep(b, bus.SubscribeOptions{Name: "metrics", Limit: 16384}, []string{
		event.TurnWasStarted.Name(), event.TurnWasCompleted.Name(), event.TurnHasFailed.Name(), event.TurnWasCancelled.Name(),
		event.LLMCallRequest.Name(), event.LLMCallResponse.Name(), event.LLMCallError.Name(),
	}, t.take)
}

// take counts one event.
func (t *turns) take(_ context.Context, ev event.Event) error {
	switch p := ev.Payload.(type) {
	case event.TurnStarted:
		t.mu.Lock()
		defer t.mu.Unlock()
		if len(t.running) < maxPending {
			t.running[p.TurnID] = ev.Time
		}
	case event.TurnCompleted:
		t.ended(p.TurnID, "completed", ev.Time)
	case event.TurnFailed:
		t.ended(p.TurnID, "failed", ev.Time)
	case event.TurnCancelled:
		t.ended(p.TurnID, "cancelled", ev.Time)
	case event.LLMRequest:
		t.asked(ev.ID, model{p.Provider, p.Model}, ev.Time)
	case event.LLMResponse:
		if of, ok := t.answered(p.RequestID, "ok", ev.Time); ok {
			for kind, n := range map[string]int{"input": p.Usage.InputOther, "cache_read": p.Usage.InputCacheRead, "cache_write": p.Usage.InputCacheCreation, "output": p.Usage.Output} {
				t.tokens.WithLabelValues(of.provider, of.name, kind).Add(float64(max(n, 0)))
			}
		}
	case event.LLMError:
		t.answered(p.RequestID, string(p.EffectiveKind()), ev.Time)
	}
	return nil
}

func (t *turns) ended(id, outcome string, at time.Time) {
	t.mu.Lock()
	since, ok := t.running[id]
	delete(t.running, id)
	t.mu.Unlock()
	t.turns.WithLabelValues(outcome).Inc()
	if ok {
		t.took.Observe(max(at.Sub(since).Seconds(), 0))
	}
}

func (t *turns) asked(id string, of model, at time.Time) {
	of = model{cmp.Or(of.provider, "none"), cmp.Or(of.name, "default")}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.models[of]; !known && len(t.models) >= maxModels {
		of = model{otherModel, otherModel}
	}
	t.models[of] = struct{}{}
	if len(t.pending) < maxPending {
		t.pending[id] = asking{of, at}
	}
}

// answered counts the end of a model call; ok is false if its request is not known.
func (t *turns) answered(id, outcome string, at time.Time) (of model, ok bool) {
	t.mu.Lock()
	a, ok := t.pending[id]
	delete(t.pending, id)
	t.mu.Unlock()
	if !ok {
		return model{}, false
	}
	t.calls.WithLabelValues(a.provider, a.name, outcome).Inc()
	t.calling.WithLabelValues(a.provider, a.name).Observe(max(at.Sub(a.since).Seconds(), 0))
	return a.model, true
}
