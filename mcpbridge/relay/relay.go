package relay

import (
	"context"
	"encoding/json"

	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Methods that a server may call at its client, and notifications that several clients may get.
const (
	Sampling    = "sampling/createMessage"
	Elicitation = "elicitation/create"
	Roots       = "roots/list"
)

// Reply is an unparsed answer: exactly one of Result and Err is set.
type Reply struct {
	Result jsonrpc.Object
	Err    []byte
	Buffer *bufpool.Buffer // holds the bytes of both, if set
}

// Refusal is a reply that carries an error.
func Refusal(code int, message string) Reply {
	return Reply{Err: (&jsonrpc.Error{Code: code, Message: message}).Append(nil)}
}

// Peer is a client during one of its requests. Its methods may be called from
// any goroutine until the request has been answered.
type Peer interface {
	PeerInfo
	// Ask sends a server's question to the client and waits for the answer. It does not ask a
	// client that did not declare the capability. Progress that a legacy client reports in the
	// meantime goes to the function of [WithProgress].
	Ask(ctx context.Context, method string, params []byte) (Reply, error)
	// Notify sends a notification on the request's own stream. If that fails, the request's
	// context ends.
	Notify(method string, params []byte)
}

// PeerInfo says who a client is and what it has declared.
type PeerInfo interface {
	// Client is the kernel session of the client.
	Client() string
	// Name is the name that the client announces, "" if it is told apart by its session alone.
	Name() string
	// Caller is the maker of the client's calls, and the surface that they come through.
	Caller() (tool.Caller, tool.Origin)
	// Modern reports whether the client speaks the stateless era, and so accepts input_required
	// as a response.
	Modern() bool
	// Capabilities is the client's declared capabilities; zero if none.
	Capabilities() jsonrpc.Object
	// LogLevel is the minimum severity of log messages for the client; "" if it did not say.
	LogLevel() string
}

type progressKey struct{}

// WithProgress returns a context for [Peer.Ask] that passes the client's progress on the
// question, as the params of its notification, to f. f may keep the params and must not block.
func WithProgress(ctx context.Context, f func(params []byte)) context.Context {
	return context.WithValue(ctx, progressKey{}, f)
}

// ProgressOf returns the function of [WithProgress], nil without one.
func ProgressOf(ctx context.Context) func(params []byte) {
	f, _ := ctx.Value(progressKey{}).(func([]byte))
	return f
}

// Supports reports whether declared capabilities cover a question.
func Supports(capabilities jsonrpc.Object, method string, params jsonrpc.Object) bool {
	get := func(o jsonrpc.Object, key string) (jsonrpc.Object, bool) {
		raw := o.Get(key)
		if len(raw) == 0 || raw[0] != '{' {
			return jsonrpc.Object{}, false
		}
		inner, err := jsonrpc.ParseObject(raw)
		return inner, err == nil
	}
	switch method {
	case Sampling:
		_, ok := get(capabilities, "sampling")
		return ok
	case Roots:
		_, ok := get(capabilities, "roots")
		return ok
	case Elicitation:
		modes, ok := get(capabilities, "elicitation")
		if !ok {
			return false
		}
		mode, given := params.String("mode")
		if !given {
			mode = "form"
		}
		// Modes exist since 2025-11-25: an empty object means forms.
		return modes.Get(mode) != nil || (mode == "form" && modes.Len() == 0)
	}
	return false
}

// Tasks is the extension of SEP-2663.
const Tasks = "io.modelcontextprotocol/tasks"

// HasTasks reports whether capabilities, of a client or a server, declare [Tasks].
func HasTasks(capabilities jsonrpc.Object) bool {
	declared := capabilities.Get("extensions")
	if declared == nil {
		return false
	}
	ext, err := jsonrpc.ParseObject(declared)
	raw := ext.Get(Tasks)
	return err == nil && len(raw) > 0 && raw[0] == '{'
}

// Question is one of the inputRequests of SEP-2322 and SEP-2663.
type Question struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// Asks reports whether a client with these capabilities can be asked any question.
func Asks(capabilities jsonrpc.Object) bool {
	for _, key := range []string{"sampling", "elicitation", "roots"} {
		if capabilities.Get(key) != nil {
			return true
		}
	}
	return false
}

var severities = map[string]int{
	"debug": 1, "info": 2, "notice": 3, "warning": 4, "error": 5, "critical": 6, "alert": 7, "emergency": 8,
}

// Severity returns the rank of a log level of RFC 5424; 0 for an unknown level.
func Severity(level string) int { return severities[level] }
