package event

import "encoding/json"

// Reasoning is a part of what a model has thought before it answered. Services want it back,
// unchanged, as long as the same model works on the same task.
type Reasoning struct {
	Text string `json:"text,omitempty"` // as far as the service shows it
	// Data holds the rest that the service needs, a signature for instance. Only the provider By,
	// which names its model, too, can read it. Without it, the part is not sent back.
	Data json.RawMessage `json:"data,omitempty"`
	By   string          `json:"by,omitempty"`
	// Calls is how many of the answer's calls come before it.
	Calls int `json:"calls,omitempty"`
}

// LLMRequest is the payload of llm.call.request.
type LLMRequest struct {
	Provider string          `json:"provider"`
	Model    string          `json:"model"`
	Messages []Message       `json:"messages"`
	Tools    []ToolSchema    `json:"tools,omitempty"`
	Params   json.RawMessage `json:"params"`
}

// LLMDelta is the payload of llm.call.delta.
type LLMDelta struct {
	Content         string          `json:"content,omitempty"`
	Reasoning       string          `json:"reasoning,omitempty"` // text of it, as it comes
	ToolCallPartial json.RawMessage `json:"tool_call_partial,omitempty"`
	Request
}

// Usage counts tokens; raw and derived values travel together.
type Usage struct {
	InputOther         int `json:"input_other"`
	InputCacheRead     int `json:"input_cache_read"`
	InputCacheCreation int `json:"input_cache_creation"`
	Output             int `json:"output"`
	Input              int `json:"input"`
	Total              int `json:"total"`
}

// LLMResponse is the payload of llm.call.response.
type LLMResponse struct {
	Text      string      `json:"text,omitempty"`
	ToolCalls []ToolCall  `json:"tool_calls,omitempty"`
	Usage     Usage       `json:"usage"`
	Reasoning []Reasoning `json:"reasoning,omitempty"`
	// StopReason says why the answer ended; "" is [StopEnd].
	StopReason StopReason `json:"stop_reason,omitempty"`
	// Model is the model that has answered, and CostUSD what that cost in US dollars, 0 if nobody
	// knows the model's prices.
	Model   string  `json:"model,omitempty"`
	CostUSD float64 `json:"cost_usd,omitempty"`
	Request
}

// Partial reports whether it is the part of an answer that was written until the call ended on its way.
// It is not the answer to a request, and its usage is estimated. Without text it only says what the call took.
func (r LLMResponse) Partial() bool {
	return r.StopReason == StopInterrupted || r.StopReason == StopBroken
}

// StopReason is why a model's answer ended.
type StopReason string

// The closed set of StopReason. An answer that ended for its length is not whole: the loop asks
// for the rest.
const (
	StopEnd       StopReason = "end"
	StopToolCalls StopReason = "tool_calls"
	StopLength    StopReason = "length"
	StopRefusal   StopReason = "refusal"
	// StopInterrupted is of what a model had written when its turn was cancelled. It is not the
	// answer to a request.
	StopInterrupted StopReason = "interrupted"
	// StopBroken is of what a model had written when its answer failed on its way, which is not the
	// answer to a request, either. The rest may follow.
	StopBroken StopReason = "broken"
)

// LLMErrorKind classifies a failed model call.
type LLMErrorKind string

// The closed set of LLMErrorKind. A missing kind means other.
const (
	LLMConnection LLMErrorKind = "connection"
	LLMTimeout    LLMErrorKind = "timeout"
	LLMStatus     LLMErrorKind = "status"
	LLMEmpty      LLMErrorKind = "empty"
	LLMOther      LLMErrorKind = "other"
)

// LLMError is the payload of llm.call.error.
type LLMError struct {
	Error       string       `json:"error"`
	Kind        LLMErrorKind `json:"kind,omitempty"`
	StatusCode  int          `json:"status_code,omitempty"` // with LLMStatus only
	RetryAfterS float64      `json:"retry_after_s,omitempty"`
	// Overflow says that the request is longer than the model's window, and ContextWindow the
	// window in tokens, if the service named it.
	Overflow      bool `json:"overflow,omitempty"`
	ContextWindow int  `json:"context_window,omitempty"`
	Request
}

// Unavailable reports whether another model might answer the request: this one's service cannot be
// reached, is too busy or broken to answer, or is not paid for. A request that is wrong is so anywhere.
func (e LLMError) Unavailable() bool {
	switch e.EffectiveKind() {
	case LLMConnection, LLMTimeout:
		return true
	case LLMStatus:
		return e.StatusCode == 402 || e.StatusCode == 429 || e.StatusCode >= 500
	case LLMEmpty, LLMOther:
	}
	return false
}

// LLMRetry is the payload of llm.call.retry: an attempt has failed before any text was streamed, and
// the next one follows after a wait.
type LLMRetry struct {
	Attempt    int          `json:"attempt"` // that failed, from 1
	WaitS      float64      `json:"wait_s"`
	Error      string       `json:"error"`
	Kind       LLMErrorKind `json:"kind,omitempty"`
	StatusCode int          `json:"status_code,omitempty"` // with LLMStatus only
	Request
}

// ModelRef names a model at a provider.
type ModelRef struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
}

// LLMFallback is the payload of llm.call.fallback: a model cannot answer, and another one is asked for
// the rest of the turn.
type LLMFallback struct {
	Failed     ModelRef     `json:"failed"`
	Next       ModelRef     `json:"next"`
	Error      string       `json:"error"`
	Kind       LLMErrorKind `json:"kind,omitempty"`
	StatusCode int          `json:"status_code,omitempty"` // with LLMStatus only
}

// EffectiveKind returns the kind, [LLMOther] when none was given.
func (e LLMError) EffectiveKind() LLMErrorKind {
	if e.Kind == "" {
		return LLMOther
	}
	return e.Kind
}
