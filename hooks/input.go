package hooks

import (
	"encoding/json"

	"github.com/yaya-ai/yaya/internal/hookconf"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Call is the call that a test of a hook is about.
type Call struct {
	Tool, Prompt string
	Input        json.RawMessage
}

func (c Call) body() body {
	b := body{Prompt: c.Prompt}
	if c.Tool != "" {
		b.Tool = &toolBody{Name: c.Tool, Kind: tool.KindExec, Origin: tool.OriginLoop, Input: c.Input}
		if len(c.Input) == 0 {
			b.Tool.Input = json.RawMessage("{}")
		}
	}
	return b
}

// body describes an event for a hook.
type body struct {
	Event     hookconf.Event  `json:"event"`
	Hook      string          `json:"hook"`
	SessionID string          `json:"session_id,omitempty"`
	Cwd       string          `json:"cwd"`
	Tool      *toolBody       `json:"tool,omitempty"`
	Result    *resultBody     `json:"result,omitempty"`
	Prompt    string          `json:"prompt,omitempty"`
	Kind      string          `json:"kind,omitempty"` // of the event that is observed
	Data      json.RawMessage `json:"data,omitempty"`
}

type toolBody struct {
	Name      string          `json:"name"`
	Server    string          `json:"server,omitempty"`
	Kind      tool.Kind       `json:"kind"`
	Origin    tool.Origin     `json:"origin"`
	Principal string          `json:"principal,omitempty"`
	CallID    string          `json:"call_id,omitempty"`
	Input     json.RawMessage `json:"input"`
	// Shown describes the call as a person sees it who is asked.
	Shown json.RawMessage `json:"shown,omitempty"`
}

type resultBody struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

// claudeBody is the same in the protocol of Claude Code.
type claudeBody struct {
	SessionID      string          `json:"session_id"`
	TranscriptPath string          `json:"transcript_path"`
	Cwd            string          `json:"cwd"`
	PermissionMode string          `json:"permission_mode"`
	Event          string          `json:"hook_event_name"`
	ToolName       string          `json:"tool_name,omitempty"`
	ToolInput      json.RawMessage `json:"tool_input,omitempty"`
	ToolUseID      string          `json:"tool_use_id,omitempty"`
	ToolResponse   *resultBody     `json:"tool_response,omitempty"`
	Prompt         string          `json:"prompt,omitempty"`
	Source         string          `json:"source,omitempty"`
	Trigger        string          `json:"trigger,omitempty"`
	StopHookActive *bool           `json:"stop_hook_active,omitempty"`
}

// input returns the standard input of a hook.
func (b body) input(hook hookconf.Hook, session, dir string) any {
	b.Event, b.Hook, b.SessionID, b.Cwd = hook.Event, hook.Name, session, dir
	if !hook.Claude {
		return b
	}
	c := claudeBody{SessionID: session, Cwd: dir, PermissionMode: "default", Event: hookconf.ClaudeName(hook.Event), Prompt: b.Prompt, ToolResponse: b.Result}
	if b.Tool != nil {
		c.ToolName, c.ToolInput, c.ToolUseID = claudeNames(b.Tool.Name, b.Tool.Server)[0], b.Tool.Input, b.Tool.CallID
	}
	switch hook.Event {
	case hookconf.SessionStart:
		c.Source = "startup"
	case hookconf.PreCompact:
		c.Trigger = "auto"
	case hookconf.TurnEnd:
		c.StopHookActive = new(bool)
	case hookconf.Prompt, hookconf.PreTool, hookconf.PostTool, hookconf.Approval, hookconf.ServerState:
	}
	return c
}

// claudeTools are the names that Claude Code has for tools like yaya's, the first is that under
// which a hook learns of a call.
var claudeTools = map[string][]string{
	"shell": {"Bash"}, "apply_patch": {"Edit", "Write", "MultiEdit", "NotebookEdit"}, "edit": {"Edit", "MultiEdit"}, "multi_read": {"Read"}, "todo": {"TodoWrite"}, "read_file": {"Read"}, "web_fetch": {"WebFetch"}, "web_search": {"WebSearch"}, "propose_plan": {"ExitPlanMode"}, "search": {"Grep"},
	"shell_output": {"BashOutput"}, "shell_stop": {"KillShell", "KillBash"}, "repo_tree": {"Glob", "LS"}, "mcp_resources": {"ListMcpResourcesTool"}, "mcp_read": {"ReadMcpResourceTool"}, "agent": {"Task", "Agent"}, "skill": {"Skill"},
}

// claudeNames are the names of a tool in the protocol of Claude Code.
func claudeNames(name, server string) []string {
	if server != "" {
		return []string{"mcp__" + name}
	}
	if names := claudeTools[name]; names != nil {
		return names
	}
	return []string{name}
}

// names are all names of a tool, for the matcher of a hook.
func names(hook hookconf.Hook, def tool.Definition) []string {
	if hook.Claude {
		return append(claudeNames(def.Name, def.Identity.Provider), def.Name)
	}
	return []string{def.Name}
}
