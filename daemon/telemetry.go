package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/telemetry"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// otelEndpoint is the setting that says where telemetry goes.
const otelEndpoint = "otel.endpoint"

// otelSetting refuses an endpoint that cannot be one.
func otelSetting(key string, v json.RawMessage) error {
	if key != otelEndpoint {
		return nil
	}
	var endpoint string
	err := json.Unmarshal(v, &endpoint)
	if err == nil {
		err = telemetry.CheckEndpoint(endpoint)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// openTelemetry begins to send traces and metrics, if a daemon has somewhere to send them. An
// error is logged: it keeps no daemon from starting.
func (c *core) openTelemetry(ctx context.Context) error {
	at := c.st.at
	cfg := telemetry.Config{Endpoint: at.settings.Text(otelEndpoint), Env: os.Getenv, Version: Version(), Metrics: c.metrics.Gatherer()}
	if c.st.controlPlane == nil {
		c.unsent = cfg.Check() // doctor says what a daemon with these variables would do
		return nil
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS"} {
		at.secrets.Learn(headerValues(os.Getenv(name))...)
	}
	failed := at.log.Sample(&zerolog.BurstSampler{Burst: 1, Period: time.Minute})
	cfg.Instance = c.st.controlPlane.kernel
	cfg.Failed = func(err error) { failed.Warn().Err(err).Msg("telemetry could not be sent") }
	var err error
	if c.telemetry, err = telemetry.Open(ctx, cfg); err != nil {
		c.unsent = err
		at.log.Error().Err(err).Msg("no telemetry is sent")
		return nil
	}
	if c.telemetry == nil {
		return nil
	}
	c.ends.add(func() { c.telemetry.Close(ctx) })
	w := &watched{t: c.telemetry, agent: func(session string) string { return c.kernel.Loop.StrategyOf(session) }, open: map[string]begun{}}
	stop, err := bus.Keep(c.kernel.Bus, bus.SubscribeOptions{Name: "telemetry", Limit: 16384}, []string{
		event.TurnWasStarted.Name(), event.TurnWasCompleted.Name(), event.TurnHasFailed.Name(), event.TurnWasCancelled.Name(),
		event.LLMCallRequest.Name(), event.LLMCallResponse.Name(), event.LLMCallError.Name(),
		event.ToolCallRequest.Name(), event.ToolCallResult.Name(), event.ToolCallError.Name(),
	}, w.take)
	if err != nil {
		return err
	}
	c.ends.add(stop)
	return nil
}

// unsentDiagnosis says why telemetry goes nowhere that should be sent.
func (c *core) unsentDiagnosis() (plugin.Diagnosis, bool) {
	if c.unsent == nil {
		return plugin.Diagnosis{}, false
	}
	return plugin.Diagnosis{Plugin: checkTelemetry, HealthReport: plugin.HealthReport{
		Status: plugin.Degraded, Summary: fmt.Sprintf("no telemetry is sent: %v; correct it, and restart yaya", c.unsent),
	}}, true
}

// headerValues returns the values of OTEL_EXPORTER_OTLP_HEADERS, which are k=v,k=v with
// percent-encoded values: credentials, most of them.
func headerValues(list string) (out []string) {
	for pair := range strings.SplitSeq(list, ",") {
		_, v, _ := strings.Cut(pair, "=")
		if v, err := url.PathUnescape(strings.TrimSpace(v)); err == nil && v != "" {
			out = append(out, v)
		}
	}
	return out
}

// maxBegun bounds the turns and calls whose end is awaited.
const maxBegun = 4096

// begun is a turn, a model call or a tool call that has not ended.
type begun struct {
	at                  time.Time
	session, turn, name string
	call, provider      string
}

// watched tells telemetry of turns, by the events of the bus.
type watched struct {
	t     *telemetry.Telemetry
	agent func(session string) string

	mu   sync.Mutex
	open map[string]begun // by the id of the turn, or of the event that asked
}

// take handles one event.
func (w *watched) take(_ context.Context, ev event.Event) error {
	switch p := ev.Payload.(type) {
	case event.TurnStarted:
		agent := w.agent(ev.SessionID)
		w.begin(p.TurnID, begun{at: ev.Time, session: ev.SessionID, turn: p.TurnID, name: agent})
		w.t.TurnStarted(ev.SessionID, parentSession(ev.SessionID), p.TurnID, agent, ev.Time)
	case event.TurnCompleted:
		w.turnEnded(p.TurnID, "", ev.Time)
	case event.TurnFailed:
		w.turnEnded(p.TurnID, cmp.Or(p.Kind, "failed"), ev.Time)
	case event.TurnCancelled:
		w.turnEnded(p.TurnID, "cancelled", ev.Time)
	case event.LLMRequest:
		b := begun{at: ev.Time, session: ev.SessionID, name: p.Model, provider: p.Provider}
		w.begin(ev.ID, b)
		w.t.ModelAsked(ev.SessionID, ev.ID, b.provider, b.name, ev.Time)
	case event.LLMResponse:
		if b, ok := w.end(p.RequestID); ok {
			u := telemetry.Usage{Input: p.Usage.Input, Output: p.Usage.Output, CacheRead: p.Usage.InputCacheRead, CacheCreation: p.Usage.InputCacheCreation}
			w.t.ModelAnswered(p.RequestID, b.provider, b.name, "", u, ev.Time.Sub(b.at), ev.Time)
		}
	case event.LLMError:
		if b, ok := w.end(p.RequestID); ok {
			w.t.ModelAnswered(p.RequestID, b.provider, b.name, string(p.EffectiveKind()), telemetry.Usage{}, ev.Time.Sub(b.at), ev.Time)
		}
	case event.ToolRequest:
		w.begin(ev.ID, begun{at: ev.Time, session: ev.SessionID, turn: ev.Turn, name: p.Name, call: p.ID})
		w.t.ToolAsked(ev.Turn, p.ID, p.Name, ev.Time)
	case event.ToolResult:
		failure := ""
		if !p.OK {
			failure = telemetry.ToolError
		}
		w.toolEnded(p.RequestID, failure, ev.Time)
	case event.ToolError:
		w.toolEnded(p.RequestID, string(p.Kind), ev.Time)
	}
	return nil
}

func (w *watched) begin(id string, b begun) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.open) < maxBegun {
		w.open[id] = b
	}
}

func (w *watched) end(id string) (begun, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b, ok := w.open[id]
	delete(w.open, id)
	return b, ok
}

func (w *watched) turnEnded(id, failure string, at time.Time) {
	if b, ok := w.end(id); ok {
		w.t.TurnEnded(b.session, id, b.name, failure, at.Sub(b.at), at)
	}
}

func (w *watched) toolEnded(id, failure string, at time.Time) {
	if b, ok := w.end(id); ok {
		w.t.ToolAnswered(b.turn, b.call, b.name, failure, at.Sub(b.at), at)
	}
}

// parentSession returns the session whose agent works in a sub-agent's session, "" for others.
func parentSession(session string) string {
	if i := strings.LastIndex(session, event.AgentSeparator); i >= 0 {
		return session[:i]
	}
	return ""
}
