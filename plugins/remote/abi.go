package remote

import (
	"encoding/json"
	"time"
)

// ABI is the version of the protocol that this package speaks.
const ABI = 1

// Methods that the kernel calls. Cancel is a notification, the others are requests.
const (
	MethodInitialize = "initialize"
	MethodEvent      = "event"
	MethodToolCall   = "tool.call"
	MethodGuard      = "guard"
	MethodHealth     = "health"
	MethodShutdown   = "shutdown"
	MethodCancel     = "cancel"
)

// Methods that a plugin calls. Log and progress are notifications, emit may be one, the
// others are requests.
const (
	MethodEmit     = "emit"
	MethodRequest  = "request"
	MethodConfig   = "config"
	MethodLog      = "log"
	MethodProgress = "progress"
)

// Error codes of the kernel, besides those of JSON-RPC.
const (
	CodeRefused = -32001 // the plugin may not do this
	CodeBusy    = -32002 // a limit is reached
	CodeTimeout = -32003 // no answer came in time
	CodeFailed  = -32004 // whoever was asked has failed
)

// Limits of the protocol.
const (
	MaxLine      = 8 << 20 // bytes of a line from a plugin
	MaxPending   = 64      // requests of a plugin that wait for their answer
	MaxCalls     = 64      // tool calls that run in a plugin at a time
	MaxTools     = 128     // tools of a plugin
	EmitRate     = 5000    // events a second that a plugin emits, beyond the burst
	EmitBurst    = 10000   // events that it may emit at once
	LogRate      = 100     // lines a second, of log and standard error together
	LogBurst     = 500     // lines at once
	MaxLogText   = 2 << 10 // bytes of a line
	MaxStrays    = 20      // lines that are not messages, until the process is ended
	StartTime    = 10 * time.Second
	ShutdownTime = time.Second      // until standard input is closed
	MaxRequest   = 10 * time.Minute // wait of a request
	RequestTime  = time.Minute      // wait of a request that names none
	maxBacklog   = 64 << 20         // bytes that wait to be read by a plugin
	maxDelivered = 4096             // requests that a plugin may still answer
	maxTimeout   = time.Hour        // of a tool
)

// InitializeParams are the params of initialize, the first request.
type InitializeParams struct {
	ABI    int    `json:"abi" jsonschema:"version of this protocol"`
	Kernel Kernel `json:"kernel"`
	// Settings of the plugin.
	Settings
	StateDir string `json:"state_dir" jsonschema:"absolute path of a folder that the plugin may write"`
}

// Kernel says who starts the plugin.
type Kernel struct {
	Version  string `json:"version" jsonschema:"version of yaya"`
	Protocol string `json:"protocol" jsonschema:"version of the event protocol"`
}

// Settings are the result of config, and part of the params of initialize.
type Settings struct {
	Config    map[string]json.RawMessage `json:"config" jsonschema:"settings plugin.<name>.<field>, for each property of the schema in plugin.toml that is set"`
	Providers []Instance                 `json:"providers,omitempty" jsonschema:"configured instances, for category llm-provider"`
}

// Instance is a configured instance of a model provider.
type Instance struct {
	ID     string                     `json:"id"`
	Label  string                     `json:"label,omitempty"`
	Config map[string]json.RawMessage `json:"config"`
}

// InitializeResult is the result of initialize.
type InitializeResult struct {
	ABI      int    `json:"abi" jsonschema:"version of this protocol that the plugin speaks; at most that of the params"`
	Name     string `json:"name" jsonschema:"as in plugin.toml"`
	Version  string `json:"version" jsonschema:"as in plugin.toml"`
	Category string `json:"category" jsonschema:"as in plugin.toml"`
	Tools    []Tool `json:"tools,omitempty" jsonschema:"for category tool"`
	// Guards are those of the permissions, in any order.
	Guards []string `json:"guards,omitempty" jsonschema:"the points at which it guards, as permissions.guards of plugin.toml has them"`
}

