package servers

import (
	"path/filepath"
	"strings"
)

// places are parts of paths, or file names, that identify a format; the first match counts.
var places = []struct {
	part   string
	format Format
}{
	{"/claude_desktop_config.json", FormatClaudeDesktop},
	{"/cline_mcp_settings.json", FormatCline},
	{"rooveterinaryinc.roo-cline", FormatRoo}, {"/.roo/", FormatRoo},
	{"/.warp/", FormatWarp},
	{"/github-copilot/intellij/mcp.json", FormatJetBrains},
	{"/.copilot/", FormatCopilotCLI},
	{"/.codeium/", FormatWindsurf}, {"/.windsurf/", FormatWindsurf},
	{"/.lmstudio/", FormatLMStudio},
	{"amazonq/mcp.json", FormatAmazonQ},
	{"/.kiro/", FormatKiro},
	{"/.junie/", FormatJunie},
	{"/.qwen/", FormatQwen},
	{"/.kimi/", FormatKimi}, {"/.kimi-code/", FormatKimi},
	{"/.continue/", FormatContinue},
	{"/zed/settings.json", FormatZed}, {"/.zed/settings.json", FormatZed},
	{"/.mcp.json", FormatClaudeCode}, {"/.claude.json", FormatClaudeCode},
	{"/.cursor/", FormatCursor},
	{"/.vscode/", FormatVSCode}, {"/Code/User/", FormatVSCode}, {"/Code - Insiders/User/", FormatVSCode},
	{"/.gemini/", FormatGemini},
	{"/opencode.json", FormatOpencode},
	{"/crush.json", FormatCrush}, {"/.crush.json", FormatCrush},
	{"/goose/config.y", FormatGoose},
}

// Detect guesses the format of a file from its name or, if that is inconclusive, from its
// structure.
func Detect(file string, data []byte) Format {
	slash := "/" + filepath.ToSlash(file)
	for _, p := range places {
		if strings.Contains(slash, p.part) {
			return p.format
		}
	}
	doc, err := Decode(file, data)
	if err != nil {
		doc = nil
	}
	_, list := doc["mcpServers"].([]any)
	switch strings.ToLower(filepath.Ext(file)) {
	case ".toml":
		return FormatCodex
	case ".yaml", ".yml":
		if doc["mcpServers"] != nil {
			return FormatContinue
		}
		return FormatGoose
	}
	m, _ := doc["mcp"].(map[string]any)
	switch {
	case list:
		return FormatContinue
	case doc["mcpServers"] != nil:
		return FormatClaudeCode
	case doc["context_servers"] != nil:
		return FormatZed
	case doc["servers"] != nil:
		return jetBrainsOr(doc["servers"])
	case m != nil && m["servers"] == nil:
		return crushOr(m)
	case doc["extensions"] != nil:
		return FormatGoose
	case bare(doc):
		return FormatWarp
	}
	return FormatClaudeCode
}

// jetBrainsOr tells the two clients apart that call the object "servers".
func jetBrainsOr(servers any) Format {
	m, _ := servers.(map[string]any)
	for _, v := range m {
		if obj, ok := v.(map[string]any); ok && obj["requestInit"] != nil {
			return FormatJetBrains
		}
	}
	return FormatVSCode
}

// crushOr tells the two clients apart that call the object "mcp": opencode's types
// are local and remote.
func crushOr(servers map[string]any) Format {
	for _, v := range servers {
		if obj, ok := v.(map[string]any); ok {
			switch obj["type"] {
			case "stdio", "http", "sse":
				return FormatCrush
			}
		}
	}
	return FormatOpencode
}
