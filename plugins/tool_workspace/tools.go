// Package tool_workspace provides the tools that read and change a session's folder: repo_tree,
// repo_map, read_file, multi_read, search, git_status, apply_patch and edit; and todo, which keeps
// the plan of the model.
//
// The tools never reach outside the folder, even through links and names. Trees, maps and
// searches omit the files that .gitignore excludes. A patch is applied completely or not at
// all. The setting plugin.tool_workspace.patch_review controls reviews: "off" leaves the
// decision to the policy, which asks; "request" asks about every patch, whatever rules allow;
// "auto" does not ask about a patch in a Git repository that does not touch files that
// configure tools and agents. Edits are reviewed like patches.
package tool_workspace //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp/syntax"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/yaya-ai/yaya/internal/gitread"
	"github.com/yaya-ai/yaya/internal/undo"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Bounds of what the tools return.
const (
	maxTree    = 500
	maxSymbols = 400
	maxMatches = 200
	maxRead    = 60 << 10 // bytes of a file's text at once
	maxDiff    = 256 << 10
)

// Plugin provides the tools.
type Plugin struct {
	folder    func(session string) (string, error)
	guard     *workspace.Guard
	artifacts *tool.Store
	review    atomic.Pointer[func() string] // reads patch_review
	edits     func(session string) bool     // optional
	// writing is held while files are read and changed: calls of one answer run at once.
	writing sync.Mutex
	undo    *undo.Store // optional
}

// New returns the plugin. folder returns the absolute path that a session works in;
// guard opens it; artifacts keeps diffs.
func New(folder func(session string) (string, error), guard *workspace.Guard, artifacts *tool.Store) *Plugin {
	return &Plugin{folder: folder, guard: guard, artifacts: artifacts}
}

// KeepsUndo has changes kept in a store, so that they can be undone. Call it before the plugin is
// loaded.
func (p *Plugin) KeepsUndo(s *undo.Store) { p.undo = s }

// EditsFreely lets the agents of sessions for which in returns true change files without a question,
// with the exceptions of patch_review "auto"; in folders without Git, too, because such a change can be
// undone. Call it before the plugin is loaded.
func (p *Plugin) EditsFreely(in func(session string) bool) { p.edits = in }

// Manifest implements [plugin.Plugin].
func (*Plugin) Manifest() plugin.Manifest {
	return plugin.Manifest{
		Name: "tool-workspace", Version: "0.1.0", Category: plugin.Tool,
		ConfigSchema: json.RawMessage(`{"type":"object","properties":{"patch_review":{"enum":["off","request","auto"],"default":"off"}}}`),
	}
}

// Subscriptions implements [plugin.Plugin].
func (*Plugin) Subscriptions() []string { return nil }

// OnEvent implements [plugin.Plugin].
func (*Plugin) OnEvent(context.Context, event.Event, plugin.Context) error { return nil }

// OnUnload implements [plugin.Plugin].
func (*Plugin) OnUnload(context.Context, plugin.Context) error { return nil }

// OnLoad implements [plugin.Plugin].
func (p *Plugin) OnLoad(_ context.Context, c plugin.Context) error {
	mode := func() string {
		var s string
		if raw := c.Config("patch_review"); raw == nil || json.Unmarshal(raw, &s) != nil {
			return "off"
		}
		return s
	}
	p.review.Store(&mode)
	return errors.Join(
		add(p, c, tool.Definition{
			Name: "repo_tree", Title: "Tree", Kind: tool.KindRead, ForAgents: true,
			Description: "Lists the files and folders of the workspace, without those that .gitignore leaves out.",
		}, tree),
		add(p, c, tool.Definition{
			Name: "repo_map", Title: "Map of symbols", Kind: tool.KindRead, ForAgents: true,
			Description: "Lists the declarations (types, functions, methods, constants) of the source files below a path, with their lines.",
		}, symbols),
		add(p, c, tool.Definition{
			Name: "read_file", Title: "Read file", Kind: tool.KindRead, ForAgents: true,
			Description: "Reads a text file of the workspace, with line numbers. Long files are read in parts, with offset.",
		}, read),
		add(p, c, tool.Definition{
			Name: "multi_read", Title: "Read files", Kind: tool.KindRead, ForAgents: true,
			Description: "Reads several text files of the workspace, or parts of them, at once, with line numbers.",
		}, multiRead),
		add(p, c, tool.Definition{
			Name: "search", Title: "Search", Kind: tool.KindRead, ForAgents: true,
			Description: "Searches the text files of the workspace for a regular expression (RE2 syntax) and returns the lines.",
		}, search),
		add(p, c, tool.Definition{
			Name: "git_status", Title: "Git status", Kind: tool.KindRead, ForAgents: true,
			Description: "Tells the branch and which files have changed; with diff, what has changed in them since the last commit.",
		}, status),
		p.patcher(c),
		p.editor(c),
		planner(c),
	)
}

