package tool_workspace //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"fmt"
	"strings"

	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// maxFiles is how many files, or parts of files, are read at once.
const maxFiles = 20

type multiReadArgs struct {
	Files []readArgs `json:"files" jsonschema:"files, or parts of files, up to 20"`
}

// multiRead reads several files. It names those that cannot be read, and reads the others.
func multiRead(ctx context.Context, w *workspace.Workspace, a multiReadArgs) (tool.Result, error) {
	if len(a.Files) == 0 || len(a.Files) > maxFiles {
		return tool.Fail(tool.ErrValidation, "name between 1 and %d files", maxFiles), nil
	}
	var b strings.Builder
	failed := 0
	for i, f := range a.Files {
		room := (maxRead - b.Len()) / (len(a.Files) - i) // what a short file leaves is for those after it
		text, _, err := part(w, f, room)
		if err != nil {
			failed++
			text = "(cannot be read: " + failure(err).Brief + ")"
		}
		fmt.Fprintf(&b, "## %s\n%s\n", f.Path, strings.TrimSuffix(text, "\n"))
		if err := ctx.Err(); err != nil {
			return tool.Result{}, err
		}
	}
	if failed == len(a.Files) {
		res := tool.Fail(tool.ErrTool, "none of the files can be read")
		res.Display = []tool.Block{tool.Text(b.String())}
		return res, nil
	}
	return tool.OK(worded.Count(len(a.Files)-failed, "file read", "files read"), tool.Text(b.String())), nil
}
