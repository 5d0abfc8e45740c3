package agentpackage

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/agentskill"
	"github.com/yaya-ai/yaya/internal/hookconf"
)

// maxPlaces bounds the paths that a member of a manifest names.
const maxPlaces = 64

// client reads a plugin of Claude Code or Codex. Both have the same parts at the same places, and
// members of the manifest that name more places.
func (r *reader) client(m map[string]any, manifest string, format Format) error {
	r.out.Format = format
	texts := map[string]string{}
	for _, key := range []string{"name", "version", "description"} {
		if v, ok := m[key]; ok {
			var err error
			if texts[key], err = text(v); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	if err := r.identify(texts["name"], texts["version"], texts["description"]); err != nil {
		return err
	}
	for _, folder := range r.places(m["skills"], "skills") {
		if r.has(path.Join(folder, agentskill.FileName)) {
			r.fault("skills: %.200q is one skill, and not a folder of skills", folder)
			continue
		}
		r.skills(folder)
	}
	r.clientServers(m["mcpServers"], manifest)
	r.unused(m)
	return r.hooksOf(m["hooks"], manifest)
}

// clientHooks reads the hooks that a package of Agent Plugins has for another client.
func (r *reader) clientHooks(manifest string) error {
	m, err := object(r.files[manifest], manifest)
	if err != nil {
		return err
	}
	return named(manifest, r.hooksOf(m["hooks"], manifest))
}

func (r *reader) has(name string) bool { return slices.Contains(r.names, name) }

// places are the paths that a member of the manifest names, after the usual one if that is there.
func (r *reader) places(v any, usual string) (out []string) {
	if r.has(usual) || slices.ContainsFunc(r.names, func(n string) bool { return strings.HasPrefix(n, usual+"/") }) {
		out = append(out, usual)
	}
	var more []string
	switch v := v.(type) {
	case string:
		more = []string{v}
	case []any:
		for _, x := range v {
			if s, ok := x.(string); ok {
				more = append(more, s)
			}
		}
	}
	if len(more) > maxPlaces {
		r.fault("more than %d paths in a member of the manifest", maxPlaces)
		more = more[:maxPlaces]
	}
	for _, name := range more {
		at := path.Clean(name)
		if !filepath.IsLocal(filepath.FromSlash(at)) {
			r.fault("%.200q leads out of the package", name)
		} else if !slices.Contains(out, at) {
			out = append(out, at)
		}
	}
	return out
}

// clientServers reads the servers of .mcp.json, of the files that the manifest names, and of the
// manifest itself.
func (r *reader) clientServers(v any, manifest string) {
	for _, file := range r.places(v, ".mcp.json") {
		data, ok := r.files[file]
		if !ok {
			r.fault("mcpServers: there is no file %.200q", file)
			continue
		}
		m, err := object(data, file)
		if err != nil {
			r.fault("%v", err)
			continue
		}
		if inner, ok := m["mcpServers"].(map[string]any); ok {
			m = inner
		}
		r.servers(file, m, clientServer)
	}
	if inline, ok := v.(map[string]any); ok {
		r.servers(manifest, inline, clientServer)
	}
}

// clientServer takes over an entry as it is, but for what a package cannot have.
func clientServer(entry map[string]any) (Server, error) {
	raw, err := json.Marshal(entry)
	switch {
	case err != nil:
		return Server{}, err
	case strings.Contains(string(raw), "${secret:"):
		return Server{}, errors.New("it names one of your secrets, which a package cannot do")
	case strings.Contains(string(raw), "${user_config."):
		return Server{}, errors.New("it asks for settings (userConfig), which yaya does not do: configure the server yourself (yaya mcp add)")
	}
	for _, key := range []string{"command", "cmd", "cwd"} {
		if at, ok := entry[key].(string); ok && !inside(at, key == "cwd") {
			return Server{}, fmt.Errorf("its %s %.200q leads out of the package", key, at)
		}
	}
	return Server{entry: entry}, nil
}

// inside reports whether a path of another client's entry stays in the folder that it begins in.
// An absolute one, and the name of a program, begin in none.
func inside(at string, folder bool) bool {
	for _, name := range []string{"CLAUDE_" + rootName, rootName, "CLAUDE_" + dataName, dataName} {
		if rest, ok := strings.CutPrefix(at, "${"+name+"}"); ok {
			return rest == "" || strings.HasPrefix(rest, "/") && local(rest[1:])
		}
	}
	if path.IsAbs(at) || !folder && !strings.Contains(at, "/") {
		return true
	}
	return local(at)
}

// hooksOf reads the hooks of hooks/hooks.json, of the files that the manifest names, and of the
// manifest itself, all in the form of Claude Code.
func (r *reader) hooksOf(v any, manifest string) error {
	take := func(data []byte, name string) error {
		var has struct {
			Hooks map[string]json.RawMessage `json:"hooks"`
			Off   bool                       `json:"disableAllHooks"`
		}
		if err := json.Unmarshal(data, &has); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if has.Hooks == nil || has.Off {
			return fmt.Errorf(`%s: it has no "hooks", or switches them off`, name)
		}
		hooks, ignored, err := hookconf.ParseClaude(data, name)
		for _, what := range ignored {
			r.note("hook that yaya does not run: %.200s", what)
		}
		r.out.Hooks = append(r.out.Hooks, hooks...)
		return err
	}
	switch v.(type) {
	case nil, string, []any, map[string]any:
	default:
		return errors.New("hooks: neither a file nor hooks")
	}
	if all, ok := v.([]any); ok && slices.ContainsFunc(all, func(x any) bool { _, ok := x.(string); return !ok }) {
		return errors.New("hooks: not a list of files")
	}
	faults := len(r.out.Faults)
	files := r.places(v, "hooks/hooks.json")
	if len(r.out.Faults) > faults {
		return fmt.Errorf("hooks: %s", r.out.Faults[faults])
	}
	for _, file := range files {
		data, ok := r.files[file]
		if !ok {
			return fmt.Errorf("hooks: there is no file %.200q", file)
		}
		if err := take(data, file); err != nil {
			return err
		}
	}
	inline, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	data, err := json.Marshal(map[string]any{"hooks": inline})
	if err != nil {
		return err
	}
	return take(data, manifest)
}

// unused notes the parts that yaya has no use for.
func (r *reader) unused(m map[string]any) {
	markdown := func(folder string) func(string) bool {
		return func(name string) bool { return strings.HasPrefix(name, folder+"/") && path.Ext(name) == ".md" }
	}
	for _, part := range []struct {
		what string
		n    int
	}{
		{"commands", r.count(markdown("commands"))},
		{"agents", r.count(markdown("agents"))},
		{"output styles", r.count(markdown("output-styles"))},
	} {
		if part.n > 0 {
			r.note("%s, which yaya does not use: %d", part.what, part.n)
		}
	}
	for _, member := range []string{"lspServers", "apps", "userConfig", "channels"} {
		if m[member] != nil {
			r.note("%s, which yaya does not use", member)
		}
	}
	for _, file := range []string{".lsp.json", ".app.json"} {
		if r.has(file) {
			r.note("%s, which yaya does not use", file)
		}
	}
}