// add registers a tool that works on an open workspace.
func add[A any](p *Plugin, c plugin.Context, def tool.Definition, f func(ctx context.Context, w *workspace.Workspace, a A) (tool.Result, error)) error {
	t, err := tool.New(def, func(ctx context.Context, call tool.Call, a A) (tool.Result, error) {
		w, err := p.open(call.SessionID)
		if err != nil {
			return tool.Fail(tool.ErrUnavailable, "%v", err), nil
		}
		defer func() { _ = w.Close() }()
		res, err := f(ctx, w, a)
		if err != nil && ctx.Err() == nil {
			return failure(err), nil
		}
		return res, err
	})
	if err != nil {
		return err
	}
	return c.RegisterTool(t)
}

func (p *Plugin) open(session string) (*workspace.Workspace, error) {
	dir, err := p.folder(session)
	if err != nil {
		return nil, err
	}
	return p.guard.Open(dir)
}

// failure returns the error without the paths of this machine.
func failure(err error) tool.Result {
	kind := tool.ErrTool
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = fmt.Errorf("%s: %w", pe.Path, pe.Err)
	}
	if _, ok := errors.AsType[*syntax.Error](err); ok || errors.Is(err, workspace.ErrOutside) {
		kind = tool.ErrValidation
	}
	return tool.Fail(kind, "%v", err)
}

type treeArgs struct {
	Path  string `json:"path,omitempty" jsonschema:"folder to list, the whole workspace by default"`
	Depth int    `json:"depth,omitempty" jsonschema:"levels to list, 4 by default"`
}

func tree(ctx context.Context, w *workspace.Workspace, a treeArgs) (tool.Result, error) {
	if a.Depth <= 0 {
		a.Depth = 4
	}
	entries, more, err := w.Tree(ctx, or(a.Path, "."), min(a.Depth, 32), maxTree)
	if err != nil {
		return tool.Result{}, err
	}
	text := workspace.Format(entries)
	if more {
		text += fmt.Sprintf("… only the first %d entries are listed: name a path\n", maxTree)
	}
	return tool.OK(worded.Count(len(entries), "entry", "entries"), tool.Text(or(text, "the folder is empty"))), nil
}

type mapArgs struct {
	Path string `json:"path,omitempty" jsonschema:"folder to map, the whole workspace by default"`
}

func symbols(ctx context.Context, w *workspace.Workspace, a mapArgs) (tool.Result, error) {
	all, more, err := w.Symbols(ctx, or(a.Path, "."), maxSymbols)
	if err != nil {
		return tool.Result{}, err
	}
	text := FormatSymbols(all)
	if more {
		text += fmt.Sprintf("… only the first %d are listed: name a path\n", maxSymbols)
	}
	return tool.OK(worded.Count(len(all), "symbol", "symbols"), tool.Text(or(text, "there are none"))), nil
}

// FormatSymbols formats symbols by file.
func FormatSymbols(all []workspace.Symbol) string {
	var b strings.Builder
	last := ""
	for _, s := range all {
		if s.Path != last {
			fmt.Fprintf(&b, "%s\n", workspace.Shown(s.Path))
			last = s.Path
		}
		fmt.Fprintf(&b, "  %d: %s %s\n", s.Line, s.Kind, s.Name)
	}
	return b.String()
}

type readArgs struct {
	Path   string `json:"path" jsonschema:"file, relative to the workspace"`
	Offset int    `json:"offset,omitempty" jsonschema:"line to begin at, 1 by default"`
	Limit  int    `json:"limit,omitempty" jsonschema:"lines to read, 1000 by default"`
}