// Tool describes a tool.
type Tool struct {
	Name             string          `json:"name" jsonschema:"at most 64 letters, digits, _ and -"`
	Title            string          `json:"title,omitempty" jsonschema:"at most 200 bytes"`
	Description      string          `json:"description" jsonschema:"for the model, at most 16 KiB"`
	InputSchema      json.RawMessage `json:"input_schema" jsonschema:"JSON Schema 2020-12 of the arguments, an object"`
	OutputSchema     json.RawMessage `json:"output_schema,omitempty" jsonschema:"JSON Schema 2020-12 of structured"`
	Kind             string          `json:"kind,omitempty" jsonschema:"read, write, exec or network; everything else counts as exec"`
	RequiresApproval bool            `json:"requires_approval,omitempty" jsonschema:"ask before each call, whatever the kind is"`
	TimeoutMS        int64           `json:"timeout_ms,omitempty" jsonschema:"limit of a call, at most one hour; 120 s if it is 0 or absent"`
}

// EventParams are the params of event.
type EventParams struct {
	Event      Event `json:"event"`
	DeadlineMS int64 `json:"deadline_ms" jsonschema:"time until the kernel gives up, in milliseconds"`
}

// Event is the envelope of an event.
type Event struct {
	ID        string          `json:"id"`
	Kind      string          `json:"kind"`
	SessionID string          `json:"session_id"`
	TS        float64         `json:"ts" jsonschema:"unix seconds"`
	Source    string          `json:"source" jsonschema:"the plugin that emitted it, or kernel"`
	Payload   json.RawMessage `json:"payload" jsonschema:"as docs/events has it for the kind"`
}

// CallParams are the params of tool.call.
type CallParams struct {
	CallID     string          `json:"call_id" jsonschema:"the model's id of the call"`
	Name       string          `json:"name"`
	Args       json.RawMessage `json:"args" jsonschema:"an object that fits the input schema"`
	SessionID  string          `json:"session_id"`
	TurnID     string          `json:"turn_id,omitempty"`
	DeadlineMS int64           `json:"deadline_ms" jsonschema:"time until the kernel gives up, in milliseconds"`
}

// CallResult is the result of tool.call.
type CallResult struct {
	OK         bool            `json:"ok"`
	ErrorKind  string          `json:"error_kind,omitempty" jsonschema:"if ok is false: tool (default), validation, not_found, rejected, timeout, unavailable or internal"`
	Brief      string          `json:"brief,omitempty" jsonschema:"one line of at most 80 characters"`
	Display    []Block         `json:"display,omitempty" jsonschema:"what the model and the user read"`
	Structured json.RawMessage `json:"structured,omitempty" jsonschema:"the result as JSON, as output_schema says"`
	Detail     json.RawMessage `json:"detail,omitempty" jsonschema:"machine-readable detail of a failure"`
}

// Block is a piece of a result.
type Block struct {
	Kind     string          `json:"kind" jsonschema:"text, markdown or json"`
	Text     string          `json:"text,omitempty" jsonschema:"for kind text"`
	Markdown string          `json:"markdown,omitempty" jsonschema:"for kind markdown"`
	Data     json.RawMessage `json:"data,omitempty" jsonschema:"for kind json"`
}

// GuardParams are the params of guard.
type GuardParams struct {
	Point      string       `json:"point" jsonschema:"pre_tool or prompt"`
	SessionID  string       `json:"session_id"`
	Call       *GuardedCall `json:"call,omitempty" jsonschema:"for pre_tool"`
	Prompt     string       `json:"prompt,omitempty" jsonschema:"for prompt: the messages of the user that the model is about to get"`
	DeadlineMS int64        `json:"deadline_ms" jsonschema:"time until the kernel gives up, and denies, in milliseconds"`
}

