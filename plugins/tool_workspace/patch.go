package tool_workspace //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/yaya-ai/yaya/internal/patch"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
)

type patchArgs struct {
	Patch string `json:"patch" jsonschema:"a unified diff (--- a/file, +++ b/file, @@), or the format that begins with *** Begin Patch"`
}

// changer is a tool that changes files. It writes its own prompt, which lists them.
type changer struct {
	tool.Tool
	dry   tool.Tool // finds out what it would do, and changes nothing
	p     *Plugin
	files func(args json.RawMessage) ([]patch.File, error)
}

// change makes the changes of a call; with dry it leaves the files as they are.
type change[A any] func(ctx context.Context, call tool.Call, a A, dry bool) (tool.Result, error)

// register registers a tool that changes files.
func register[A any](p *Plugin, c plugin.Context, def tool.Definition, do change[A], files func(args json.RawMessage) ([]patch.File, error)) error {
	as := func(dry bool) (tool.Tool, error) {
		return tool.New(def, func(ctx context.Context, call tool.Call, a A) (tool.Result, error) { return do(ctx, call, a, dry) })
	}
	t, err := as(false)
	if err != nil {
		return err
	}
	dry, err := as(true)
	if err != nil {
		return err
	}
	return c.RegisterTool(changer{t, dry, p, files})
}

// Check implements [tool.Checker]: a patch that does not apply need not be looked at by anybody. Its answer
// has no lines of the file: there may be a rule about reading, and nobody has been asked.
func (t changer) Check(ctx context.Context, call tool.Call) (tool.Result, bool) {
	res, err := t.dry.Invoke(ctx, call)
	if err != nil || res.OK {
		return res, true
	}
	why, _, more := strings.Cut(res.Text(), "\n")
	if more {
		why, _, _ = strings.Cut(strings.TrimSuffix(why, ":"), "; ")
		why += ": read the file first"
	}
	return tool.Fail(res.ErrorKind, "%s", why), false
}

// patched returns the files of a patch.
func patched(args json.RawMessage) ([]patch.File, error) {
	var a patchArgs
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	return patch.Parse(a.Patch)
}

func (p *Plugin) mode() string {
	if f := p.review.Load(); f != nil {
		return (*f)()
	}
	return "off"
}

// PreApproved implements [tool.PreApproved]: patch_review is "auto", or the user of the session lets its
// agent change files.
func (t changer) PreApproved(call tool.Call) bool {
	freely := t.p.edits != nil && call.Origin == tool.OriginLoop && t.p.edits(call.SessionID)
	if t.p.mode() != "auto" && !freely {
		return false
	}
	files, err := t.files(call.Args)
	if err != nil {
		return false
	}
	w, err := t.p.open(call.SessionID)
	if err != nil {
		return false
	}
	defer func() { _ = w.Close() }()
	if _, err := w.Root().Lstat(".git"); err != nil && !freely { // it could not be reverted
		return false
	}
	for _, f := range files {
		for _, name := range []string{f.Path, f.To} {
			if name == "" {
				continue
			}
			if at, err := place(w, name); err != nil || w.Controls(at) || w.Writable(at) != nil {
				return false
			}
		}
	}
	return true
}

// Touches implements [tool.Toucher].
func (t changer) Touches(call tool.Call) (paths []string) {
	files, err := t.files(call.Args)
	if err != nil {
		return nil // nothing is changed
	}
	w, err := t.p.open(call.SessionID)
	if err != nil {
		return nil
	}
	defer func() { _ = w.Close() }()
	for _, f := range files {
		for _, name := range []string{f.Path, f.To} {
			if at, err := place(w, name); name != "" && err == nil {
				paths = append(paths, at)
			}
		}
	}
	return paths
}

// Hook reviews patches for the dispatcher.
func (p *Plugin) Hook() tool.Hook { return reviewer{p} }

type reviewer struct{ p *Plugin }

// PreToolCall implements [tool.Hook].
func (r reviewer) PreToolCall(_ context.Context, call tool.Call, def tool.Definition) (tool.Verdict, error) {
	if (call.Name == "apply_patch" || call.Name == "edit") && def.Identity.Provider == "" && r.p.mode() == "request" {
		return tool.Verdict{Decision: tool.Ask, Reason: "patches are reviewed"}, nil
	}
	return tool.Verdict{}, nil
}

// ApprovalBrief implements [tool.ApprovalBriefer].
func (t changer) ApprovalBrief(call tool.Call) string {
	files, err := t.files(call.Args)
	if err != nil {
		return "change files, with arguments that cannot be read"
	}
	var names []string
	for _, f := range files {
		names = append(names, string(f.Op)+" "+f.Path)
	}
	return strings.Join(names, ", ")
}

func (p *Plugin) patcher(c plugin.Context) error {
	return register(p, c, tool.Definition{
		Name: "apply_patch", Title: "Apply patch", Kind: tool.KindWrite, ForAgents: true, InFolder: true,
		Description: "Changes, creates, moves and deletes text files of the workspace by a patch, which is applied whole or not at all. Hunks are found by their lines; give three lines of context around each change.",
	}, p.apply, patched)
}

