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
	"github.com/yaya-ai/yaya/internal/userfile"
)

// MaxFile bounds a configuration file. Claude Code keeps its history in the
// same file, so foreign ones may be large.
const MaxFile = userfile.Max

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
	FormatRoo           Format = "roo"
	FormatWindsurf      Format = "windsurf"
	FormatZed           Format = "zed"
	FormatLMStudio      Format = "lm-studio"
	FormatAmazonQ       Format = "amazon-q"
	FormatKiro          Format = "kiro"
	FormatJunie         Format = "junie"
	FormatJetBrains     Format = "jetbrains"
	FormatQwen          Format = "qwen"
	FormatCrush         Format = "crush"
	FormatKimi          Format = "kimi"
	FormatCopilotCLI    Format = "copilot-cli"
	FormatWarp          Format = "warp"
	FormatContinue      Format = "continue"
)

// FormatAgentPlugins is the format of a package (https://agent-plugins.org): nothing in it is a
// variable. No client has a file of it, so it is not one of [Formats].
const FormatAgentPlugins Format = "agent-plugins"

// Formats lists the supported formats.
var Formats = []Format{
	FormatYaya, FormatClaudeDesktop, FormatClaudeCode, FormatVSCode, FormatCursor,
	FormatCodex, FormatGemini, FormatOpencode, FormatGoose, FormatCline, FormatRoo, FormatWindsurf,
	FormatZed, FormatLMStudio, FormatAmazonQ, FormatKiro, FormatJunie, FormatJetBrains, FormatQwen,
	FormatCrush, FormatKimi, FormatCopilotCLI, FormatWarp, FormatContinue,
}

// Invalid is a server that cannot be used, and why.
type Invalid struct {
	Name string
	File string
	Err  error
}

// Change is a change that the reader made to a server so that it means the same here.
type Change struct {
	Server string
	Text   string
}

// Project contains the servers that a file keeps for a single folder.
type Project struct {
	Dir    string
	Config Config
}

// Config is the content of a file.
type Config struct {
	Servers  []Server // by name
	Invalid  []Invalid
	Warnings []string
	Changes  []Change
	// Own are entries that lead back to yaya. They do not count as servers: yaya would be its
	// own client.
	Own []Server
	// Projects are the projects in Claude Code's own file, by folder.
	Projects []Project
}

