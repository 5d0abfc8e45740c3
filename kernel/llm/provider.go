package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
)

// Request is what a model is asked.
type Request struct {
	System  string // the system prompt, "" for none
	Tools   []event.ToolSchema
	History []event.Message // without system messages
	// Model overrides the provider's; "" does not.
	Model string
	// Params are passed on as they are; what they mean is the provider's.
	Params json.RawMessage
}

// Provider speaks to one model service (Y-145).
type Provider interface {
	Name() string
	ModelName() string
	// ThinkingEffort is passed to the service unchanged; "off" by default
	// (Y-150).
	ThinkingEffort() string
	// Generate starts an answer. ctx bounds the whole stream.
	Generate(ctx context.Context, req Request) (Stream, error)
}

// Retryable is a provider that decides by itself what to retry (Y-153). attempt
// counts from 1. The number of attempts and the pauses stay the runner's.
type Retryable interface {
	OnRetryableError(err error, attempt int) bool
}

// Stream is an answer that arrives. It is used by one goroutine.
type Stream interface {
	// Next returns the next part, and io.EOF after the last.
	Next() (Part, error)
	// Usage counts the tokens; it is complete after io.EOF.
	Usage() event.Usage
	Close() error
}

// Part is a piece of text, or of a tool call.
type Part struct {
	Content  string
	ToolCall *ToolCallPart
}

// ToolCallPart is a fragment of the call with that index. ID and Name come with
// any one of the fragments, Args is added up.
type ToolCallPart struct {
	Index int    `json:"index"`
	ID    string `json:"id,omitempty"`
	Name  string `json:"name,omitempty"`
	Args  string `json:"args,omitempty"`
}

// NewUsage counts tokens and derives the sums (Y-147): input is what was read,
// from a cache, into a cache, or neither.
func NewUsage(other, cacheRead, cacheCreation, output int) event.Usage {
	in := other + cacheRead + cacheCreation
	return event.Usage{InputOther: other, InputCacheRead: cacheRead, InputCacheCreation: cacheCreation, Output: output, Input: in, Total: in + output}
}

// Add sums two counts.
func Add(a, b event.Usage) event.Usage {
	return NewUsage(a.InputOther+b.InputOther, a.InputCacheRead+b.InputCacheRead, a.InputCacheCreation+b.InputCacheCreation, a.Output+b.Output)
}

// Error is a failed call (Y-152). Providers translate what their SDK returns
// into it (Y-151).
type Error struct {
	Kind       event.LLMErrorKind
	StatusCode int           // with LLMStatus only
	RetryAfter time.Duration // how long the service asks to wait, 0 if it does not
	Err        error
}

func (e *Error) Error() string {
	if e.Kind == event.LLMStatus {
		return fmt.Sprintf("status %d: %v", e.StatusCode, e.Err)
	}
	return fmt.Sprintf("%s: %v", e.Kind, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// AsError finds the kind of any error: its own if it has one, timeout and
// connection where the error says so by its type, else other (Y-152).
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	kind := event.LLMOther
	var t interface{ Timeout() bool }
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		kind = event.LLMTimeout
	case errors.As(err, &t):
		// net.Error and the system's: every one of them is about the connection.
		kind = event.LLMConnection
		if t.Timeout() {
			kind = event.LLMTimeout
		}
	}
	return &Error{Kind: kind, Err: err}
}

// Worth reports whether an error may pass if one tries again: lost connections,
// timeouts, empty answers, and the statuses 408, 409, 425, 429 and 5xx.
func Worth(err error) bool {
	e := AsError(err)
	switch e.Kind {
	case event.LLMConnection, event.LLMTimeout, event.LLMEmpty:
		return true
	case event.LLMStatus:
		switch e.StatusCode {
		case 408, 409, 425, 429:
			return true
		}
		return e.StatusCode >= 500
	case event.LLMOther:
	}
	return false
}