func read(_ context.Context, w *workspace.Workspace, a readArgs) (tool.Result, error) {
	text, shown, err := part(w, a, maxRead)
	if err != nil {
		return tool.Result{}, fmt.Errorf("%s: %w", a.Path, err)
	}
	return tool.OK(strings.TrimSuffix(a.Path+", "+shown, ", "), tool.Text(text)), nil
}

// part returns the lines of a file, or of a part of it, with their numbers, in about room bytes;
// and which lines they are.
func part(w *workspace.Workspace, a readArgs, room int) (shown, which string, err error) {
	text, err := w.Text(a.Path)
	if err != nil {
		return "", "", err
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	from := max(a.Offset, 1)
	if text == "" || from > len(lines) {
		n := worded.Count(len(lines), "line", "lines")
		return "(no lines there: the file has " + n + ")", n, nil
	}
	if a.Limit <= 0 {
		a.Limit = 1000
	}
	to := min(from-1+a.Limit, len(lines))
	var b strings.Builder
	for n := from; n <= to; n++ {
		line := strings.TrimSuffix(lines[n-1], "\r")
		if len(line) > 4000 {
			line = strings.ToValidUTF8(line[:4000], "") + "… (the line is longer)"
		}
		if b.Len()+len(line) > room && n > from {
			to = n - 1
			break
		}
		fmt.Fprintf(&b, "%6d\t%s\n", n, line)
	}
	if to < len(lines) {
		fmt.Fprintf(&b, "… the file has %d lines: continue with offset %d\n", len(lines), to+1)
	}
	return b.String(), fmt.Sprintf("lines %d to %d of %d", from, to, len(lines)), nil
}

type searchArgs struct {
	Pattern    string `json:"pattern" jsonschema:"regular expression (RE2 syntax)"`
	Literal    bool   `json:"literal,omitempty" jsonschema:"take the pattern as it is"`
	IgnoreCase bool   `json:"ignore_case,omitempty"`
	Path       string `json:"path,omitempty" jsonschema:"folder or file to search, the whole workspace by default"`
	Glob       string `json:"glob,omitempty" jsonschema:"names of files to search, as in *.go or src/**/*.ts"`
}

func search(ctx context.Context, w *workspace.Workspace, a searchArgs) (tool.Result, error) {
	if a.Pattern == "" || len(a.Pattern) > 4096 {
		return tool.Fail(tool.ErrValidation, "the pattern must have between 1 and 4096 bytes"), nil
	}
	found, more, err := w.Search(ctx, workspace.Query{Pattern: a.Pattern, Literal: a.Literal, IgnoreCase: a.IgnoreCase, Path: a.Path, Glob: a.Glob, Limit: maxMatches})
	if err != nil {
		return tool.Result{}, err
	}
	var b strings.Builder
	for _, m := range found {
		fmt.Fprintf(&b, "%s:%d: %s\n", workspace.Shown(m.Path), m.Line, m.Text)
	}
	if more {
		fmt.Fprintf(&b, "… only the first %d are listed: be more precise\n", maxMatches)
	}
	return tool.OK(worded.Count(len(found), "match", "matches"), tool.Text(or(b.String(), "there are none"))), nil
}

type statusArgs struct {
	Diff bool `json:"diff,omitempty" jsonschema:"show what has changed, too"`
}

func status(ctx context.Context, w *workspace.Workspace, a statusArgs) (tool.Result, error) {
	st, err := gitread.ReadStatus(ctx, w.Root(), w.Dir())
	if err != nil {
		return tool.Result{}, err
	}
	for i, c := range st.Changed {
		st.Changed[i] = workspace.Shown(c)
	}
	text := "branch " + workspace.Shown(st.Branch) + "\n" + or(strings.Join(st.Changed, "\n"), "nothing has changed")
	if st.More {
		text += "\n… there are others"
	}
	blocks := []tool.Block{tool.Text(text)}
	if a.Diff {
		diff, err := gitread.ReadDiff(ctx, w.Root(), w.Dir(), maxDiff)
		if err != nil {
			return tool.Result{}, err
		}
		blocks = append(blocks, tool.Text(diff))
	}
	return tool.OK(worded.Count(len(st.Changed), "file has changed", "files have changed"), blocks...), nil
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
