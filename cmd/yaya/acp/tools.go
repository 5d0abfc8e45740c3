package acp

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/yaya-ai/yaya/cmd/yaya/chat"
	"github.com/yaya-ai/yaya/internal/callargs"
	"github.com/yaya-ai/yaya/internal/patch"
	"github.com/yaya-ai/yaya/internal/screen"
)

// kinds are those of the coder's tools; the others are "other".
var kinds = map[string]string{
	"read_file": "read", "multi_read": "read", "repo_tree": "read", "repo_map": "read", "git_status": "read", "read_artifact": "read",
	"search": "search", "apply_patch": "edit", "edit": "edit", "todo": "think", "propose_plan": "think", "web_fetch": "fetch", "web_search": "search", "shell": "execute", "verify": "execute", "mcp_resources": "search", "mcp_read": "read", "shell_output": "read", "shell_stop": "execute",
}

// described is a call as an editor shows it.
func described(folder string, c call) toolCall {
	var in struct {
		Path    string `json:"path"`
		Command string `json:"command"`
		Pattern string `json:"pattern"`
		Query   string `json:"query"`
		URL     string `json:"url"`
		Patch   string `json:"patch"`
		Old     string `json:"old_text"`
		New     string `json:"new_text"`
		All     bool   `json:"replace_all"`
		Files   []struct {
			Path string `json:"path"`
		} `json:"files"`
	}
	_ = json.Unmarshal(c.Input, &in) // missing members are not shown
	out := toolCall{ID: c.ID, Title: c.Name, Kind: kinds[c.Name]}
	if json.Valid(c.Input) {
		out.Input = c.Input
	}
	if out.Kind == "" {
		out.Kind = "other"
		return out
	}
	for _, what := range []string{in.Command, in.Path, in.Pattern, in.Query, in.URL} {
		if what != "" {
			out.Title = c.Name + ": " + line(what)
			break
		}
	}
	if in.Path != "" {
		out.Locations = []location{{absolute(folder, in.Path)}}
	}
	switch c.Name {
	case "edit":
		if in.Path != "" {
			out.Content = []content{{Type: "diff", Path: absolute(folder, in.Path), Old: &in.Old, New: &in.New}}
		}
		if in.All {
			out.Content = append(out.Content, shown("replaces the text wherever it is in the file"))
		}
	case "multi_read":
		for _, f := range in.Files {
			out.Locations = append(out.Locations, location{absolute(folder, f.Path)})
		}
	case "apply_patch":
		out.Content, out.Locations = diffs(folder, in.Patch)
	}
	if out.Title == c.Name && len(out.Locations) > 0 {
		out.Title += ": " + line(strings.Join(paths(folder, out.Locations), ", "))
	}
	return out
}

// diffs shows each hunk of a patch: the editor sees the lines that change, and those around them.
func diffs(folder, text string) (all []content, at []location) {
	files, err := patch.Parse(text)
	if err != nil {
		return []content{shown(fenced(screen.CleanText(text)))}, nil
	}
	for _, f := range files {
		path := absolute(folder, f.Path)
		at = append(at, location{path})
		if f.Op == patch.Delete && len(f.Hunks) == 0 {
			all = append(all, shown("deletes "+screen.Clean(f.Path, len(f.Path))))
		}
		if f.To != "" {
			all = append(all, shown("moves "+screen.Clean(f.Path, len(f.Path))+" to "+screen.Clean(f.To, len(f.To))))
		}
		for _, h := range f.Hunks {
			var before, after strings.Builder
			for _, l := range h.Lines {
				if l != "" && l[0] != '+' {
					before.WriteString(l[1:] + "\n")
				}
				if l != "" && l[0] != '-' {
					after.WriteString(l[1:] + "\n")
				}
			}
			o, n := before.String(), after.String()
			d := content{Type: "diff", Path: path, Old: &o, New: &n}
			if f.Op == patch.Create {
				d.Old = nil
			}
			all = append(all, d)
		}
	}
	return all, at
}

// asked is a question as the editor shows it: with all that would run, because a title is cut, and
// not every editor shows the input. Its options are those of a decision.
func (s *session) asked(q chat.Ask) question {
	c := described(s.folder, call{q.Call, q.Tool, q.Input})
	yes, always, no := "Allow", "Allow the same call in this session", "Reject"
	if body, ok := chat.FolderQuestion(q); ok {
		c.Title, c.Kind, c.Content, c.Input = "May yaya trust this folder?", "other", []content{shown(fenced(body))}, nil
		yes, always, no = "Trust the folder", "Trust it in this session", "Do not trust it"
	} else {
		if callargs.Changes(q.Tool) {
			always = "Allow all edits in this session"
		}
		if q.Brief != "" {
			c.Title = line(q.Brief)
		}
		if plan, ok := chat.Plan(q); ok {
			c.Content = []content{shown(plan)}
		}
		// A change is shown as its diffs, which editors show with what nobody sees in them.
		if all := chat.Arguments(q); len(c.Content) == 0 || callargs.Changes(q.Tool) && strings.Contains(all, `\u{`) {
			c.Content = append(c.Content, shown(fenced(all)))
		}
	}
	c.Status = pending
	return question{s.id, c, []option{
		{"approve", yes, "allow_once"},
		{"approve_for_session", always, "allow_always"},
		{"deny", no, "reject_once"},
	}}
}

// planned is the plan that a call makes, if it makes one.
func planned(c call) (plan, bool) {
	steps, ok := chat.Steps(c.Name, c.Input)
	if !ok {
		return plan{}, false
	}
	out := plan{Kind: "plan", Entries: []entry{}}
	for _, s := range steps {
		status := map[string]string{"doing": "in_progress", "done": "completed"}[s.State]
		out.Entries = append(out.Entries, entry{s.Text, "medium", cmp.Or(status, "pending")})
	}
	return out, true
}

func absolute(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

func paths(folder string, at []location) (all []string) {
	for _, l := range at {
		p, err := filepath.Rel(folder, l.Path)
		if err != nil {
			p = l.Path
		}
		all = append(all, p)
	}
	return all
}

// line is the first line of a text, cut where a title should end, in which each character is seen.
func line(s string) string {
	s, _, more := strings.Cut(strings.TrimSpace(s), "\n")
	if r := []rune(s); len(r) > 120 {
		s, more = string(r[:120]), true
	}
	s = screen.Clean(s, len(s))
	if more {
		s += " …"
	}
	return s
}