// GuardedCall is a call of a tool that a guard is asked about.
type GuardedCall struct {
	CallID    string          `json:"call_id"`
	TurnID    string          `json:"turn_id,omitempty" jsonschema:"absent if no agent of yaya's calls"`
	Name      string          `json:"name"`
	Server    string          `json:"server,omitempty" jsonschema:"the MCP server whose tool it is"`
	Kind      string          `json:"kind" jsonschema:"read, write, exec or network"`
	Origin    string          `json:"origin" jsonschema:"who calls: loop (an agent), mcp, cli, api"`
	Principal string          `json:"principal,omitempty" jsonschema:"the caller"`
	Args      json.RawMessage `json:"args" jsonschema:"an object that fits the input schema; known secrets are concealed"`
	Shown     json.RawMessage `json:"shown,omitempty" jsonschema:"the call as a person sees it who is asked, for commands and changes of files"`
}

// GuardResult is the result of guard.
type GuardResult struct {
	Decision string `json:"decision" jsonschema:"allow (no objection; it lifts nothing), ask (a person has to approve) or deny"`
	Reason   string `json:"reason,omitempty" jsonschema:"for the model and for people, at most 500 characters"`
}

// CancelParams are the params of cancel.
type CancelParams struct {
	ID int64 `json:"id" jsonschema:"id of the request that nobody waits for any longer"`
}

// HealthResult is the result of health.
type HealthResult struct {
	Status  string  `json:"status" jsonschema:"ok, degraded or failed"`
	Summary string  `json:"summary"`
	Details []Check `json:"details,omitempty"`
}

// Check is one check of a health report.
type Check struct {
	Name    string `json:"name"`
	Status  string `json:"status" jsonschema:"ok, degraded or failed"`
	Message string `json:"message"`
}

// Nothing is the params and the result of messages that carry nothing.
type Nothing struct{}

// EmitParams are the params of emit.
type EmitParams struct {
	Kind      string          `json:"kind"`
	SessionID string          `json:"session_id"`
	Payload   json.RawMessage `json:"payload" jsonschema:"as docs/events has it for the kind"`
}

// RequestParams are the params of request.
type RequestParams struct {
	Kind      string          `json:"kind"`
	SessionID string          `json:"session_id"`
	Payload   json.RawMessage `json:"payload" jsonschema:"as docs/events has it for the kind"`
	TimeoutMS int64           `json:"timeout_ms,omitempty" jsonschema:"limit of the wait; one minute if it is 0 or absent, at most ten"`
}

// RequestResult is the result of request.
type RequestResult struct {
	Event Event `json:"event" jsonschema:"the event that answers"`
}

// LogParams are the params of log.
type LogParams struct {
	Level   string `json:"level" jsonschema:"debug, info, warn or error"`
	Message string `json:"message"`
}

// ProgressParams are the params of progress.
type ProgressParams struct {
	ID       int64    `json:"id" jsonschema:"id of the request tool.call"`
	Progress float64  `json:"progress"`
	Total    *float64 `json:"total,omitempty"`
	Message  string   `json:"message,omitempty"`
}

// Messages has the params and results of all methods, by their names in the schema.
var Messages = map[string]any{
	"initialize.params": InitializeParams{}, "initialize.result": InitializeResult{},
	"event.params": EventParams{}, "event.result": Nothing{},
	"tool.call.params": CallParams{}, "tool.call.result": CallResult{},
	"guard.params": GuardParams{}, "guard.result": GuardResult{},
	"health.params": Nothing{}, "health.result": HealthResult{},
	"shutdown.params": Nothing{}, "shutdown.result": Nothing{},
	"cancel.params": CancelParams{},
	"emit.params":   EmitParams{}, "emit.result": Nothing{},
	"request.params": RequestParams{}, "request.result": RequestResult{},
	"config.params": Nothing{}, "config.result": Settings{},
	"log.params":      LogParams{},
	"progress.params": ProgressParams{},
}
