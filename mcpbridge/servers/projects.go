package servers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// claudeProjects reads the servers that Claude Code keeps in its own file for single folders.
// Claude Code starts them in these folders.
func claudeProjects(file string, doc map[string]any) ([]Project, error) {
	projects, _ := doc["projects"].(map[string]any)
	var out []Project
	total := 0
	for _, dir := range slices.Sorted(maps.Keys(projects)) {
		obj, _ := projects[dir].(map[string]any)
		list, _ := obj["mcpServers"].(map[string]any)
		if len(list) == 0 {
			continue
		}
		if total += len(list); total > MaxServers {
			return nil, fmt.Errorf("%s: %d servers for single folders, the limit is %d", file, total, MaxServers)
		}
		cfg, err := parseDoc(file, map[string]any{"mcpServers": list}, FormatClaudeCode, false)
		if err != nil {
			return nil, err
		}
		off := texts(obj["disabledMcpServers"])
		for i := range cfg.Servers {
			cfg.Servers[i] = cfg.Servers[i].inFolder(dir)
			s := &cfg.Servers[i]
			if s.Transport == Stdio && s.Dir == "" {
				s.Dir = dir
				cfg.Changes = append(cfg.Changes, Change{s.Name, "it runs in " + dir})
			}
			s.Disabled = s.Disabled || slices.Contains(off, s.Name)
		}
		out = append(out, Project{dir, cfg})
	}
	return out, nil
}

// inFolder returns the server with the variables for its folder replaced.
func (s Server) inFolder(dir string) Server {
	put := func(in string) string { return strings.ReplaceAll(in, "${CLAUDE_PROJECT_DIR}", dir) }
	s.Command, s.Dir, s.URL = put(s.Command), put(s.Dir), put(s.URL)
	s.Args, s.Env = slices.Clone(s.Args), maps.Clone(s.Env)
	for i := range s.Args {
		s.Args[i] = put(s.Args[i])
	}
	for k, v := range s.Env {
		s.Env[k] = put(v)
	}
	return s
}
