package chat

import (
	"encoding/json"
	"strings"
)

// trustTool is the name under which yaya asks whether a folder is trusted.
const trustTool = "folder_trust"

// folderQuestion words the question whether a folder is trusted, and returns false
// if the ask is another one, or cannot be read: then it is shown as it came.
func folderQuestion(a Ask) (text string, ok bool) {
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
	}
	if a.Tool != trustTool || json.Unmarshal(a.Input, &q) != nil || q.Folder == "" {
		return "", false
	}
	var b strings.Builder
	line := func(mark string, i item) {
		text := strings.TrimSpace(i.Kind + " " + i.Name)
		if i.Runs != "" {
			text += ": " + i.Runs
		}
		b.WriteString("  " + mark + clean(text, len(text)) + "\n") // on one line, all of it
	}
	b.WriteString(clean(q.Folder, len(q.Folder)) + "\n")
	switch {
	case len(q.Added)+len(q.Removed) > 0:
		b.WriteString("It was trusted, and brings something else now:\n")
		for _, i := range q.Removed {
			line("- ", i)
		}
		for _, i := range q.Added {
			line("+ ", i)
		}
		b.WriteString("If you trust it again, this is used without another question, and with your rights where no sandbox is named:\n")
	case len(q.Items) == 0:
		b.WriteString("Nothing in it runs by itself.\n")
	default:
		b.WriteString("If you trust it, this is used without another question, and with your rights where no sandbox is named:\n")
	}
	for _, i := range q.Items {
		line("  ", i)
	}
	b.WriteString("Changes and commands of the agent are asked about in any case. For this session alone, servers do not start. Without your trust, the agent can only read and search the folder.")
	return b.String(), true
}
