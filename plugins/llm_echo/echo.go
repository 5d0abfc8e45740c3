// Package llm_echo is a deterministic model that needs neither network nor key: it repeats its
// input, or follows a script. It lets yaya work offline, and lets tests and demonstrations
// drive tool calls, errors and slow streams.
//
// Without a script it answers "echo: <text>". Lines of the form
//
//	/tool <name> <JSON object>
//
// become tool calls, all at once; their results are its answer. With one (the
// instance's field script, or plugin.llm_echo.script), each model call takes the
// next step of the first scenario whose pattern matches the user's message; see
// [Script].
package llm_echo //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// Name is the plugin's name, and that of its first instance.
const Name = "llm-echo"

// Plugin is the provider.
type Plugin struct {
	runner    *llm.Runner
	instances *plugin.Instances[*instance]

	mu       sync.Mutex
	progress map[place]*progress
}

type instance struct {
	id, model, effort string
	script            Script
	source            [32]byte // the source of the script
	err               error    // of the script
}

// place is a session's place in a script. It outlives the instance, which is rebuilt with every
// change of a setting.
type place struct {
	instance, session string
	source            [32]byte
}

// progress is a session's position in its scenario.
type progress struct {
	users int // messages from the user: a new one restarts the scenario
	next  int
}

// maxSessions bounds the remembered sessions.
const maxSessions = 1000

// New returns the plugin.
func New() *Plugin {
	return &Plugin{instances: plugin.NewInstances(Name, build), progress: map[place]*progress{}}
}

// Manifest implements [plugin.Plugin].
func (*Plugin) Manifest() plugin.Manifest {
	return plugin.Manifest{
		Name: Name, Version: "0.1.0", Category: plugin.LLMProvider, ProviderID: "echo",
		ConfigSchema: json.RawMessage(`{"type":"object","properties":{"model":{"type":"string"},"script":{"type":["object","string"]}}}`),
	}
}

// Subscriptions implements [plugin.Plugin].
func (*Plugin) Subscriptions() []string {
	return []string{event.LLMCallRequest.Name(), event.ConfigWasUpdated.Name(), event.UserInterrupt.Name()}
}

// OnLoad implements [plugin.Plugin].
func (p *Plugin) OnLoad(_ context.Context, c plugin.Context) error {
	p.runner = llm.NewRunner(llm.RunnerConfig{
		Emit:    c.Emit,
		Secrets: c.Secrets(),
		Report:  func(err error) { c.Log().Error().Err(err).Msg("cannot publish an answer") },
	})
	p.instances.Load(c)
	return nil
}

// build creates one instance from its configuration.
func build(c plugin.Context, i config.Instance) *instance {
	in := &instance{id: i.ID, model: i.Text("model"), effort: i.Text("thinking_effort")}
	raw := i.Config["script"]
	if raw == nil {
		raw = c.Config("script")
	}
	if raw != nil {
		in.script, in.err = ParseScript(raw)
		in.source = sha256.Sum256(raw)
	}
	return in
}

// OnEvent implements [plugin.Plugin].
func (p *Plugin) OnEvent(_ context.Context, ev event.Event, c plugin.Context) error {
	switch e := ev.Payload.(type) {
	case event.ConfigUpdated:
		p.instances.Changed(c, e.Key)
	case event.Empty:
		p.runner.Interrupt(ev.SessionID)
	case event.LLMRequest:
		if in, ok := p.instances.Get(c, e.Provider); ok { // otherwise a sibling's
			p.runner.Start(ev, &call{p: p, in: in, session: ev.SessionID})
		}
	}
	return nil
}

// OnUnload implements [plugin.Plugin].
func (p *Plugin) OnUnload(ctx context.Context, _ plugin.Context) error {
	if p.runner == nil {
		return nil
	}
	return p.runner.Close(ctx)
}

// HealthCheck implements [plugin.HealthChecker].
func (p *Plugin) HealthCheck(context.Context, plugin.Context) plugin.HealthReport {
	for _, in := range p.instances.All() {
		if in.err != nil {
			return plugin.HealthReport{Status: plugin.Degraded, Summary: fmt.Sprintf("instance %s: %v", in.id, in.err)}
		}
	}
	return plugin.HealthReport{Status: plugin.Healthy, Summary: "always available"}
}

