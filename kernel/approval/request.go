package approval

import (
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Request is a recorded ask: the content that people see, and the digests that it
// binds.
type Request struct {
	event.ApprovalRequest
	CallID    string                 `json:"call_id"`    // of the call that waits
	SessionID string                 `json:"session_id"` // where the call is made
	Deadline  time.Time              `json:"deadline"`
	Decisions []event.ApprovalAnswer `json:"decisions"`
	Digest    string                 `json:"digest"` // of identity, definition, arguments and what the call was prepared to use
	// Sandbox and Weaker come from [tool.Prepared], for the audit. The shown content
	// also has them, but a tool's arguments could imitate them there.
	Sandbox string   `json:"-"`
	Weaker  []string `json:"-"`
	// Def and Why are of the call: its tool, and what the rule or the hook says that asks.
	Def tool.Definition `json:"-"`
	Why string          `json:"-"`
}

// Decision is a recorded answer.
type Decision struct {
	event.ApprovalResponse
	By       string `json:"by"` // the source that answered
	ToolName string `json:"tool_name"`
	CallID   string `json:"call_id"`
}

// Withdrawal records the end of an ask without an answer.
type Withdrawal struct {
	event.ApprovalCancelled
	ToolName string `json:"tool_name"`
	CallID   string `json:"call_id"`
}
