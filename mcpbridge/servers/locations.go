package servers

import (
	"cmp"
	"path/filepath"
)

// Location is a place where another client keeps its servers.
type Location struct {
	Client string
	Path   string
	Format Format
}

// Locations lists the places where the known clients keep their user configuration, for a home
// directory, an operating system (as in runtime.GOOS) and an environment, whose variables can
// move a client's folder. If a client has several places, current versions write the first. The
// list omits project files, which come from the author of the project.
func Locations(home, goos string, env func(string) string) []Location {
	xdg := filepath.Join(home, ".config")
	if dir := env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		xdg = dir
	}
	apps := xdg // of desktop applications
	if goos == "darwin" {
		apps = filepath.Join(home, "Library", "Application Support")
	}
	if dir := env("APPDATA"); goos == "windows" && filepath.IsAbs(dir) {
		apps = dir
	}
	dir := func(variable string, elem ...string) string {
		return cmp.Or(env(variable), filepath.Join(append([]string{home}, elem...)...))
	}
	at := func(client string, f Format, elem ...string) Location {
		return Location{client, filepath.Join(elem...), f}
	}
	claude := at("Claude Code", FormatClaudeCode, home, ".claude.json")
	if d := env("CLAUDE_CONFIG_DIR"); d != "" {
		claude.Path = filepath.Join(d, ".claude.json")
	}
	out := []Location{
		at("Claude Desktop", FormatClaudeDesktop, apps, "Claude", "claude_desktop_config.json"),
		claude,
		at("VS Code", FormatVSCode, apps, "Code", "User", "mcp.json"),
		at("VS Code Insiders", FormatVSCode, apps, "Code - Insiders", "User", "mcp.json"),
		at("Cursor", FormatCursor, home, ".cursor", "mcp.json"),
		at("Codex", FormatCodex, dir("CODEX_HOME", ".codex"), "config.toml"),
		at("Gemini CLI", FormatGemini, home, ".gemini", "settings.json"),
		at("opencode", FormatOpencode, xdg, "opencode", "opencode.json"),
		at("opencode (opencode.jsonc)", FormatOpencode, xdg, "opencode", "opencode.jsonc"),
		at("goose", FormatGoose, xdg, "goose", "config.yaml"),
		at("Windsurf", FormatWindsurf, home, ".codeium", "windsurf", "mcp_config.json"),
		at("Zed", FormatZed, xdg, "zed", "settings.json"),
		at("Cline", FormatCline, dir("CLINE_DIR", ".cline"), "data", "settings", "cline_mcp_settings.json"),
	}
	for _, editor := range []string{"Code", "Cursor", "Windsurf", "VSCodium", "Code - Insiders"} {
		storage := filepath.Join(apps, editor, "User", "globalStorage")
		out = append(out,
			at("Cline in "+editor, FormatCline, storage, "saoudrizwan.claude-dev", "settings", "cline_mcp_settings.json"),
			at("Roo Code in "+editor, FormatRoo, storage, "rooveterinaryinc.roo-cline", "settings", "mcp_settings.json"))
	}
	return append(out,
		at("LM Studio", FormatLMStudio, home, ".lmstudio", "mcp.json"),
		at("Amazon Q", FormatAmazonQ, home, ".aws", "amazonq", "mcp.json"),
		at("Kiro", FormatKiro, home, ".kiro", "settings", "mcp.json"),
		at("Junie", FormatJunie, home, ".junie", "mcp", "mcp.json"),
		at("GitHub Copilot for JetBrains", FormatJetBrains, xdg, "github-copilot", "intellij", "mcp.json"),
		at("Qwen Code", FormatQwen, home, ".qwen", "settings.json"),
		at("crush", FormatCrush, cmp.Or(env("CRUSH_GLOBAL_CONFIG"), filepath.Join(xdg, "crush")), "crush.json"),
		at("Kimi Code", FormatKimi, dir("KIMI_CODE_HOME", ".kimi-code"), "mcp.json"),
		at("Kimi CLI", FormatKimi, home, ".kimi", "mcp.json"),
		at("Copilot CLI", FormatCopilotCLI, dir("COPILOT_HOME", ".copilot"), "mcp-config.json"),
		at("Warp", FormatWarp, home, ".warp", ".mcp.json"),
		at("Continue", FormatContinue, home, ".continue", "config.yaml"),
	)
}
