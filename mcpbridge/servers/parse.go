package servers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// MaxFile bounds a configuration file. Claude Code keeps its history in the
// same file, so foreign ones may be large.
const MaxFile = 16 << 20

// MaxServers bounds the servers of one file.
const MaxServers = 200

// Format is the dialect of a configuration file.
type Format string

// The formats.
const (
	FormatYaya          Format = "yaya"
	FormatClaudeDesktop Format = "claude-desktop"
	FormatClaudeCode    Format = "claude-code"
	FormatVSCode        Format = "vscode"
	FormatCursor        Format = "cursor"
	FormatCodex         Format = "codex"
	FormatGemini        Format = "gemini"
	FormatOpencode      Format = "opencode"
	FormatGoose         Format = "goose"
	FormatCline         Format = "cline"
)

// Formats lists the formats that can be read.
var Formats = []Format{
	FormatYaya, FormatClaudeDesktop, FormatClaudeCode, FormatVSCode, FormatCursor,
	FormatCodex, FormatGemini, FormatOpencode, FormatGoose, FormatCline,
}

// Invalid is a server that cannot be used, and why.
type Invalid struct {
	Name string
	File string
	Err  error
}

// Config is what a file came to.
type Config struct {
	Servers  []Server // by name
	Invalid  []Invalid
	Warnings []string
}

// Detect guesses the format of a file from its name and, where that does not
// tell, from its shape.
func Detect(file string, data []byte) Format {
	slash := filepath.ToSlash(file)
	switch base := filepath.Base(file); {
	case base == "claude_desktop_config.json":
		return FormatClaudeDesktop
	case base == ".mcp.json" || base == ".claude.json":
		return FormatClaudeCode
	case strings.Contains(slash, "/.cursor/"):
		return FormatCursor
	case strings.Contains(slash, "/.vscode/") || strings.Contains(slash, "/Code/User/"):
		return FormatVSCode
	case strings.Contains(slash, "/.gemini/"):
		return FormatGemini
	case strings.HasPrefix(base, "opencode.json"):
		return FormatOpencode
	case base == "cline_mcp_settings.json":
		return FormatCline
	case strings.Contains(slash, "/goose/"), strings.HasSuffix(base, ".yaml"), strings.HasSuffix(base, ".yml"):
		return FormatGoose
	case strings.HasSuffix(base, ".toml"):
		return FormatCodex
	}
	if doc, err := decode(file, data); err == nil {
		if _, ok := doc["servers"].(map[string]any); ok {
			return FormatVSCode
		}
		if m, ok := doc["mcp"].(map[string]any); ok && doc["mcpServers"] == nil && m["servers"] == nil {
			return FormatOpencode
		}
		if doc["extensions"] != nil && doc["mcpServers"] == nil {
			return FormatGoose
		}
	}
	return FormatClaudeCode
}

