package feature

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/yaya-ai/yaya/kernel/tool"
)

// Contribution is everything that a capability contributes. Every part is optional.
type Contribution struct {
	Name      string
	Tools     []tool.Tool
	Hooks     []tool.Hook
	Services  []Service
	Tasks     []Task
	Providers []Provider
}

// Service runs as long as the host. Start returns when the service runs; Stop is
// called once for every Start, even for one that failed.
type Service interface {
	Name() string
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
}

// Task is background work for the life of the host. Run returns soon after its
// context ends; an error ends the task, and is kept as a diagnostic.
type Task struct {
	Name string
	Run  func(ctx context.Context) error
}

// Info describes a provider.
type Info struct {
	ID string
	// Prefix starts the names of the provider's tools; "" means ID.
	Prefix string
	// Bare registers the tools under their own names.
	Bare bool
	// StartTimeout bounds Start and Discover together. Without one it is 20 s, of a
	// [Worker] 20 s without work and 5 minutes in all.
	StartTimeout time.Duration
	// InstallTimeout bounds Start instead, for a provider that has to download its program;
	// Discover then has as much time as without a StartTimeout. 0 means that it downloads
	// nothing.
	InstallTimeout time.Duration
}

// Signals are the messages of a provider to its supervisor. The functions never
// block and may be called from any goroutine; after Stop they have no effect.
type Signals struct {
	// Changed reports that the provider's tools may have changed.
	Changed func()
	// Failed reports that the provider cannot continue and has to be restarted.
	Failed func(err error)
	// Installing reports that Start is downloading its program, with the last line of
	// progress. It may be called again with another line.
	Installing func(line string)
	// Degraded reports a problem that does not stop the provider.
	Degraded func(msg string)
}

// Worker is a provider that knows the processor time of its own process. On a busy
// machine a start takes long because its process gets little of it: as long as it gets
// any, it is not stuck.
type Worker interface {
	// Worked returns the processor time since some fixed moment; it may be called from
	// any goroutine, even while nothing runs.
	Worked() time.Duration
}

// Provider is an external source of tools. The supervisor calls Start,
// Discover and Stop from one goroutine; Discover may also be called by a
// boundary while the provider is ready, but never twice at a time.
type Provider interface {
	Info() Info
	// Start connects the provider. ctx bounds the start only.
	Start(ctx context.Context, s Signals) error
	// Discover lists the tools completely. Warnings name what was left out.
	Discover(ctx context.Context) (tools []Tool, warnings []string, err error)
	// Stop disconnects, even after a failed Start. ctx bounds how long it waits.
	Stop(ctx context.Context) error
}

// Detailer is implemented by providers with more details about their state; the
// value is marshalled to JSON for people.
type Detailer interface{ Detail() any }

// Hinter is implemented by providers that know more about the cause of a failure
// than the error says. The hint is for people and their agents: no server in a
// sandbox reads it.
type Hinter interface {
	// Hint is "" without one. It may be called from any goroutine.
	Hint() string
}

// Reviver is implemented by providers that can learn, after they failed, that
// another attempt makes sense. A boundary then starts it at once.
type Reviver interface{ Revived() bool }

// Outdated is implemented by providers that may have to reconnect because their
// host's settings have changed. [Host.Reconsider] asks.
type Outdated interface {
	// Outdated returns the reason to reconnect, "" if a new attempt would have the
	// same result as the present connection or failure. It may be called from any
	// goroutine, even during Start.
	Outdated() string
}

// Stale is implemented by providers whose tools may have to be listed again because
// of a change at their host. A boundary asks.
type Stale interface{ Stale() bool }

// Spec is a tool as its provider describes it: untrusted, not yet normalised.
type Spec struct {
	Name         string
	Title        string
	Description  string
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage
	Annotations  json.RawMessage
	Kind         tool.Kind
	Timeout      time.Duration
	Validate     bool
	Native       json.RawMessage
	// Withheld is the reason why the tool cannot be called at present; it is then not
	// offered, and only its name is used.
	Withheld string
}

// Tool is a discovered tool. It stays valid across restarts of its provider;
// two tools that compare equal are the same tool unchanged. Invoke obeys its
// context.
type Tool interface {
	Spec() Spec
	Invoke(ctx context.Context, call tool.Call) (tool.Result, error)
}

// ErrNotSent is wrapped by an error of [Tool.Invoke] if the provider certainly
// never got the call. Only such a call is sent again once the provider is back: a
// call that may have had effects is not repeated.
var ErrNotSent = errors.New("the call did not reach the server")
