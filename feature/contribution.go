package feature

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/yaya-ai/yaya/kernel/tool"
)

// Contribution is what a capability brings along. Every part is optional.
type Contribution struct {
	Name      string
	Tools     []tool.Tool
	Hooks     []tool.Hook
	Services  []Service
	Tasks     []Task
	Providers []Provider
}

// Service lives as long as the host. Start returns when the service runs; Stop
// is called once for every Start, also for one that failed.
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
	// Bare leaves the tools the names that they have.
	Bare bool
	// StartTimeout bounds Start and Discover together. Without one it is 20 s, of a
	// [Worker] 20 s without work and 5 minutes in all.
	StartTimeout time.Duration
	// InstallTimeout bounds Start instead, for a provider that has to fetch what it
	// starts; Discover has as much as without a StartTimeout then. 0 means that it fetches nothing.
	InstallTimeout time.Duration
}

// Signals is how a provider talks to its supervisor. The functions never block
// and may be called from any goroutine; after Stop they have no effect.
type Signals struct {
	// Changed says that the provider's tools may have changed.
	Changed func()
	// Failed says that the provider cannot go on and wants to be restarted.
	Failed func(err error)
	// Installing says that Start is fetching what it starts, and the last line that
	// was said about it. It may be called again with another.
	Installing func(line string)
	// Degraded reports trouble that does not keep the provider from working.
	Degraded func(msg string)
}

// Worker is a provider that can tell how much processor time its own process has had. On
// a busy machine a start takes long because it gets little of that: as long as it gets
// any, it is not stuck.
type Worker interface {
	// Worked returns the processor time since some moment; it may be called from any
	// goroutine, also while nothing runs.
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
	// Stop disconnects, also after a Start that failed. ctx bounds its patience.
	Stop(ctx context.Context) error
}

// Detailer is implemented by providers with more to say about their state; the
// value is marshalled to JSON for people to read.
type Detailer interface{ Detail() any }

// Reviver is implemented by providers that may learn, while they have failed,
// that another attempt makes sense. A boundary then makes it at once.
type Reviver interface{ Revived() bool }

// Outdated is implemented by providers whose connection may have to be made again for
// reasons of their host's. [Host.Reconsider] asks.
type Outdated interface {
	// Outdated says why, "" if the connection, or the failure to make one, is what it
	// would come to now. It may be called from any goroutine, also during Start.
	Outdated() string
}

// Stale is implemented by providers whose tools may have to be listed again for
// reasons of their host's. A boundary asks.
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
	// Withheld says why the tool cannot be called for now; it is not offered then.
	// All that is used of the others is its name.
	Withheld string
}

// Tool is a discovered tool. It stays valid across restarts of its provider;
// two tools that compare equal are the same tool unchanged. Invoke obeys its
// context.
type Tool interface {
	Spec() Spec
	Invoke(ctx context.Context, call tool.Call) (tool.Result, error)
}

// ErrNotSent is wrapped by an error of [Tool.Invoke] that is certain to mean
// that the provider never got the call. Such a call, and no other, is sent again
// once the provider is back: a call that may have had effects is not repeated.
var ErrNotSent = errors.New("the call did not reach the server")
