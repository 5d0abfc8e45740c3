package strategy_coder //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"cmp"
	"encoding/json"
	"hash/maphash"
	"path"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/patch"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/event"
)

// Bounds of instructions: bytes of one folder's, folders whose instructions are told, and calls
// whose folders are remembered.
const (
	maxRules   = 32 << 10
	maxFolders = 64
	maxCalls   = 8192
)

// rules returns the instructions of a session's folder and of the folders in it that its calls
// have touched, from the top down: where two contradict each other, the nearer one comes later.
// A folder that nobody trusts instructs nobody.
func (p *Plugin) rules(in *place, history []event.Message, room int) []event.TurnNote {
	w := in.opened()
	if w == nil || !in.trusted {
		return nil
	}
	var out []event.TurnNote
	for _, at := range p.folders(w, history) {
		found, ok := w.Instructions(at, min(maxRules, room/2))
		if !ok {
			continue
		}
		text := "The project's instructions:\n"
		if at != "." {
			text = "The project's instructions for what is below " + workspace.Shown(at) + "/. Where they contradict those of the folders above, these count:\n"
		}
		if text += found.Text; found.More {
			text += "\n… (there is more of them)"
		}
		out = append(out, event.TurnNote{Name: workspace.Shown(found.Path), Text: text})
	}
	return out
}

// folders returns the folders that calls of a history touch, with those above them, in the order
// in which they were first touched, the workspace itself first.
func (p *Plugin) folders(w *workspace.Workspace, history []event.Message) []string {
	out := []string{"."}
	for _, m := range history {
		for _, c := range m.ToolCalls {
			for _, at := range p.touched(w, c) {
				var way []string
				for ; at != "."; at = path.Dir(at) {
					way = append(way, at)
				}
				for _, dir := range slices.Backward(way) {
					if !slices.Contains(out, dir) && len(out) < maxFolders {
						out = append(out, dir)
					}
				}
			}
		}
	}
	return out
}

// looked identifies a call. Its id does not: some services begin to count again in each answer.
type looked struct {
	dir, tool string
	args      uint64
}

var seed = maphash.MakeSeed()

// touched returns the folders of the files that a call names. Each call is looked at once: a history
// may have thousands of them.
func (p *Plugin) touched(w *workspace.Workspace, c event.ToolCall) []string {
	key := looked{w.Dir(), c.Name, maphash.Bytes(seed, c.Args)}
	p.mu.Lock()
	dirs, known := p.calls[key]
	p.mu.Unlock()
	if known {
		return dirs
	}
	for _, file := range pathsOf(c) {
		at, err := w.Clean(file)
		if err != nil {
			continue
		}
		if info, err := w.Root().Stat(at); err != nil || !info.IsDir() {
			at = path.Dir(at)
		}
		dirs = append(dirs, at)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.calls) >= maxCalls {
		clear(p.calls)
	}
	p.calls[key] = dirs
	return dirs
}

func pathsOf(c event.ToolCall) (out []string) {
	var a struct {
		Path  string `json:"path"`
		Dir   string `json:"dir"`
		Patch string `json:"patch"`
		Files []struct {
			Path string `json:"path"`
		} `json:"files"`
	}
	switch c.Name {
	case "read_file", "multi_read", "edit", "search", "repo_tree", "repo_map", "apply_patch", "shell":
	default:
		return nil
	}
	if json.Unmarshal(c.Args, &a) != nil {
		return nil
	}
	if at := cmp.Or(a.Path, a.Dir); at != "" {
		out = append(out, at)
	}
	for _, f := range a.Files {
		out = append(out, f.Path)
	}
	if files, err := patch.Parse(a.Patch); a.Patch != "" && err == nil {
		for _, f := range files {
			out = append(out, f.Path)
			if f.To != "" {
				out = append(out, f.To)
			}
		}
	}
	return slices.DeleteFunc(out, func(s string) bool { return strings.TrimSpace(s) == "" })
}
