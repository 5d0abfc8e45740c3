package tool_workspace //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/yaya-ai/yaya/internal/patch"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Bounds of an edit: lines that are named when a text is there several times, lines that are
// shown when it is not there, and lines that are compared.
const (
	maxPlaces   = 10
	maxNear     = 12
	maxCompared = 20_000
)

type editArgs struct {
	Path string `json:"path" jsonschema:"file, relative to the workspace"`
	Old  string `json:"old_text" jsonschema:"text to replace, exactly as it is in the file, with as many lines around it as make it unique"`
	New  string `json:"new_text" jsonschema:"text to put in its place"`
	All  bool   `json:"replace_all,omitempty" jsonschema:"replace it wherever it is, and not only where it is unique"`
}

func (p *Plugin) editor(c plugin.Context) error {
	return register(p, c, tool.Definition{
		Name: "edit", Title: "Edit", Kind: tool.KindWrite, ForAgents: true, InFolder: true,
		Description: "Replaces a text in a file of the workspace by another one. The old text must be in the file exactly once, or replace_all must be set. Use apply_patch to create, move or delete files.",
	}, p.edit, func(args json.RawMessage) ([]patch.File, error) {
		var a editArgs
		err := json.Unmarshal(args, &a)
		return []patch.File{{Op: patch.Change, Path: a.Path}}, err
	})
}

func (p *Plugin) edit(ctx context.Context, call tool.Call, a editArgs, dry bool) (tool.Result, error) {
	if a.Old == "" {
		return tool.Fail(tool.ErrValidation, "old_text is empty: create files with apply_patch"), nil
	}
	if a.Old == a.New {
		return tool.Fail(tool.ErrValidation, "old_text and new_text are the same"), nil
	}
	w, err := p.open(call.SessionID)
	if err != nil {
		return tool.Fail(tool.ErrUnavailable, "%v", err), nil
	}
	defer func() { _ = w.Close() }()
	p.writing.Lock()
	defer p.writing.Unlock()
	at, err := place(w, a.Path)
	if err != nil {
		return failure(err), nil
	}
	old, err := w.Text(at)
	if errors.Is(err, fs.ErrNotExist) {
		return tool.Fail(tool.ErrTool, "%s is not there: create files with apply_patch", at), nil
	}
	if err != nil {
		return failure(fmt.Errorf("%s: %w", at, err)), nil
	}
	content, n, err := replaced(old, a)
	if err != nil {
		return tool.Fail(tool.ErrTool, "nothing was changed: %s: %v", at, err), nil
	}
	if dry {
		return tool.OK("it applies"), nil
	}
	kept, err := p.write(ctx, call, w, []workspace.Edit{{Path: at, Data: []byte(content)}})
	if err != nil {
		return failure(fmt.Errorf("nothing was changed: %w", err)), nil
	}
	d := diff.Diff("a/"+at, []byte(old), "b/"+at, []byte(content))
	res := tool.OK(worded.Count(n, "place changed", "places changed"), tool.Text(describe(patch.File{Op: patch.Change}, at, at, d)+kept))
	return p.withDiff(call, res, d), nil
}

// replaced returns a file's text after an edit, and how many places have changed. A text that
// was written with the line ends of Unix is also found in a file with those of Windows, which
// keeps its own.
func replaced(text string, a editArgs) (string, int, error) {
	n := strings.Count(text, a.Old)
	if n == 0 && strings.Contains(text, "\r\n") && !strings.Contains(a.Old, "\r") {
		a.Old, a.New = strings.ReplaceAll(a.Old, "\n", "\r\n"), strings.ReplaceAll(strings.ReplaceAll(a.New, "\r\n", "\n"), "\n", "\r\n")
		n = strings.Count(text, a.Old)
	}
	switch {
	case n == 0:
		return "", 0, errors.New(notThere(text, a.Old))
	case n > 1 && !a.All:
		return "", 0, fmt.Errorf("old_text is there %d times, at lines %s: add lines around it until it is unique, or set replace_all", n, places(text, a.Old, n))
	}
	return strings.ReplaceAll(text, a.Old, a.New), n, nil
}

// places lists the lines at which a text begins.
func places(text, old string, n int) string {
	var out []string
	line, at := 1, 0
	for len(out) < maxPlaces {
		i := strings.Index(text[at:], old)
		if i < 0 {
			break
		}
		line += strings.Count(text[at:at+i], "\n")
		out = append(out, fmt.Sprint(line))
		line += strings.Count(old, "\n")
		at += i + len(old)
	}
	if n > len(out) {
		out = append(out, "…")
	}
	return strings.Join(out, ", ")
}

// notThere explains why a text was not found: it shows the lines of the file that are most like
// it.
func notThere(text, old string) string {
	lines, want := strings.Split(text, "\n"), strings.Split(strings.Trim(old, "\n"), "\n")
	want = want[:min(len(want), maxNear)]
	best, score := -1, 0
	for i := range min(len(lines), maxCompared) {
		s := 0
		for j, w := range want {
			if i+j < len(lines) {
				s += likeness(lines[i+j], w)
			}
		}
		if s > score {
			best, score = i, s
		}
	}
	if best < 0 || score < len(want) {
		return "old_text is not in the file, and nothing like it: read the file first"
	}
	why := "the lines that are most like it are"
	same := func(a, b string) bool { return squeezed(a) == squeezed(b) }
	if end := best + len(want); end <= len(lines) && slices.EqualFunc(lines[best:end], want, same) {
		why = "these lines differ from it in white space"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "old_text is not in the file; %s:\n", why)
	for i := best; i < min(best+len(want), len(lines)); i++ {
		line := strings.TrimSuffix(lines[i], "\r")
		if len(line) > 300 {
			line = strings.ToValidUTF8(line[:300], "") + "…"
		}
		fmt.Fprintf(&b, "%6d\t%s\n", i+1, line)
	}
	return b.String()
}

func squeezed(s string) string { return strings.Join(strings.Fields(s), " ") }

// likeness is how much two lines have in common: 3 if they are the same but for white space, 1
// if they share half of their words.
func likeness(a, b string) int {
	x, y := strings.Fields(a), strings.Fields(b)
	if len(y) == 0 {
		return 0
	}
	if slices.Equal(x, y) {
		return 3
	}
	shared := 0
	for _, w := range y {
		if slices.Contains(x, w) {
			shared++
		}
	}
	if 2*shared >= len(y) {
		return 1
	}
	return 0
}