func (p *Plugin) apply(ctx context.Context, call tool.Call, a patchArgs, dry bool) (tool.Result, error) {
	files, err := patch.Parse(a.Patch)
	if err != nil {
		return tool.Fail(tool.ErrValidation, "%v", err), nil
	}
	w, err := p.open(call.SessionID)
	if err != nil {
		return tool.Fail(tool.ErrUnavailable, "%v", err), nil
	}
	defer func() { _ = w.Close() }()
	p.writing.Lock()
	defer p.writing.Unlock()
	edits, summary, shown, err := plan(w, files)
	if err != nil {
		return failure(fmt.Errorf("nothing was changed: %w", err)), nil
	}
	if dry {
		return tool.OK("it applies"), nil
	}
	kept, err := p.write(ctx, call, w, edits)
	if err != nil {
		return failure(fmt.Errorf("nothing was changed: %w", err)), nil
	}
	res := tool.OK(worded.Count(len(files), "file changed", "files changed"), tool.Text(strings.Join(summary, "\n")+kept))
	return p.withDiff(call, res, shown), nil
}

// write makes the edits of a call, and keeps what it needs to undo them. A change that cannot be
// undone is made, too, and kept says so.
func (p *Plugin) write(ctx context.Context, call tool.Call, w *workspace.Workspace, edits []workspace.Edit) (kept string, err error) {
	if p.undo == nil {
		return "", w.Apply(edits)
	}
	var paths []string
	for _, e := range edits {
		paths = append(paths, e.Path)
	}
	change, uerr := p.undo.Begin(ctx, event.Root(call.SessionID), call.Name, w, paths...)
	err = w.Apply(edits)
	if uerr == nil {
		_, uerr = change.Done(context.WithoutCancel(ctx))
	} else if err == nil {
		uerr = errors.Join(uerr, p.undo.Missed(event.Root(call.SessionID), call.Name, w))
	}
	if uerr != nil {
		kept = fmt.Sprintf("\n[this change cannot be undone: %v]", uerr)
	}
	return kept, err
}

// withDiff adds the diff of a change to its result, if it can be kept: the change counts.
func (p *Plugin) withDiff(call tool.Call, res tool.Result, shown []byte) tool.Result {
	if p.artifacts == nil {
		return res
	}
	art, err := p.artifacts.Put(call, "text/x-diff", shown)
	if err == nil {
		res.Artifacts = append(res.Artifacts, art)
	}
	return res
}

// plan computes the effect of a patch on the workspace without changing it.
func plan(w *workspace.Workspace, files []patch.File) (edits []workspace.Edit, summary []string, shown []byte, err error) {
	for _, f := range files {
		at, err := place(w, f.Path)
		if err != nil {
			return nil, nil, nil, err
		}
		var old string
		exists := true
		if f.Op == patch.Create {
			if err := vacant(w, at); err != nil {
				return nil, nil, nil, err
			}
			exists = false
		} else if old, err = w.Text(at); err != nil {
			return nil, nil, nil, fmt.Errorf("%s: %w", at, err)
		}
		var content string
		if f.Op != patch.Delete || len(f.Hunks) > 0 {
			if content, err = f.Apply(old); err != nil {
				return nil, nil, nil, err
			}
		}
		to := at
		if f.To != "" {
			if to, err = place(w, f.To); err != nil {
				return nil, nil, nil, err
			}
			if err := vacant(w, to); err != nil {
				return nil, nil, nil, err
			}
		}
		if f.Op == patch.Delete && content != "" {
			return nil, nil, nil, fmt.Errorf("the patch deletes %s, but leaves %d bytes of it", at, len(content))
		}
		var mode fs.FileMode
		if exists {
			if info, err := w.Root().Lstat(at); err == nil {
				mode = info.Mode().Perm()
			}
		}
		switch {
		case f.Op == patch.Delete:
			edits = append(edits, workspace.Edit{Path: at, Delete: true})
		case to != at:
			edits = append(edits, workspace.Edit{Path: to, Data: []byte(content), Mode: mode}, workspace.Edit{Path: at, Delete: true})
		default:
			edits = append(edits, workspace.Edit{Path: at, Data: []byte(content)})
		}
		d := diff.Diff("a/"+at, []byte(old), "b/"+to, []byte(content))
		shown = append(shown, d...)
		summary = append(summary, describe(f, at, to, d))
	}
	return edits, summary, shown, nil
}

// vacant returns why no file can be made at a place; nil if none is there.
func vacant(w *workspace.Workspace, at string) error {
	_, err := w.Root().Lstat(at)
	switch {
	case err == nil:
		return fmt.Errorf("%s is there already", at)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	if _, _, why := w.Read(at); why != nil { // in the words that other tools have for it
		err = why
	}
	return fmt.Errorf("%s: %w", at, err)
}

// place returns the location of a file of a patch. It rejects Git's own files.
func place(w *workspace.Workspace, p string) (string, error) {
	at, err := w.Clean(p)
	if err != nil || at == "." {
		return "", fmt.Errorf("%.200q: %w", p, workspace.ErrOutside)
	}
	if slices.Contains(strings.Split(strings.ToLower(at), "/"), ".git") {
		return "", fmt.Errorf("%s belongs to git", path.Clean(at))
	}
	return at, nil
}

func describe(f patch.File, at, to string, d []byte) string {
	_, hunks, _ := strings.Cut(string(d), "\n@@") // above them, +++ and --- name files
	plus, minus := strings.Count(hunks, "\n+"), strings.Count(hunks, "\n-")
	name := at
	if to != at {
		name += " → " + to
	}
	verb := map[patch.Op]string{patch.Create: "created", patch.Change: "changed", patch.Delete: "deleted"}[f.Op]
	return fmt.Sprintf("%s %s (+%d −%d)", verb, name, plus, minus)
}