// step returns what a session's next call does; nil means echo.
func (p *Plugin) step(in *instance, session string, history []event.Message) (*Step, error) {
	if in.err != nil {
		return nil, in.err
	}
	users, last := 0, ""
	for _, m := range history {
		if m.Role == "user" && m.Note == "" {
			users++
			last = m.Content
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	here := place{in.id, session, in.source}
	at := p.progress[here]
	if at == nil || at.users != users {
		if at == nil && len(p.progress) >= maxSessions {
			clear(p.progress)
		}
		at = &progress{users: users}
		p.progress[here] = at
	}
	for _, sc := range in.script.Scenarios {
		if sc.match.MatchString(last) {
			if at.next >= len(sc.Steps) {
				return nil, nil
			}
			at.next++
			return &sc.Steps[at.next-1], nil
		}
	}
	return nil, nil
}

// call is one model call; it implements [llm.Provider].
type call struct {
	p       *Plugin
	in      *instance
	session string
}

func (c *call) Name() string           { return c.in.id }
func (c *call) ModelName() string      { return c.in.model }
func (c *call) ThinkingEffort() string { return c.in.effort }

// Generate implements [llm.Provider].
func (c *call) Generate(ctx context.Context, req llm.Request) (llm.Stream, error) {
	st, err := c.p.step(c.in, c.session, req.History)
	if err != nil {
		return nil, err
	}
	if st == nil {
		st = echo(req.History)
	}
	s := &stream{ctx: ctx, delay: time.Duration(st.DelayMS) * time.Millisecond}
	for _, m := range req.History {
		s.read += len(m.Content)
	}
	if st.Error != nil {
		s.err = &llm.Error{Kind: st.Error.Kind, StatusCode: st.Error.StatusCode, RetryAfter: time.Duration(st.Error.RetryAfterS * float64(time.Second)), Err: errors.New(st.Error.Message)}
		if !st.Error.AfterText {
			return nil, s.err
		}
	}
	for _, piece := range split(st.Text, st.Chunks) {
		s.parts = append(s.parts, llm.Part{Content: piece})
		s.written += len(piece)
	}
	for i, tc := range st.ToolCalls {
		s.parts = append(s.parts, llm.Part{ToolCall: &llm.ToolCallPart{Index: i, Name: tc.Name, Args: string(tc.Args)}})
		s.written += len(tc.Args)
	}
	stop := event.StopEnd
	if len(st.ToolCalls) > 0 {
		stop = event.StopToolCalls
	}
	s.parts = append(s.parts, llm.Part{Stop: cmp.Or(st.StopReason, stop)})
	return s, nil
}

var toolLine = lazyregexp.New(`(?m)^/tool\s+([A-Za-z0-9_-]+)\s*(.*)$`)

// echo is the model's behavior without a script.
func echo(history []event.Message) *Step {
	last := -1
	for i, m := range history {
		if m.Role == "user" && m.Note == "" {
			last = i
		}
	}
	if last < 0 {
		return &Step{Text: "echo:"}
	}
	var results []string
	for _, m := range history[last+1:] {
		if m.Role == "tool" {
			results = append(results, m.Content)
		}
	}
	if len(results) > 0 {
		return &Step{Text: strings.Join(results, "\n")}
	}
	st := &Step{}
	for _, m := range toolLine().FindAllStringSubmatch(history[last].Content, -1) {
		args := json.RawMessage(strings.TrimSpace(m[2]))
		if len(args) == 0 {
			args = json.RawMessage("{}")
		}
		st.ToolCalls = append(st.ToolCalls, Call{m[1], args})
	}
	if len(st.ToolCalls) == 0 {
		st.Text = "echo: " + history[last].Content
	}
	return st
}

// split splits a text into n pieces, or into words.
func split(text string, n int) (out []string) {
	if text == "" {
		return nil
	}
	if n <= 0 {
		return strings.SplitAfter(text, " ")
	}
	r := []rune(text)
	n = min(n, len(r))
	for i := range n {
		out = append(out, string(r[i*len(r)/n:(i+1)*len(r)/n]))
	}
	return out
}

type stream struct {
	ctx           context.Context // a base context: of the call, as Next of an llm.Stream has none
	parts         []llm.Part
	delay         time.Duration
	err           error
	read, written int
}

// Next implements [llm.Stream].
func (s *stream) Next() (llm.Part, error) {
	if len(s.parts) == 0 {
		if s.err != nil {
			return llm.Part{}, s.err
		}
		return llm.Part{}, io.EOF
	}
	if s.delay > 0 && s.parts[0].Stop == "" {
		select {
		case <-time.After(s.delay):
		case <-s.ctx.Done():
			return llm.Part{}, s.ctx.Err()
		}
	}
	part := s.parts[0]
	s.parts = s.parts[1:]
	return part, nil
}

// Usage implements [llm.Stream]: four bytes are a token.
func (s *stream) Usage() event.Usage { return llm.NewUsage((s.read+3)/4, 0, 0, (s.written+3)/4) }

// Close implements [llm.Stream].
func (s *stream) Close() error { return nil }
