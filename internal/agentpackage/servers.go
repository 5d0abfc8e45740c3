package agentpackage

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
)

// Variables that stand for the folder of the package, and for the one in which it keeps what
// outlives an update. Claude Code has names of its own.
const (
	rootName = "PLUGIN_ROOT"
	dataName = "PLUGIN_DATA"
	rootRef  = "${" + rootName + "}"
	dataRef  = "${" + dataName + "}"
)

var reserved = []string{rootName, dataName}

// Variables are the variables of the processes of a package, as its formats name them.
func Variables(root, data string) map[string]string {
	return map[string]string{rootName: root, dataName: data, "CLAUDE_" + rootName: root, "CLAUDE_" + dataName: data}
}

// Server is an MCP server of a package.
type Server struct {
	Name string

	literal bool // it is one of Agent Plugins: nothing but the two variables is replaced
	// These are set for such a server. kind is stdio, http or sse.
	kind, command, dir, url string
	args                    []string
	env, headers            map[string]string
	sandbox                 any

	entry map[string]any // of another client, as it is
}

// servers takes over the servers of a file that can be used.
func (r *reader) servers(file string, all map[string]any, read func(map[string]any) (Server, error)) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		entry, ok := all[name].(map[string]any)
		switch {
		case !ok:
			r.fault("%s: server %.80q is not an object", file, name)
			continue
		case slices.ContainsFunc(r.out.Servers, func(s Server) bool { return s.Name == name }):
			r.fault("%s: server %.80q is there twice", file, name)
			continue
		case len(r.out.Servers) == maxServers:
			r.fault("%s: more than %d servers", file, maxServers)
			return
		}
		s, err := read(entry)
		if err != nil {
			r.fault("%s: server %.80q: %v", file, name, err)
			continue
		}
		s.Name = name
		r.out.Servers = append(r.out.Servers, s)
	}
}

// Entry returns the server's entry in the form of a project's .mcp.json, for a package that lies
// in the folder root and keeps what it writes in the folder data.
func (s Server) Entry(root, data string) (json.RawMessage, error) {
	variables := Variables(root, data)
	if !s.literal {
		return s.clientEntry(root, variables)
	}
	// One pass: nothing that is put in is looked at again.
	expand := strings.NewReplacer(rootRef, root, dataRef, data).Replace
	out := map[string]any{"type": s.kind}
	if s.kind != "stdio" {
		out["url"], out["headers"] = s.url, s.headers
		return json.Marshal(out)
	}
	env := maps.Clone(variables)
	for key, v := range s.env {
		env[key] = expand(v)
	}
	args := make([]string, len(s.args))
	for i, arg := range s.args {
		args[i] = expand(arg)
	}
	out["command"], out["args"], out["env"] = under(s.command, root), args, env
	out["cwd"] = root
	if s.dir != "" {
		out["cwd"] = under(expand(s.dir), root)
	}
	if s.sandbox != nil {
		out["sandbox"] = s.sandbox
	}
	return json.Marshal(out)
}

// under returns a path that begins with ./ as one in a folder, and others as they are.
func under(name, root string) string {
	if rest, ok := strings.CutPrefix(name, "./"); ok {
		return path.Join(root, rest)
	}
	return name
}

// clientEntry replaces the folders everywhere, as those clients do.
func (s Server) clientEntry(root string, variables map[string]string) (json.RawMessage, error) {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		pairs = append(pairs, "${"+name+"}", variables[name])
	}
	out, _ := replaced(s.entry, strings.NewReplacer(pairs...).Replace).(map[string]any)
	if command, ok := out["command"].(string); ok {
		out["command"] = under(command, root)
		if dir, ok := out["cwd"].(string); !ok || dir == "" {
			out["cwd"] = root
		} else if dir = under(dir, root); !path.IsAbs(dir) {
			out["cwd"] = path.Join(root, dir)
		}
		env, ok := out["env"].(map[string]any)
		if !ok && out["env"] == nil {
			env = map[string]any{}
		}
		if env != nil { // otherwise it is wrong, which whoever reads the entry says
			for name, v := range variables {
				env[name] = v
			}
			out["env"] = env
		}
	}
	return json.Marshal(out)
}

// replaced returns a copy of a JSON value with all its texts replaced.
func replaced(v any, replace func(string) string) any {
	switch v := v.(type) {
	case string:
		return replace(v)
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = replaced(x, replace)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for key, x := range v {
			out[key] = replaced(x, replace)
		}
		return out
	}
	return v
}
