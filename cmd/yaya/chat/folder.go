package chat

import (
	"encoding/json"
	"strings"

	"github.com/yaya-ai/yaya/internal/screen"
)

// trustTool is the tool name of the question whether a folder is trusted.
const trustTool = "folder_trust"

// FolderQuestion words the question whether a folder is trusted. It returns false for another
// question, or for unreadable params, which are then shown unchanged.
func FolderQuestion(a Ask) (text string, ok bool) {
	if a.Tool != trustTool {
		return "", false
	}
	if text, ok = brings(a.Input); !ok {
		return "", false
	}
	return text + "Trusting it does not approve the agent's own changes and commands, nor the agents that it starts. If you trust the folder for this session only, its servers do not start. Without your trust, the agent can only read and search the folder.", true
}

// brings says what a folder brings that is used once it is trusted; ok is false if that is unreadable.
func brings(raw json.RawMessage) (text string, ok bool) {
	type item struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
		Runs string `json:"runs"`
	}
	var q struct {
		Folder  string `json:"folder"`
		Items   []item `json:"items"`
		Added   []item `json:"added"`
		Removed []item `json:"removed"`
		Allowed []item `json:"allowed"`
	}
	if json.Unmarshal(raw, &q) != nil || q.Folder == "" {
		return "", false
	}
	var b strings.Builder
	line := func(mark string, i item) {
		text := strings.TrimSpace(i.Kind + " " + i.Name)
		if i.Runs != "" {
			text += ": " + i.Runs
		}
		b.WriteString("  " + mark + screen.Clean(text, len(text)) + "\n") // on one line, all of it
	}
	b.WriteString(screen.Clean(q.Folder, len(q.Folder)) + "\n")
	switch {
	case len(q.Added)+len(q.Removed) > 0:
		b.WriteString("You trusted this folder earlier, but its content has changed:\n")
		for _, i := range q.Removed {
			line("- ", i)
		}
		for _, i := range q.Added {
			line("+ ", i)
		}
		b.WriteString("If you trust it again, the following is used, with your rights unless a sandbox is named:\n")
	case len(q.Items) == 0:
		b.WriteString("Nothing in it runs by itself.\n")
	default:
		b.WriteString("If you trust it, the following is used, with your rights unless a sandbox is named:\n")
	}
	for _, i := range q.Items {
		line("  ", i)
	}
	if len(q.Allowed) > 0 {
		b.WriteString("You gave its servers more access, which they will have again:\n")
	}
	for _, i := range q.Allowed {
		line("  ", i)
	}
	return b.String(), true
}
