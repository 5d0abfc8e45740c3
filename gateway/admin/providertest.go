package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
)

// Tested is the result of a test.
type Tested struct {
	OK        bool    `json:"ok"`
	LatencyMS int64   `json:"latency_ms"`
	Error     string  `json:"error,omitempty"`
	FirstMS   int64   `json:"first_ms,omitempty" doc:"until its first word, if that was measured"`
	Speed     float64 `json:"tokens_per_second,omitempty" doc:"after the first word, if that was measured"`
	Tools     string  `json:"tools,omitempty" enum:"yes,no,failed" doc:"whether it calls a tool that it is asked to call, if that was tried"`
	ToolError string  `json:"tool_error,omitempty" doc:"why that failed"`
}

// The prompts of a test. A long answer is needed to measure the speed.
const (
	promptShort = "ping"
	promptLong  = "Write the numbers from 1 to 40 in words, separated by commas."
	promptTool  = "Call the tool ping once, with the text pong."
)

// pingTool is the tool that a model may call in a test.
var pingTool = event.ToolSchema{Name: "ping", Description: "Answers.", Parameters: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)}

// testProvider asks a provider for a word, on a session of its own, and waits that long for
// each answer. To measure, it asks for more of them, and to call a tool.
func (a *API) testProvider(ctx context.Context, id string, timeout time.Duration, measure bool) (Tested, error) {
	i, err := a.instance(id)
	if err != nil {
		return Tested{}, err
	}
	prompt := promptShort
	if measure {
		prompt = promptLong
	}
	got, err := a.prompt(ctx, i, timeout, prompt)
	if err != nil {
		return Tested{}, err
	}
	res := Tested{OK: got.problem == "", LatencyMS: got.took.Milliseconds(), Error: got.problem}
	if !measure || !res.OK {
		return res, nil
	}
	res.FirstMS = got.first.Milliseconds()
	// The first word came with the first token.
	if rest := got.took - got.first; rest > 0 && got.answer.Usage.Output > 1 {
		res.Speed = float64(got.answer.Usage.Output-1) / rest.Seconds()
	}
	got, err = a.prompt(ctx, i, timeout, promptTool, pingTool)
	switch {
	case err != nil:
		return Tested{}, err
	case got.problem != "":
		res.Tools, res.ToolError = "failed", got.problem
	case len(got.answer.ToolCalls) > 0:
		res.Tools = "yes"
	default:
		res.Tools = "no"
	}
	return res, nil
}

// prompted is the result of a prompt.
type prompted struct {
	took, first time.Duration
	answer      event.LLMResponse
	problem     string
}

// prompt asks a provider, on a session of its own.
func (a *API) prompt(ctx context.Context, i config.Instance, timeout time.Duration, text string, tools ...event.ToolSchema) (prompted, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	session := event.BridgePrefix + "web-api-test:" + uuid.NewString()
	start := time.Now()
	var mu sync.Mutex
	var first time.Duration
	sub, err := bus.On(a.cfg.Bus, bus.SubscribeOptions{Name: "provider-test"}, event.LLMCallDelta, func(_ context.Context, ev event.Event, _ event.LLMDelta) error {
		mu.Lock()
		defer mu.Unlock()
		if ev.SessionID == session && first == 0 {
			first = time.Since(start)
		}
		return nil
	})
	if err != nil {
		return prompted{}, err
	}
	ev, err := bus.Request(ctx, a.cfg.Bus.Kernel(), event.LLMCallRequest, session, event.LLMRequest{
		Provider: i.ID, Model: i.Text("model"), Messages: []event.Message{{Role: "user", Content: text}}, Tools: tools, Params: json.RawMessage("{}"),
	}, event.LLMCallResponse.Kind(), event.LLMCallError.Kind())
	out := prompted{took: time.Since(start)}
	sub.Close()
	<-sub.Done()
	switch {
	case ctx.Err() != nil:
		out.problem = "timeout" // or nobody waits for it
		// The plugins that still work on it may stop.
		if _, err := bus.Publish(a.cfg.Bus.Kernel(), event.UserInterrupt, session, event.Empty{}); err != nil {
			return prompted{}, err
		}
	case err != nil:
		out.problem = err.Error()
	default:
		switch p := ev.Payload.(type) {
		case event.LLMError:
			out.problem = fmt.Sprintf("%s: %s", p.EffectiveKind(), p.Error)
			if p.StatusCode != 0 {
				out.problem = fmt.Sprintf("status %d: %s", p.StatusCode, p.Error)
			}
		case event.LLMResponse:
			out.answer = p
		}
	}
	mu.Lock()
	defer mu.Unlock()
	out.first = first
	if first == 0 || first > out.took { // it does not stream
		out.first = out.took
	}
	return out, nil
}
