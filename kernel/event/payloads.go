package event

import (
	"encoding/json"
	"slices"
)

// Request carries the id of the event that a payload answers. It is additive:
// hand-written fixtures may leave it out.
type Request struct {
	RequestID string `json:"request_id,omitempty"`
}

// RequestRef implements [Responder].
func (r Request) RequestRef() string { return r.RequestID }

// Attachment is a file that comes with a user message.
type Attachment struct {
	Ref      string `json:"ref"`
	MimeType string `json:"mime_type"`
	Name     string `json:"name,omitempty"`
}

// UserMessage is the payload of user.message.received.
type UserMessage struct {
	Text        string       `json:"text"`
	Attachments []Attachment `json:"attachments,omitempty"`
}

// Empty is the payload of kinds that carry nothing.
type Empty struct{}

// Delta is a chunk of the assistant's text.
type Delta struct {
	Content string `json:"content"`
}

// ToolCall is a call that the model asked for. Args stays raw, so that what was
// asked for is what runs.
type ToolCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

// AssistantMessage is the payload of assistant.message.done.
type AssistantMessage struct {
	Content   string     `json:"content"`
	ToolCalls []ToolCall `json:"tool_calls"`
}

// Message is one message of a model's history.
type Message struct {
	Role       string     `json:"role"`
	Content    string     `json:"content"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	// Reasoning belongs to an assistant's message with calls.
	Reasoning []Reasoning `json:"reasoning,omitempty"`
	// Note is the name of a [TurnNote]. Its role is "note" in histories, and "user" in requests
	// to providers, which know no other role for what is said in between.
	Note string `json:"note,omitempty"`
	// Tool says that a client's tool has said it, in a message of the user.
	Tool bool `json:"tool,omitempty"`
	// Attachments belong to a user's message; Images are those that a model can see,
	// with their content, in requests to providers.
	Attachments []Attachment `json:"attachments,omitempty"`
	Images      []Image      `json:"images,omitempty"`
}

// Image is a picture in the form that a provider forwards.
type Image struct {
	MimeType string `json:"mime_type"`
	Data     []byte `json:"data"` // base64 in JSON
}

// ToolSchema describes a tool to a model, in OpenAI's format.
type ToolSchema struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// SchemaV1 is the schema version that the dispatcher acts on.
const SchemaV1 = "v1"

// ToolRequest is the payload of tool.call.request.
type ToolRequest struct {
	ID            string          `json:"id"`
	Name          string          `json:"name"`
	Args          json.RawMessage `json:"args"`
	SchemaVersion string          `json:"schema_version,omitempty"`
	Request
}

// ToolResult is the payload of tool.call.result.
type ToolResult struct {
	ID       string          `json:"id"`
	OK       bool            `json:"ok"`
	Value    json.RawMessage `json:"value,omitempty"`
	Error    string          `json:"error,omitempty"`
	Envelope json.RawMessage `json:"envelope,omitempty"`
	Request
}

// ToolErrorKind says why a tool never ran.
type ToolErrorKind string

// The closed set of ToolErrorKind.
const (
	ToolValidation ToolErrorKind = "validation"
	ToolNotFound   ToolErrorKind = "not_found"
	ToolRejected   ToolErrorKind = "rejected"
)

// ToolError is the payload of tool.error, which only the dispatcher emits. Brief has at
// most 80 characters. NotRun says that the tool never began: it has not refused the call itself. That
// is for the kernel, and not in the contract's JSON.
type ToolError struct {
	ID     string          `json:"id"`
	Kind   ToolErrorKind   `json:"kind"`
	Brief  string          `json:"brief"`
	Detail json.RawMessage `json:"detail,omitempty"`
	NotRun bool            `json:"-"`
	Request
}

// ToolProgress is the payload of tool.progress.
type ToolProgress struct {
	ID       string   `json:"id"`
	Progress float64  `json:"progress"`
	Total    *float64 `json:"total,omitempty"`
	Message  string   `json:"message,omitempty"`
}

// ApprovalRequest is the payload of approval.request.
type ApprovalRequest struct {
	ID       string          `json:"id"`
	ToolName string          `json:"tool_name"`
	Params   json.RawMessage `json:"params"`
	Brief    string          `json:"brief"`
}

// ApprovalAnswer is a person's answer to an approval request.
type ApprovalAnswer string

// The closed set of ApprovalAnswer.
const (
	Approve           ApprovalAnswer = "approve"
	ApproveForSession ApprovalAnswer = "approve_for_session"
	Reject            ApprovalAnswer = "reject"
)

// ApprovalResponse is the payload of approval.response.
type ApprovalResponse struct {
	ID       string         `json:"id"`
	Response ApprovalAnswer `json:"response"`
	Feedback string         `json:"feedback,omitempty"`
}

// ApprovalCancelled is the payload of approval.cancelled; Reason is
// "timeout" or "shutdown".
type ApprovalCancelled struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// MemoryEntry is one remembered fact.
type MemoryEntry struct {
	ID   string            `json:"id,omitempty"`
	Text string            `json:"text"`
	Meta map[string]string `json:"meta,omitempty"`
}

// MemoryQuery is the payload of memory.query.
type MemoryQuery struct {
	Query string `json:"query"`
	K     int    `json:"k"`
	// Folder is whose entries count, by their meta "folder"; "" has those of no folder count.
	Folder string `json:"folder,omitempty"`
}

// Wants reports whether an entry may be told to the session that asks: what was said in a folder stays there, and a
// session has in its history what it said itself.
func (q MemoryQuery) Wants(e MemoryEntry, session string) bool {
	of := e.Meta["session_id"]
	return e.Meta["folder"] == q.Folder && (of == "" || Root(of) != Root(session))
}

// MemoryWrite is the payload of memory.write.
type MemoryWrite struct {
	Entry MemoryEntry `json:"entry"`
}

// MemoryResult is the payload of memory.result.
type MemoryResult struct {
	Hits []MemoryEntry `json:"hits"`
	Request
}

// LoopState is the view of a turn that a strategy gets.
type LoopState struct {
	TurnID    string     `json:"turn_id"`
	Step      int        `json:"step"` // model calls made so far
	Messages  []Message  `json:"messages"`
	ToolNames []string   `json:"tool_names"`
	Pending   []ToolCall `json:"pending,omitempty"` // calls that the model asked for and that did not run yet
	Recalled  bool       `json:"recalled"`          // memory was asked in this turn
	Answered  bool       `json:"answered"`          // the model has answered without calling tools, and nothing was said since
	Answer    string     `json:"answer,omitempty"`  // what it said last
	Window    int        `json:"window,omitempty"`  // of the model, in tokens; a guess if nobody has named it
}

// Asked returns what the user said last, "" if that is not in the history.
func (s LoopState) Asked() string {
	for _, m := range slices.Backward(s.Messages) {
		if m.Role == "user" && !m.Tool {
			return m.Content
		}
	}
	return ""
}

// DecideRequest is the payload of strategy.decide.request.
type DecideRequest struct {
	State LoopState `json:"state"`
}

// Next is a strategy's decision.
type Next string

// The closed set of Next.
const (
	NextLLM    Next = "llm"
	NextTool   Next = "tool"
	NextMemory Next = "memory"
	NextDone   Next = "done"
)

// DecideResponse is the payload of strategy.decide.response; the fields
// after Next qualify the decision.
type DecideResponse struct {
	Next     Next            `json:"next"`
	Provider string          `json:"provider,omitempty"` // of an llm step; the active one without
	Model    string          `json:"model,omitempty"`
	System   string          `json:"system,omitempty"` // system prompt of an llm step
	Tools    []string        `json:"tools,omitempty"`  // names to offer; none means all
	Query    string          `json:"query,omitempty"`  // of a memory step
	K        int             `json:"k,omitempty"`      // hits of a memory step
	Params   json.RawMessage `json:"params,omitempty"`
	Remember string          `json:"remember,omitempty"` // of done: what to write to memory
	// Folder is whose memories are asked for, of a memory step, and what the new entry belongs to, of done.
	Folder string `json:"folder,omitempty"`
	// ToolCalls are the strategy's own calls, with [NextTool], once the model has
	// answered.
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	// Notes are told to the model before an llm step, each unless the history has it already, as
	// the last one of its name.
	Notes []TurnNote `json:"notes,omitempty"`
	Request
}

// PluginLoaded is the payload of plugin.loaded.
type PluginLoaded struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Category string `json:"category"`
}

// PluginReloaded is the payload of plugin.reloaded.
type PluginReloaded struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// PluginRemoved is the payload of plugin.removed.
type PluginRemoved struct {
	Name string `json:"name"`
}

// PluginError is the payload of plugin.error.
type PluginError struct {
	Name  string `json:"name"`
	Error string `json:"error"`
}

// KernelReady is the payload of kernel.ready.
type KernelReady struct {
	Version string `json:"version"`
}

// KernelShutdown is the payload of kernel.shutdown.
type KernelShutdown struct {
	Reason string `json:"reason"`
}

// KernelError is the payload of kernel.error.
type KernelError struct {
	Source  string          `json:"source"`
	Message string          `json:"message"`
	Detail  json.RawMessage `json:"detail,omitempty"`
}

// SessionStarted is the payload of session.started.
type SessionStarted struct {
	SessionID string `json:"session_id"`
	TapeName  string `json:"tape_name"`
	Workspace string `json:"workspace"`
}

// SessionHandoff is the payload of session.handoff.
type SessionHandoff struct {
	SessionID string          `json:"session_id"`
	Name      string          `json:"name"`
	State     json.RawMessage `json:"state"`
}

// SessionReset is the payload of session.reset; ArchivePath is null when
// nothing was archived.
type SessionReset struct {
	SessionID   string  `json:"session_id"`
	ArchivePath *string `json:"archive_path"`
}

// SessionArchived is the payload of session.archived.
type SessionArchived struct {
	SessionID   string `json:"session_id"`
	ArchivePath string `json:"archive_path"`
}

// SessionDeleted is the payload of session.deleted.
type SessionDeleted struct {
	SessionID string `json:"session_id"`
}

// SessionForked is the payload of session.forked.
type SessionForked struct {
	ParentID string `json:"parent_id"`
	ChildID  string `json:"child_id"`
}

// CompactionStarted is the payload of session.compaction.started.
type CompactionStarted struct {
	TargetSessionID string `json:"target_session_id"`
	TokensBefore    int    `json:"tokens_before"`
}

// How a history was compacted.
const (
	Summarized = "summarized" // its older part was replaced by a summary
	Shortened  = "shortened"  // long results of tools were cut
)

// CompactionCompleted is the payload of session.compaction.completed.
type CompactionCompleted struct {
	TargetSessionID string `json:"target_session_id"`
	TokensBefore    int    `json:"tokens_before"`
	TokensAfter     int    `json:"tokens_after"`
	How             string `json:"how,omitempty"` // [Summarized] or [Shortened]
}

// CompactionFailed is the payload of session.compaction.failed.
type CompactionFailed struct {
	TargetSessionID string `json:"target_session_id"`
	Error           string `json:"error"`
}

// ConfigUpdated is the payload of config.updated.
type ConfigUpdated struct {
	Key             string `json:"key"`
	PrefixMatchHint string `json:"prefix_match_hint"`
}

// ContextAttached is the payload of session.context.attached.
type ContextAttached struct {
	SessionID    string `json:"session_id"`
	ConnectionID string `json:"connection_id"`
	AdapterID    string `json:"adapter_id"`
}

// ContextDetached is the payload of session.context.detached; Reason is
// client_close, timeout, shutdown or send_failed.
type ContextDetached struct {
	SessionID    string `json:"session_id"`
	ConnectionID string `json:"connection_id"`
	Reason       string `json:"reason"`
}

// ContextEvicted is the payload of session.context.evicted, which nothing emits yet: the
// kind is reserved (Y-58).
type ContextEvicted struct {
	SessionID string `json:"session_id"`
	Reason    string `json:"reason"`
}

// ReplayEntry is the payload of session.replay.entry.
type ReplayEntry struct {
	SessionID string          `json:"session_id"`
	EntryID   int64           `json:"entry_id"`
	Kind      string          `json:"kind"`
	Payload   json.RawMessage `json:"payload"`
}

// ReplayDone is the payload of session.replay.done.
type ReplayDone struct {
	SessionID    string `json:"session_id"`
	ConnectionID string `json:"connection_id"`
	Replayed     int    `json:"replayed"`
}

// TurnStarted is the payload of turn.started. ToolGeneration is the generation
// of the tool snapshot that the turn has pinned.
type TurnStarted struct {
	TurnID         string `json:"turn_id"`
	Model          string `json:"model,omitempty"`
	ToolGeneration uint64 `json:"tool_generation"`
}

// TurnCompleted is the payload of turn.completed.
type TurnCompleted struct {
	TurnID string `json:"turn_id"`
	Usage  Usage  `json:"usage"`
	Steps  int    `json:"steps"`
	// CostUSD is the cost of the turn in US dollars, as far as prices are known.
	CostUSD float64 `json:"cost_usd,omitempty"`
	// StopReason is [StopRefusal] if the model or its service has refused to go on with the last
	// answer; "" otherwise.
	StopReason StopReason `json:"stop_reason,omitempty"`
}

// Denied is the kind of the failure of a turn whose message was denied. The model gets that message
// with no later one.
const Denied = "denied"

// TurnFailed is the payload of turn.failed.
type TurnFailed struct {
	TurnID string `json:"turn_id"`
	Error  string `json:"error"`
	Kind   string `json:"kind"`
}

// TurnCancelled is the payload of turn.cancelled.
type TurnCancelled struct {
	TurnID string `json:"turn_id"`
	Reason string `json:"reason"`
}

// Notice is the payload of turn.notice: a sentence for the people who read a conversation. Models do not
// get it.
type Notice struct {
	Text string `json:"text"`
}

// TurnNote is the payload of turn.note: what yaya tells the model, at this place of the history
// and in no later request changed. Of two notes with one name, the later one counts.
type TurnNote struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// NotePlan is the name of notes with the plan of a model. The last one stays when a history is
// summarized.
const NotePlan = "plan"

// VerifyStarted is the payload of verify.started.
type VerifyStarted struct {
	TurnID  string `json:"turn_id"`
	Command string `json:"command"`
}

// VerifyCompleted is the payload of verify.completed.
type VerifyCompleted struct {
	TurnID    string `json:"turn_id"`
	Command   string `json:"command"`
	ExitCode  *int   `json:"exit_code,omitempty"`
	OutputRef string `json:"output_ref,omitempty"`
}