// decode reads JSON with comments, TOML or YAML, by the file's name, into plain
// maps. Numbers keep their text.
func decode(file string, data []byte) (map[string]any, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("%s: %d bytes, the limit is %d", file, len(data), MaxFile)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	doc := map[string]any{}
	var err error
	switch strings.ToLower(filepath.Ext(file)) {
	case ".toml":
		err = toml.Unmarshal(data, &doc)
	case ".yaml", ".yml":
		err = yaml.Unmarshal(data, &doc)
	default:
		if len(bytes.TrimSpace(data)) == 0 {
			return doc, nil
		}
		var std []byte
		if std, err = hujson.Standardize(bytes.Clone(data)); err != nil {
			break
		}
		// One strict look: a member given twice has two meanings.
		if err = jsonrpc.Check(std); err != nil {
			break
		}
		dec := json.NewDecoder(bytes.NewReader(std))
		dec.UseNumber()
		err = dec.Decode(&doc)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return doc, nil
}

// keys of the object that holds the servers, by format; the first present one
// counts.
var topKeys = map[Format][]string{
	FormatYaya: {"mcpServers", "mcp_servers"}, FormatClaudeDesktop: {"mcpServers"}, FormatClaudeCode: {"mcpServers", "managedMcpServers"},
	FormatVSCode: {"servers", "mcpServers"}, FormatCursor: {"mcpServers"}, FormatCodex: {"mcp_servers"}, FormatGemini: {"mcpServers"},
	FormatOpencode: {"mcp"}, FormatGoose: {"extensions"}, FormatCline: {"mcpServers"},
}

var anyTop = []string{"mcpServers", "servers", "mcp_servers", "mcp", "extensions", "context_servers"}

// Parse reads a configuration file. The name appears in messages, and its
// ending tells JSON, TOML and YAML apart.
func Parse(file string, data []byte, format Format) (Config, error) {
	if !slices.Contains(Formats, format) {
		return Config{}, fmt.Errorf("unknown configuration format %q", format)
	}
	doc, err := decode(file, data)
	if err != nil {
		return Config{}, err
	}
	var cfg Config
	top, key := findServers(doc, format)
	if format == FormatYaya {
		for _, k := range slices.Sorted(maps.Keys(doc)) {
			if k != key && k != "$schema" {
				return Config{}, fmt.Errorf("%s: unknown key %q; servers belong in \"mcpServers\"", file, k)
			}
		}
	}
	if key == "" {
		if format != FormatYaya || len(doc) > 0 {
			cfg.Warnings = append(cfg.Warnings, fmt.Sprintf("%s: no servers in it (looked for %s)", file, strings.Join(topKeys[format], ", ")))
		}
		return cfg, nil
	}
	if top == nil {
		return Config{}, fmt.Errorf("%s: %q must be an object of servers", file, key)
	}
	if len(top) > MaxServers {
		return Config{}, fmt.Errorf("%s: %d servers, the limit is %d", file, len(top), MaxServers)
	}
	allowed := geminiFilter(doc, format)
	for _, name := range slices.Sorted(maps.Keys(top)) {
		entry, ok := top[name].(map[string]any)
		if !ok {
			cfg.Invalid = append(cfg.Invalid, Invalid{name, file, errors.New("it must be an object")})
			continue
		}
		s, skip, warnings, err := parseServer(file, name, format, entry)
		for _, w := range warnings {
			cfg.Warnings = append(cfg.Warnings, fmt.Sprintf("%s: server %q: %s", file, name, w))
		}
		switch {
		case skip:
		case err != nil:
			cfg.Invalid = append(cfg.Invalid, Invalid{name, file, err})
		default:
			s.Disabled = s.Disabled || !allowed(name)
			cfg.Servers = append(cfg.Servers, s)
		}
	}
	return cfg, nil
}

func findServers(doc map[string]any, format Format) (map[string]any, string) {
	keys := topKeys[format]
	if format != FormatYaya {
		keys = slices.Concat(keys, anyTop)
	}
	for _, k := range keys {
		v, present := doc[k]
		if !present {
			continue
		}
		m, ok := v.(map[string]any)
		if k == "mcp" && ok { // VS Code's settings.json nests, Gemini's "mcp" holds filters only
			if inner, nested := m["servers"].(map[string]any); nested {
				return inner, k
			}
			if format == FormatGemini {
				continue
			}
		}
		if !ok {
			return nil, k
		}
		return m, k
	}
	return nil, ""
}

// geminiFilter applies Gemini's mcp.allowed and mcp.excluded.
func geminiFilter(doc map[string]any, format Format) func(string) bool {
	if format != FormatGemini {
		return func(string) bool { return true }
	}
	m, _ := doc["mcp"].(map[string]any)
	list := func(key string) []string {
		vs, _ := m[key].([]any)
		var out []string
		for _, v := range vs {
			if s, ok := v.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	in, out := list("allowed"), list("excluded")
	return func(name string) bool {
		return !slices.Contains(out, name) && (len(in) == 0 || slices.Contains(in, name))
	}
}
