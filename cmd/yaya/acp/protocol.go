package acp

import "encoding/json"

// version is the version of the protocol that yaya speaks.
const version = 1

// The types of the protocol, as far as yaya uses them.
type (
	initialized struct {
		Version      int          `json:"protocolVersion"`
		Capabilities capabilities `json:"agentCapabilities"`
		Auth         []struct{}   `json:"authMethods"`
		Agent        named        `json:"agentInfo"`
	}
	capabilities struct {
		Load    bool                `json:"loadSession"`
		Prompt  map[string]bool     `json:"promptCapabilities"`
		Session map[string]struct{} `json:"sessionCapabilities"`
	}
	named struct {
		Name    string `json:"name"`
		Title   string `json:"title"`
		Version string `json:"version"`
	}

	// opening is session/new, session/load and session/resume.
	opening struct {
		Session string   `json:"sessionId"`
		Folder  string   `json:"cwd"`
		More    []string `json:"additionalDirectories"`
		Servers []struct {
			Name string `json:"name"`
		} `json:"mcpServers"`
	}
	inSession struct {
		Session string `json:"sessionId"`
	}
	begun struct {
		Session string         `json:"sessionId"`
		Modes   modes          `json:"modes"`
		Options []configOption `json:"configOptions,omitempty"`
		s       *session
	}
	loaded struct {
		Modes   modes          `json:"modes"`
		Options []configOption `json:"configOptions,omitempty"`
		s       *session
	}
	modes struct {
		Current string `json:"currentModeId"`
		All     []mode `json:"availableModes"`
	}
	mode struct {
		ID          string `json:"id"`
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	setMode struct {
		Session string `json:"sessionId"`
		Mode    string `json:"modeId"`
	}
	inMode struct {
		Kind string `json:"sessionUpdate"`
		Mode string `json:"currentModeId"`
	}
	configOption struct {
		ID          string        `json:"id"`
		Name        string        `json:"name"`
		Description string        `json:"description"`
		Category    string        `json:"category"`
		Type        string        `json:"type"` // select
		Now         string        `json:"currentValue"`
		Options     []configValue `json:"options"`
	}
	configValue struct {
		Value       string `json:"value"`
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
	}
	setOption struct {
		Session string `json:"sessionId"`
		Option  string `json:"configId"`
		Value   string `json:"value"`
	}
	optionsNow struct {
		Options []configOption `json:"configOptions"`
	}
	optionsChanged struct {
		Kind    string         `json:"sessionUpdate"` // config_option_update
		Options []configOption `json:"configOptions"`
	}
	offered struct {
		Kind     string  `json:"sessionUpdate"` // available_commands_update
		Commands []offer `json:"availableCommands"`
	}
	offer struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Input       *hint  `json:"input,omitempty"`
	}
	hint struct {
		Hint string `json:"hint"`
	}
	listing struct {
		Folder string `json:"cwd"`
		Cursor string `json:"cursor"`
	}
	listed struct {
		Sessions []listedSession `json:"sessions"`
		Next     string          `json:"nextCursor,omitempty"`
	}
	listedSession struct {
		ID      string `json:"sessionId"`
		Folder  string `json:"cwd"`
		Title   string `json:"title,omitempty"`
		Updated string `json:"updatedAt,omitempty"`
	}
	prompt struct {
		Session string  `json:"sessionId"`
		Content []block `json:"prompt"`
	}
	stopped struct {
		Reason string `json:"stopReason"`
	}

	// block is a piece of content, as in MCP.
	block struct {
		Type     string `json:"type"`
		Text     string `json:"text,omitempty"`
		Data     string `json:"data,omitempty"` // base64
		MimeType string `json:"mimeType,omitempty"`
		Name     string `json:"name,omitempty"`
		URI      string `json:"uri,omitempty"`
		Resource *struct {
			URI      string `json:"uri"`
			Text     string `json:"text"`
			Blob     string `json:"blob"`
			MimeType string `json:"mimeType"`
		} `json:"resource,omitempty"`
	}

	notice struct {
		Session string `json:"sessionId"`
		Update  any    `json:"update"`
	}
	chunk struct {
		Kind    string `json:"sessionUpdate"` // …_message_chunk
		Message string `json:"messageId,omitempty"`
		Content block  `json:"content"`
	}
	plan struct {
		Kind    string  `json:"sessionUpdate"` // plan
		Entries []entry `json:"entries"`
	}
	entry struct {
		Content  string `json:"content"`
		Priority string `json:"priority"`
		Status   string `json:"status"`
	}
	info struct {
		Kind  string `json:"sessionUpdate"` // session_info_update
		Title string `json:"title"`
	}
	// toolCall is a call when it is announced, and what has changed of it later.
	toolCall struct {
		Update    string          `json:"sessionUpdate,omitempty"` // tool_call, tool_call_update; "" in a question
		ID        string          `json:"toolCallId"`
		Title     string          `json:"title,omitempty"`
		Kind      string          `json:"kind,omitempty"`
		Status    string          `json:"status,omitempty"`
		Content   []content       `json:"content,omitempty"`
		Locations []location      `json:"locations,omitempty"`
		Input     json.RawMessage `json:"rawInput,omitempty"`
	}
	content struct {
		Type    string  `json:"type"` // content, diff
		Content *block  `json:"content,omitempty"`
		Path    string  `json:"path,omitempty"`
		Old     *string `json:"oldText,omitempty"`
		New     *string `json:"newText,omitempty"`
	}
	location struct {
		Path string `json:"path"`
	}

	question struct {
		Session string   `json:"sessionId"`
		Call    toolCall `json:"toolCall"`
		Options []option `json:"options"`
	}
	option struct {
		ID   string `json:"optionId"`
		Name string `json:"name"`
		Kind string `json:"kind"`
	}
	chosen struct {
		Outcome struct {
			Outcome string `json:"outcome"` // selected, cancelled
			Option  string `json:"optionId"`
		} `json:"outcome"`
	}
)

// The statuses of a call.
const (
	pending   = "pending"
	running   = "in_progress"
	completed = "completed"
	failed    = "failed"
)

func (b begun) opened() *session  { return b.s }
func (l loaded) opened() *session { return l.s }

func text(s string) block { return block{Type: "text", Text: s} }

func shown(s string) content {
	b := text(s)
	return content{Type: "content", Content: &b}
}
