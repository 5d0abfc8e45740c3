package servers

import "path/filepath"

// Location is a place where another client keeps its servers.
type Location struct {
	Client string
	Path   string
	Format Format
}

// Locations lists where the known clients keep their user configuration, for a
// home directory and an operating system (as in runtime.GOOS). Project files
// are not among them: they come from whoever wrote the project (R18).
func Locations(home, goos string) []Location {
	config := filepath.Join(home, ".config")
	if goos == "darwin" {
		config = filepath.Join(home, "Library", "Application Support")
	}
	at := func(client string, f Format, elem ...string) Location {
		return Location{client, filepath.Join(elem...), f}
	}
	return []Location{
		at("Claude Desktop", FormatClaudeDesktop, config, "Claude", "claude_desktop_config.json"),
		at("Claude Code", FormatClaudeCode, home, ".claude.json"),
		at("VS Code", FormatVSCode, config, "Code", "User", "mcp.json"),
		at("Cursor", FormatCursor, home, ".cursor", "mcp.json"),
		at("Codex", FormatCodex, home, ".codex", "config.toml"),
		at("Gemini CLI", FormatGemini, home, ".gemini", "settings.json"),
		at("opencode", FormatOpencode, home, ".config", "opencode", "opencode.json"),
		at("goose", FormatGoose, home, ".config", "goose", "config.yaml"),
	}
}
