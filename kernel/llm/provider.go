package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/yaya-ai/yaya/internal/tlswords"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/event"
)

// Request is one request to a model.
type Request struct {
	System  string // the system prompt, "" for none
	Tools   []event.ToolSchema
	History []event.Message // without system messages
	// Model overrides the provider's; "" does not.
	Model string
	// Params are passed on unchanged; the provider interprets them.
	Params json.RawMessage
}

// Provider speaks to one model service.
type Provider interface {
	Name() string
	ModelName() string
	// ThinkingEffort is passed to the service unchanged; "off" by default.
	ThinkingEffort() string
	// Generate starts an answer. ctx bounds the whole stream.
	Generate(ctx context.Context, req Request) (Stream, error)
}

// Retryable is a provider that decides itself which errors to retry. attempt counts
// from 1. The runner still decides the number of attempts and the pauses.
type Retryable interface {
	OnRetryableError(err error, attempt int) bool
}

// Embedder is a provider whose service computes embeddings of texts.
type Embedder interface {
	// Embed returns one vector for each text, in the order of the texts. ctx bounds the call.
	Embed(ctx context.Context, model string, texts []string) ([][]float32, error)
}

// Stream is an answer in progress. Only one goroutine may use it.
type Stream interface {
	// Next returns the next part, and io.EOF after the last.
	Next() (Part, error)
	// Usage counts the tokens; it is complete after io.EOF.
	Usage() event.Usage
	Close() error
}

// Part is a piece of text, of reasoning, or of a tool call, or says why the answer ends.
type Part struct {
	Content  string
	ToolCall *ToolCallPart
	// Thought is a piece of reasoning for whoever watches. Reasoning is a whole part of it, for
	// the history; its Calls are set by the runner.
	Thought   string
	Reasoning *event.Reasoning
	// Stop is why the answer ends, in its last parts; "" in the others, and if the service
	// does not say.
	Stop event.StopReason
}

// ToolCallPart is a fragment of the call with that index. Any one of the fragments
// has ID and Name; Args is the concatenation of all.
type ToolCallPart struct {
	Index int    `json:"index"`
	ID    string `json:"id,omitempty"`
	Name  string `json:"name,omitempty"`
	Args  string `json:"args,omitempty"`
}

// NewUsage counts tokens and derives the sums: the input is the sum of tokens read
// from a cache, tokens written to one, and all others.
func NewUsage(other, cacheRead, cacheCreation, output int) event.Usage {
	for _, n := range []*int{&other, &cacheRead, &cacheCreation, &output} {
		*n = min(max(*n, 0), maxTokens)
	}
	in := other + cacheRead + cacheCreation
	return event.Usage{InputOther: other, InputCacheRead: cacheRead, InputCacheCreation: cacheCreation, Output: output, Input: in, Total: in + output}
}

// maxTokens bounds a count, so that sums of what services say stay numbers.
const maxTokens = 1 << 40

// Add sums two counts.
func Add(a, b event.Usage) event.Usage {
	return NewUsage(a.InputOther+b.InputOther, a.InputCacheRead+b.InputCacheRead, a.InputCacheCreation+b.InputCacheCreation, a.Output+b.Output)
}

// Error is a failed call. Providers translate the errors of their SDK into it.
type Error struct {
	Kind       event.LLMErrorKind
	StatusCode int           // with LLMStatus only
	RetryAfter time.Duration // how long the service asks to wait, 0 if it does not
	// Overflow says that the request is longer than the model's window, of which Window is
	// the size in tokens, if it is known. [Explain] finds both in texts.
	Overflow bool
	Window   int
	Err      error
}

func (e *Error) Error() string {
	if e.Kind == event.LLMStatus {
		return fmt.Sprintf("status %d: %v", e.StatusCode, e.Err)
	}
	return fmt.Sprintf("%s: %v", e.Kind, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// AsError classifies any error: by its own kind if it has one, as timeout or
// connection if its type says so, else as other.
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
		// net.Error and errors of the system all concern the connection.
		kind = event.LLMConnection
		if t.Timeout() {
			kind = event.LLMTimeout
		}
	}
	return &Error{Kind: kind, Err: short(tlswords.Explain(err))}
}

// short gives a connection that failed the text "HOST: REASON". The text of its error names the method,
// the whole address, and the host again.
func short(err error) error {
	of, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err
	}
	host := of.URL
	if u, uerr := url.Parse(of.URL); uerr == nil && u.Host != "" {
		host = u.Host
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return worded.Error(err, "%s: %s", host, e.Err)
	}
	e, ok := errors.AsType[*net.OpError](err)
	if !ok || e.Op == "proxyconnect" { // its host is another one
		return err
	}
	why := e.Err
	if sys, ok := errors.AsType[*os.SyscallError](why); ok {
		why = sys.Err
	}
	return worded.Error(err, "%s: %v", host, why)
}

// Worth reports whether a retry may succeed after an error: lost connections,
// timeouts, empty answers, and the statuses 408, 409, 425, 429 and 5xx.
func Worth(err error) bool {
	e := AsError(err)
	if e.Overflow {
		return false
	}
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