// Decode reads JSON with comments, TOML or YAML, by the file's name, into plain
// maps. Numbers keep their text.
func Decode(file string, data []byte) (map[string]any, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("%s: %d bytes, the limit is %d", file, len(data), MaxFile)
	}
	data = bytes.TrimPrefix(data, bom)
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
			err = syntaxError(err)
			break
		}
		// One strict check: a duplicate member is ambiguous.
		if err = jsonrpc.Check(std); err != nil {
			err = withLine(std, err)
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

var anyTop = []string{"mcpServers", "servers", "mcp_servers", "mcp", "extensions", "context_servers"}

// Parse reads a configuration file. The name appears in messages, and its extension tells JSON,
// TOML and YAML apart.
func Parse(file string, data []byte, format Format) (Config, error) {
	return parse(file, data, format, false)
}

// ParseProject reads a project's file of servers. Its entries may have a sandbox, as in yaya's
// own file.
func ParseProject(file string, data []byte) (Config, error) {
	return parse(file, data, FormatClaudeCode, true)
}

// ParsePackage reads the servers of a package, as [ParseProject] reads those of a project. The
// format is [FormatAgentPlugins] or that of another client.
func ParsePackage(file string, data []byte, format Format) (Config, error) {
	doc, err := Decode(file, data)
	if err != nil {
		return Config{}, err
	}
	return parseDoc(file, doc, format, true)
}

func parse(file string, data []byte, format Format, project bool) (Config, error) {
	if !slices.Contains(Formats, format) {
		return Config{}, fmt.Errorf("unknown configuration format %q", format)
	}
	doc, err := Decode(file, data)
	if err != nil {
		return Config{}, err
	}
	cfg, err := parseDoc(file, doc, format, project)
	if err != nil || project || format != FormatClaudeCode {
		return cfg, err
	}
	cfg.Projects, err = claudeProjects(file, doc)
	return cfg, err
}

func parseDoc(file string, doc map[string]any, format Format, project bool) (Config, error) {
	var cfg Config
	top, key := findServers(doc, format)
	if format == FormatYaya {
		for _, k := range slices.Sorted(maps.Keys(doc)) {
			if k != key && k != "$schema" {
				return Config{}, fmt.Errorf("%s: unknown key %q; servers belong in \"mcpServers\"", file, k)
			}
		}
	}
	if key == "" && format != FormatYaya && bare(doc) {
		top, key = doc, file
	}
	if key == "" {
		if format != FormatYaya || len(doc) > 0 {
			cfg.Warnings = append(cfg.Warnings, fmt.Sprintf("%s: contains no servers (looked for %s)", file, strings.Join(dialects[format].top, ", ")))
		}
		return cfg, nil
	}
	if list, ok := doc[key].([]any); ok && format != FormatYaya {
		top = cfg.fromList(file, list)
	}
	if top == nil {
		return Config{}, fmt.Errorf("%s: %q must be an object of servers", file, key)
	}
	if len(top)+len(cfg.Invalid) > MaxServers {
		return Config{}, fmt.Errorf("%s: %d servers, the limit is %d", file, len(top)+len(cfg.Invalid), MaxServers)
	}
	allowed := serverFilter(doc, format)
	for _, name := range slices.Sorted(maps.Keys(top)) {
		entry, ok := top[name].(map[string]any)
		if !ok {
			cfg.Invalid = append(cfg.Invalid, Invalid{name, file, errors.New("it must be an object")})
			continue
		}
		cfg.add(file, name, format, project, entry, allowed(name), doc)
	}
	return cfg, nil
}

// add reads one entry.
func (cfg *Config) add(file, name string, format Format, project bool, obj map[string]any, allowed bool, doc map[string]any) {
	s, res, err := parseServer(file, name, format, project, obj)
	for _, w := range res.warnings {
		cfg.Warnings = append(cfg.Warnings, fmt.Sprintf("%s: server %q: %s", file, name, w))
	}
	if err == nil && format == FormatOpencode {
		err = opencodeTools(&s, doc)
	}
	switch {
	case res.skip:
		return
	case err != nil:
		cfg.Invalid = append(cfg.Invalid, Invalid{name, file, err})
		return
	case format != FormatYaya && s.isYaya():
		cfg.Own = append(cfg.Own, s)
		cfg.Warnings = append(cfg.Warnings, fmt.Sprintf("%s: server %q is yaya itself and is left out: yaya would be its own client", file, name))
		return
	}
	if open := s.OpenSecrets(); open != "" {
		cfg.Warnings = append(cfg.Warnings, fmt.Sprintf("%s: server %q: %s", file, name, open))
	}
	if !allowed && !s.Disabled {
		s.Disabled = true
		res.changes = append(res.changes, "switched off, as the file excludes it")
	}
	for _, c := range res.changes {
		cfg.Changes = append(cfg.Changes, Change{name, c})
	}
	cfg.Servers = append(cfg.Servers, s)
}

// fromList turns a list of servers that have names into an object of them.
func (cfg *Config) fromList(file string, list []any) map[string]any {
	out := map[string]any{}
	for i, v := range list {
		obj, ok := v.(map[string]any)
		name, named := obj["name"].(string)
		switch {
		case ok && !named && obj["uses"] != nil:
			cfg.Invalid = append(cfg.Invalid, Invalid{fmt.Sprint(obj["uses"]), file, errors.New("it refers to a hub, which yaya does not read; write its command or url into the file")})
		case !ok || !named:
			cfg.Invalid = append(cfg.Invalid, Invalid{fmt.Sprintf("number %d", i+1), file, errors.New(`it must be an object with a "name"`)})
		case out[name] != nil:
			cfg.Invalid = append(cfg.Invalid, Invalid{name, file, errors.New("an earlier server in the file has the same name; rename one of them")})
		default:
			out[name] = obj
		}
	}
	return out
}

// bare reports whether the document itself is an object of servers.
func bare(doc map[string]any) bool {
	for _, v := range doc {
		obj, ok := v.(map[string]any)
		if !ok || (obj["command"] == nil && obj["url"] == nil && obj["serverUrl"] == nil && obj["httpUrl"] == nil) {
			return false
		}
	}
	return len(doc) > 0
}

func findServers(doc map[string]any, format Format) (map[string]any, string) {
	keys := dialects[format].top
	if format != FormatYaya {
		keys = slices.Concat(keys, anyTop)
	}
	for _, k := range keys {
		v, present := doc[k]
		if !present || (v == nil && format != FormatYaya) {
			continue
		}
		m, ok := v.(map[string]any)
		if k == "mcp" && ok { // VS Code's settings.json nests the servers, Gemini's "mcp" contains only filters
			if inner, nested := m["servers"].(map[string]any); nested {
				return inner, k
			}
			if dialects[format].filters {
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

// serverFilter applies the lists of allowed and excluded servers of Gemini and Qwen.
func serverFilter(doc map[string]any, format Format) func(string) bool {
	if !dialects[format].filters {
		return func(string) bool { return true }
	}
	m, _ := doc["mcp"].(map[string]any)
	in := append(texts(m["allowed"]), texts(doc["allowMCPServers"])...)
	out := append(texts(m["excluded"]), texts(doc["excludeMCPServers"])...)
	return func(name string) bool {
		return !slices.Contains(out, name) && (len(in) == 0 || slices.Contains(in, name))
	}
}

// texts returns the strings in a list.
func texts(v any) []string {
	vs, _ := v.([]any)
	var out []string
	for _, v := range vs {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
