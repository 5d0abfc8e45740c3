package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Category is the purpose of a plugin. The set is closed.
type Category string

// The categories.
const (
	Adapter     Category = "adapter"
	Tool        Category = "tool"
	LLMProvider Category = "llm-provider"
	Strategy    Category = "strategy"
	Memory      Category = "memory"
	Skill       Category = "skill"
)

// Categories returns all categories.
func Categories() []Category {
	return []Category{Adapter, Tool, LLMProvider, Strategy, Memory, Skill}
}

// Manifest describes a plugin. It does not change while the plugin is loaded.
type Manifest struct {
	Name     string   `json:"name"`    // unique, kebab-case
	Version  string   `json:"version"` // semver
	Category Category `json:"category"`
	Requires []string `json:"requires,omitempty"` // names of plugins to load before

	// Exactly one of these, depending on the category.
	AdapterID  string `json:"adapter_id,omitempty"`
	ProviderID string `json:"provider_id,omitempty"`
	StrategyID string `json:"strategy_id,omitempty"`
	MemoryKind string `json:"memory_kind,omitempty"` // "short-term" or "long-term"
	// ToolName and ToolSchema are for tools that answer requests without schema
	// version themselves; register tools of version v1 with [Context.RegisterTool]
	// instead.
	ToolName   string          `json:"tool_name,omitempty"`
	ToolSchema json.RawMessage `json:"json_schema,omitempty"`

	// ConfigSchema is the JSON Schema of the plugin's settings, if it has one.
	ConfigSchema json.RawMessage `json:"config_schema,omitempty"`
	// Guards are the points, of [GuardPoints], at which the plugin is asked before something
	// goes on. It is a [Guard] then. Every category can have some.
	Guards []string `json:"guards,omitempty"`
}

