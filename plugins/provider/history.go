package provider

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/internal/llmhttp"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
)

// Params are those of a request that all services have. Others may be meant for other services.
type Params struct {
	MaxTokens     int64    `json:"max_tokens"`
	Temperature   *float64 `json:"temperature"`
	StopSequences []string `json:"stop_sequences"`
}

// ParamsOf reads the params of a request.
func ParamsOf(req llm.Request) (p Params, err error) {
	if len(req.Params) > 0 {
		if err := json.Unmarshal(req.Params, &p); err != nil {
			return p, fmt.Errorf("params: %w", err)
		}
	}
	return p, nil
}

// Answer takes an assistant's message apart in the order in which the model made it: the parts of
// its reasoning that by, a provider and its model, can read, its text, and its calls.
func Answer(m event.Message, by string, thought func(event.Reasoning), text func(), call func(event.ToolCall)) {
	reasoning := m.Reasoning
	until := func(calls int) {
		for ; len(reasoning) > 0 && reasoning[0].Calls <= calls; reasoning = reasoning[1:] {
			if reasoning[0].By == by {
				thought(reasoning[0])
			}
		}
	}
	until(0)
	text()
	for i, c := range m.ToolCalls {
		until(i)
		call(c)
	}
	until(len(m.ToolCalls))
}

// word is how services take names of tools and ids of calls.
var word = lazyregexp.New(`^[a-zA-Z0-9_-]{1,128}$`)

// ToolName returns the name of a tool as services take it. A model may call one that there cannot
// be; the result of the call says so.
func ToolName(name string) string {
	if !word().MatchString(name) {
		return "invalid_tool"
	}
	return name
}

// CallIDs are the ids of the calls of a history. Another service may have given some that a service
// does not take, or one twice.
type CallIDs struct {
	as   map[string]string // by the id in the history, of its last call
	used map[string]bool
}

// maxCallID is how long an id may be, in bytes.
const maxCallID = 64

// Add returns the id of a call.
func (i *CallIDs) Add(id string) string {
	if i.used == nil {
		i.as, i.used = map[string]string{}, map[string]bool{}
	}
	is := id
	for n := len(i.used); i.used[is] || len(is) > maxCallID || !word().MatchString(is); n++ {
		is = fmt.Sprintf("call_%d", n)
	}
	i.used[is], i.as[id] = true, is
	return is
}

// Of returns the id of a result's call.
func (i *CallIDs) Of(id string) string { return i.as[id] }

// Object returns the arguments of a call for services that take objects only.
func Object(args json.RawMessage) any {
	var members map[string]json.RawMessage
	if json.Unmarshal(args, &members) != nil || members == nil {
		return map[string]json.RawMessage{"arguments": args}
	}
	return args
}

// ObjectText is [Object] as JSON.
func ObjectText(args json.RawMessage) string {
	switch o := Object(args).(type) {
	case map[string]json.RawMessage:
		raw, err := json.Marshal(o)
		if err != nil { // args are not JSON
			return "{}"
		}
		return string(raw)
	default:
		return string(args)
	}
}

// Failed translates an error of a request or its stream to that of the contract.
func Failed(err error) error {
	if e, ok := errors.AsType[*llmhttp.StatusError](err); ok {
		return llm.Explain(&llm.Error{Kind: event.LLMStatus, StatusCode: e.StatusCode, RetryAfter: e.RetryAfter, Err: errors.New(e.Message)}, e.Body)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &llm.Error{Kind: event.LLMConnection, Err: err}
	}
	return llm.AsError(err)
}

// BrokeOff is the error of a stream that ended before its answer.
func BrokeOff() error {
	return &llm.Error{Kind: event.LLMConnection, Err: errors.New("the service ended the answer early")}
}

// statuses are those of the codes and types of errors that OpenAI's APIs report within a stream, whose
// status is 200.
var statuses = map[string]int{
	"rate_limit_exceeded": 429, "server_error": 500, "server_is_overloaded": 503, "slow_down": 503, "invalid_prompt": 400,
	"context_length_exceeded": 400, "insufficient_quota": 402,
}

// Reported is the error that OpenAI's APIs, and those that copy them, report within an answer: its code,
// which may be a status, its type and its text.
func Reported(code, kind, message string) error {
	e := &llm.Error{Kind: event.LLMOther, Err: errors.New(cmp.Or(message, code, kind, "the service reports an error without a message"))}
	status, err := strconv.Atoi(code)
	if err != nil || status < 400 || status > 599 {
		status = cmp.Or(statuses[code], statuses[kind])
	}
	if status != 0 {
		e.Kind, e.StatusCode = event.LLMStatus, status
	}
	return llm.Explain(e, code, kind)
}
