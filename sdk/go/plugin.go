package yaya

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// ABI is the version of the protocol that this package speaks.
const ABI = 1

// Plugin describes a plugin and its handlers. Name, Version and Category are as in its
// plugin.toml.
type Plugin struct {
	Name, Version, Category string
	Tools                   []Tool // for category tool
	// OnStart is called once, before everything else. Optional.
	OnStart func(ctx context.Context, h *Host) error
	// OnEvent handles one event that plugin.toml subscribes to. An error counts as a failure
	// of the plugin. Optional.
	OnEvent func(ctx context.Context, h *Host, ev Event) error
	// GuardTool decides about a call of a tool before it runs, whoever makes it, and
	// GuardPrompt about messages of the user before the model gets them. permissions.guards
	// of plugin.toml names pre_tool and prompt, for those that are set and no others. An error
	// denies, and counts as a failure of the plugin.
	GuardTool   func(ctx context.Context, h *Host, c GuardedCall) (Verdict, error)
	GuardPrompt func(ctx context.Context, h *Host, p GuardedPrompt) (Verdict, error)
	// Health reports how the plugin is. Optional.
	Health func(ctx context.Context) Health
	// OnShutdown is called before the plugin ends. Optional.
	OnShutdown func(ctx context.Context)
}

// Event is an event. Payload is as docs/events has it for the kind.
type Event struct {
	ID        string          `json:"id"`
	Kind      string          `json:"kind"`
	SessionID string          `json:"session_id"`
	TS        float64         `json:"ts"` // unix seconds
	Source    string          `json:"source"`
	Payload   json.RawMessage `json:"payload"`
}

// Tool is a tool that the model can call. [NewTool] makes one.
type Tool struct {
	Name             string          `json:"name"`
	Title            string          `json:"title,omitempty"`
	Description      string          `json:"description"`
	InputSchema      json.RawMessage `json:"input_schema"`
	OutputSchema     json.RawMessage `json:"output_schema,omitempty"`
	Kind             string          `json:"kind,omitempty"` // read, write, exec (default) or network
	RequiresApproval bool            `json:"requires_approval,omitempty"`
	TimeoutMS        int64           `json:"timeout_ms,omitempty"` // 120 s if it is 0

	// Run runs one call. An error is a failed call with its text.
	Run func(ctx context.Context, c *Call) (Result, error) `json:"-"`
}

// NewTool returns a tool whose arguments are a struct. The schema follows from its fields: the
// tag json names them, the tag doc describes them, and those without omitempty are required.
func NewTool[A any](name, description string, run func(ctx context.Context, c *Call, args A) (Result, error)) Tool {
	return Tool{
		Name: name, Description: description, InputSchema: schemaOf[A](),
		Run: func(ctx context.Context, c *Call) (Result, error) {
			var args A
			if err := json.Unmarshal(c.Args, &args); err != nil {
				return Fail("validation", fmt.Sprintf("invalid arguments: %v", err)), nil
			}
			return run(ctx, c, args)
		},
	}
}

// Call is one call of a tool.
type Call struct {
	ID         string          `json:"call_id"`
	Name       string          `json:"name"`
	Args       json.RawMessage `json:"args"`
	SessionID  string          `json:"session_id"`
	TurnID     string          `json:"turn_id"`
	DeadlineMS int64           `json:"deadline_ms"`

	Host *Host `json:"-"`
	id   json.RawMessage
}

// Progress reports how far a call is; total may be 0 if it is not known.
func (c *Call) Progress(progress, total float64, message string) {
	p := map[string]any{"id": c.id, "progress": progress}
	if total > 0 {
		p["total"] = total
	}
	if message != "" {
		p["message"] = message
	}
	c.Host.notify("progress", p)
}

// Result is the result of a call.
type Result struct {
	OK         bool            `json:"ok"`
	ErrorKind  string          `json:"error_kind,omitempty"`
	Brief      string          `json:"brief,omitempty"`
	Display    []Block         `json:"display,omitempty"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Detail     json.RawMessage `json:"detail,omitempty"`
}

// Block is a piece of a result.
type Block struct {
	Kind     string          `json:"kind"` // text, markdown or json
	Text     string          `json:"text,omitempty"`
	Markdown string          `json:"markdown,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"`
}

// Text returns a successful result.
func Text(text string) Result {
	return Result{OK: true, Display: []Block{{Kind: "text", Text: text}}}
}

// Markdown returns a successful result in Markdown.
func Markdown(text string) Result {
	return Result{OK: true, Display: []Block{{Kind: "markdown", Markdown: text}}}
}

// JSON returns a successful result with a value, which must marshal.
func JSON(v any) (Result, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return Result{}, err
	}
	return Result{OK: true, Display: []Block{{Kind: "json", Data: raw}}, Structured: raw}, nil
}

// Fail returns a failed result; kind is one of tool, validation, not_found, rejected, timeout,
// unavailable and internal.
func Fail(kind, text string) Result {
	return Result{ErrorKind: kind, Brief: text, Display: []Block{{Kind: "text", Text: text}}}
}

// Health is how a plugin is: Status is ok, degraded or failed.
type Health struct {
	Status  string  `json:"status"`
	Summary string  `json:"summary"`
	Details []Check `json:"details,omitempty"`
}

// Check is one part of a health report.
type Check struct {
	Name    string `json:"name"`
	Status  string `json:"status"`
	Message string `json:"message"`
}

// Error is an error of yaya: a request of the plugin was refused or failed.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Message }

// The codes of errors.
const (
	CodeRefused = -32001
	CodeBusy    = -32002
	CodeTimeout = -32003
	CodeFailed  = -32004
)

// Instance is a configured instance of a model provider.
type Instance struct {
	ID     string                     `json:"id"`
	Label  string                     `json:"label"`
	Config map[string]json.RawMessage `json:"config"`
}

// Settings are the plugin's settings.
type Settings struct {
	Config    map[string]json.RawMessage `json:"config"`
	Providers []Instance                 `json:"providers"`
}

// Get reads a setting into v. It reports false if it is not set.
func (s Settings) Get(field string, v any) (bool, error) {
	raw, ok := s.Config[field]
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return true, fmt.Errorf("setting %s: %w", field, err)
	}
	return true, nil
}

// ErrClosed is returned when yaya no longer listens.
var ErrClosed = errors.New("yaya has ended the connection")