var (
	namePattern    = lazyregexp.New(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	versionPattern = lazyregexp.New(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
)

// ownNames are the names that yaya speaks under although no plugin has them: the source of the
// kernel's events, the namespaces of its extension kinds (x.session.mode, x.agent.subagent.started,
// x.mcp.server.ready), and its private sessions (_bridge:compaction:…). A plugin owns all of these
// under its own name, so that one of them would let it speak as yaya. Names of bundled plugins are
// taken by these.
var ownNames = []string{event.KernelSource, "session", "agent", "mcp", "compaction", "web-api-test", "web-api-tools"}

// Check returns an error if the manifest is invalid.
func (m Manifest) Check() error {
	switch {
	case slices.Contains(ownNames, m.Name):
		return fmt.Errorf("plugin name %q: yaya's own events or sessions have that name", m.Name)
	case len(m.Name) > 64:
		return fmt.Errorf("plugin name %.80q… has more than 64 characters", m.Name)
	case !namePattern().MatchString(m.Name):
		return fmt.Errorf("plugin name %q does not match %s", m.Name, namePattern())
	case slices.Contains(m.Requires, m.Name):
		return fmt.Errorf("plugin %s: it requires itself", m.Name)
	case !versionPattern().MatchString(m.Version):
		return fmt.Errorf("plugin %s: version %q is not semver", m.Name, m.Version)
	}
	extras := map[Category]string{Adapter: m.AdapterID, LLMProvider: m.ProviderID, Strategy: m.StrategyID, Memory: m.MemoryKind, Tool: m.ToolName}
	switch m.Category {
	case Adapter, LLMProvider, Strategy:
		if extras[m.Category] == "" {
			return fmt.Errorf("plugin %s: a plugin of category %s has an id for it", m.Name, m.Category)
		}
	case Memory:
		if m.MemoryKind != "short-term" && m.MemoryKind != "long-term" {
			return fmt.Errorf("plugin %s: memory kind %q is neither short-term nor long-term", m.Name, m.MemoryKind)
		}
	case Tool, Skill:
	default:
		return fmt.Errorf("plugin %s: unknown category %q: it is one of %v", m.Name, m.Category, Categories())
	}
	for c, id := range extras {
		if c != m.Category && id != "" {
			return fmt.Errorf("plugin %s: it is a %s and cannot be a %s as well: ship two plugins", m.Name, m.Category, c)
		}
	}
	return CheckGuards(m.Guards)
}

// Plugin is implemented by every plugin. OnEvent is called for one event of a
// session at a time, and for events of different sessions at once; long work
// belongs on a goroutine of the plugin's own, which OnUnload waits for.
type Plugin interface {
	Manifest() Manifest
	// Subscriptions returns the kinds that the plugin wants, within its category's
	// routing.
	Subscriptions() []string
	// OnLoad is called once, before any event.
	OnLoad(ctx context.Context, c Context) error
	// OnEvent handles one event. An error counts as a failure.
	OnEvent(ctx context.Context, ev event.Event, c Context) error
	// OnUnload is called when the plugin is unloaded, even after a failed load. It may
	// be called again.
	OnUnload(ctx context.Context, c Context) error
}

// Context offers a plugin everything that it may do.
type Context interface {
	Settings
	Speaker
	Tools
	Log() *zerolog.Logger
	// StateDir returns the plugin's own directory, and creates it if needed.
	StateDir() (string, error)
	// Secrets conceals the known secrets. It may be nil, and works then, too.
	Secrets() *masked.Secrets
}

// Tools are those that a plugin offers.
type Tools interface {
	// RegisterTool offers a tool of version v1 until the plugin is unloaded. Only
	// plugins of category tool may.
	RegisterTool(t tool.Tool) error
	// RenewTool puts a tool in the place of the one of its name that this plugin has registered.
	// Turns that run keep the one that they began with.
	RenewTool(t tool.Tool) error
}

// Speaker publishes as a plugin.
type Speaker interface {
	// Emit publishes an event. payload is any value that marshals to the kind's JSON.
	Emit(kind, session string, payload any) error
	// Request publishes a request to the plugins of another category, and waits for the
	// event that answers it.
	Request(ctx context.Context, kind, session string, payload json.RawMessage) (event.Event, error)
	// Report counts the outcome of work outside OnEvent: an error is a failure, nil ends a
	// row of failures.
	Report(err error)
	// Fail ends the wait for the answer to a request that this plugin will not give.
	Fail(request string, err error)
}

// Settings are the settings of a plugin.
type Settings interface {
	// Config returns this plugin's setting plugin.<name>.<field>, and Kernel any of
	// the kernel's own; nil when there is none.
	Config(field string) json.RawMessage
	Kernel(key string) json.RawMessage
	// Providers returns the configured model providers.
	Providers() config.Providers
}

// ErrCategory is returned by a plugin's context when the plugin emits a kind, or registers
// a tool, that its category does not allow.
var ErrCategory = errors.New("not for a plugin of this category")

// emits has the kinds that plugins of a category may emit besides x.*. A skill may
// emit every public kind that is not the kernel's.
var emits = map[Category][]string{
	Adapter: {
		event.UserMessageReceived.Name(), event.UserInterrupt.Name(), event.ApprovalAnswered.Name(),
	},
	Tool:        {event.ToolCallResult.Name(), event.ToolCallUpdate.Name(), event.VerifyWasStarted.Name(), event.VerifyWasCompleted.Name()},
	LLMProvider: {event.LLMCallResponse.Name(), event.LLMCallError.Name(), event.LLMCallDelta.Name(), event.LLMRetried.Name()},
	Strategy:    {event.StrategyDecideResponse.Name()},
	Memory:      {event.MemoryAnswered.Name()},
}

// answers has the kinds of the events that answer a request.
var answers = map[string][]*event.Kind{
	event.ToolCallRequest.Name(): {event.ToolCallResult.Kind(), event.ToolCallError.Kind()},
	event.LLMCallRequest.Name():  {event.LLMCallResponse.Kind(), event.LLMCallError.Kind()},
	event.MemoryQueried.Name():   {event.MemoryAnswered.Kind()},
}

// serves names the request that the plugins of a category answer.
var serves = map[Category]string{
	Tool:        event.ToolCallRequest.Name(),
	LLMProvider: event.LLMCallRequest.Name(),
	Strategy:    event.StrategyDecideRequest.Name(),
	Memory:      event.MemoryQueried.Name(),
}
