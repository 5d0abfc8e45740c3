package servers

import "time"

// dialect describes how a format differs from the others.
type dialect struct {
	client string   // the client that uses the format
	top    []string // members that may contain the servers; the first present one counts
	// unit is the unit of "timeout", which bounds a call or the start.
	unit   time.Duration
	starts bool
	// unsetIsEmpty says that an unset variable is empty instead of an error; dollar says that
	// $NAME is a variable as well as ${NAME}.
	unsetIsEmpty, dollar bool
	// variables rewrites variables in any other syntax.
	variables func(string) (string, error)
	// plainSSE says that a URL without a type means HTTP+SSE.
	plainSSE bool
	// noneIsNone says that an empty list of allowed tools allows none; elsewhere it
	// allows all.
	noneIsNone bool
	// literal says that nothing is a variable.
	literal bool
	// filters says that members next to the servers allow and exclude them by name.
	filters bool
}

var mcpServers = []string{"mcpServers"}

var dialects = map[Format]dialect{
	FormatYaya:          {client: "yaya", top: []string{"mcpServers", "mcp_servers"}, unit: time.Millisecond},
	FormatClaudeDesktop: {client: "Claude Desktop", top: mcpServers, unit: time.Millisecond},
	FormatClaudeCode:    {client: "Claude Code", top: []string{"mcpServers", "managedMcpServers"}, unit: time.Millisecond},
	FormatVSCode:        {client: "VS Code", top: []string{"servers", "mcpServers"}, unit: time.Millisecond},
	FormatCursor:        {client: "Cursor", top: mcpServers, unit: time.Millisecond},
	FormatCodex:         {client: "Codex", top: []string{"mcp_servers"}, unit: time.Second, noneIsNone: true},
	FormatGemini:        {client: "Gemini CLI", top: mcpServers, unit: time.Millisecond, unsetIsEmpty: true, dollar: true, plainSSE: true, noneIsNone: true, filters: true},
	FormatQwen:          {client: "Qwen Code", top: mcpServers, unit: time.Millisecond, unsetIsEmpty: true, dollar: true, plainSSE: true, noneIsNone: true, filters: true},
	FormatOpencode:      {client: "opencode", top: []string{"mcp"}, unit: time.Millisecond, starts: true, variables: fromOpencode},
	FormatCrush:         {client: "crush", top: []string{"mcp"}, unit: time.Second, starts: true, variables: fromShell},
	FormatGoose:         {client: "goose", top: []string{"extensions"}, unit: time.Second},
	FormatCline:         {client: "Cline", top: mcpServers, unit: time.Second, plainSSE: true},
	FormatRoo:           {client: "Roo Code", top: mcpServers, unit: time.Second, plainSSE: true},
	FormatWindsurf:      {client: "Windsurf", top: mcpServers, unit: time.Millisecond},
	FormatZed:           {client: "Zed", top: []string{"context_servers"}, unit: time.Second},
	FormatLMStudio:      {client: "LM Studio", top: mcpServers, unit: time.Millisecond},
	FormatAmazonQ:       {client: "Amazon Q", top: mcpServers, unit: time.Millisecond},
	FormatKiro:          {client: "Kiro", top: mcpServers, unit: time.Millisecond},
	FormatJunie:         {client: "Junie", top: mcpServers, unit: time.Millisecond},
	FormatJetBrains:     {client: "GitHub Copilot for JetBrains", top: []string{"servers", "mcpServers"}, unit: time.Millisecond},
	FormatKimi:          {client: "Kimi Code", top: mcpServers, unit: time.Millisecond, noneIsNone: true},
	FormatCopilotCLI:    {client: "Copilot CLI", top: mcpServers, unit: time.Millisecond, dollar: true, noneIsNone: true},
	FormatWarp:          {client: "Warp", top: mcpServers, unit: time.Millisecond},
	FormatAgentPlugins:  {client: "Agent Plugins", top: mcpServers, unit: time.Millisecond, literal: true},
	FormatContinue:      {client: "Continue", top: mcpServers, unit: time.Millisecond, variables: fromContinue},
}

// Client returns the name of the client that uses the format.
func (f Format) Client() string { return dialects[f].client }
