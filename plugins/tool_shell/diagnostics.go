package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/lsp"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Bounds of a call of diagnostics.
const (
	maxAsked    = 20 // files
	maxReported = 100
	diagnosedIn = 2 * time.Minute
)

const diagnosticsFor = "Asks the language servers of this machine (for Go, TypeScript, JavaScript, Python, Rust, C and others) what is wrong in files of the workspace: errors of the compiler and the type checker, with places. It reads the files as they are on the disk; use it after changes, before the checks, which take longer."

// diagnosticsTool needs no approval: the servers write nothing and reach nobody, since they run in
// a sandbox or not at all.
type diagnosticsTool struct{ obedient }

// PreApproved implements [tool.PreApproved].
func (diagnosticsTool) PreApproved(tool.Call) bool { return true }

type diagnosticsArgs struct {
	Paths []string `json:"paths" jsonschema:"up to 20 files, relative to the workspace"`
}

// diagnostics asks language servers about files.
func (p *Plugin) diagnostics(ctx context.Context, call tool.Call, a diagnosticsArgs) (tool.Result, error) {
	if len(a.Paths) == 0 || len(a.Paths) > maxAsked {
		return tool.Fail(tool.ErrValidation, "name between 1 and %d files", maxAsked), nil
	}
	at, err := p.open(call.SessionID, "")
	if err != nil {
		return tool.Fail(tool.ErrUnavailable, "%v", err), nil
	}
	defer at.close()
	by, err := grouped(at.w, a.Paths)
	if err != nil {
		return tool.Fail(tool.ErrValidation, "%v", err), nil
	}
	limit, cancel := context.WithTimeout(ctx, diagnosedIn)
	defer cancel()
	var r report
	for l, files := range by {
		if err := p.ask(limit, call, at, l, files, &r); err != nil {
			if ctx.Err() != nil {
				return tool.Result{}, context.Cause(ctx)
			}
			r.failed = append(r.failed, err)
		}
	}
	return r.result(p.c.Secrets().String)
}

// grouped reads files, by their language servers.
func grouped(w *workspace.Workspace, paths []string) (map[*language][]lsp.File, error) {
	by, all := map[*language][]lsp.File{}, map[string]bool{}
	for _, path := range paths {
		p, err := w.Clean(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		l, id := languageOf(p)
		if l == nil {
			return nil, fmt.Errorf("%s: yaya knows no language server for such files", path)
		}
		text, err := w.Text(p)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no file %s", path)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if !all[p] {
			all[p] = true
			by[l] = append(by[l], lsp.File{Path: p, Language: id, Text: text})
		}
	}
	return by, nil
}

// ask asks one server.
func (p *Plugin) ask(ctx context.Context, call tool.Call, at *place, l *language, files []lsp.File, r *report) error {
	key := serverKey{call.SessionID, canonical(at.root), l}
	s, release, err := p.langs.use(ctx, key)
	if err != nil {
		return err
	}
	defer release()
	if err := p.running(ctx, s, key, at.w); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, s.child.Kill) // it may not read
	defer stop()
	err = s.tellChanges(ctx, at.w, l)
	var found []lsp.Finding
	whole := false
	if err == nil {
		limit, cancel := context.WithTimeout(ctx, diagnosedIn/2)
		defer cancel()
		found, whole, err = s.srv.Check(limit, files, func(path string) (string, bool) {
			text, err := at.w.Text(path)
			return text, err == nil
		})
	}
	if err != nil {
		child := s.child
		s.stop() // the next call starts another one
		return p.wrote(child, err)
	}
	r.found = append(r.found, found...)
	r.partial = r.partial || !whole
	return nil
}

// report gathers the answers of servers.
type report struct {
	found   []lsp.Finding
	partial bool // a server had not finished
	failed  []error
}

var severities = map[lsp.Severity]string{lsp.Problem: "error", lsp.Warning: "warning", lsp.Information: "information", lsp.Hint: "hint"}

func (r report) result(clean func(string) string) (tool.Result, error) {
	if len(r.found) == 0 && len(r.failed) > 0 {
		err := errors.Join(r.failed...)
		if f, ok := errors.AsType[*tool.Failure](err); ok && len(r.failed) == 1 {
			return tool.Fail(f.Kind, "%v", f), nil
		}
		return tool.Fail(tool.ErrUnavailable, "%v", err), nil
	}
	var b strings.Builder
	problems := 0
	for i, f := range r.found {
		if f.Severity == lsp.Problem {
			problems++
		}
		if i >= maxReported {
			continue
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s: %s", workspace.Shown(f.Path), f.Line, f.Column, severities[f.Severity], f.Message)
		if f.From != "" {
			fmt.Fprintf(&b, " (%s)", f.From)
		}
		b.WriteByte('\n')
	}
	if n := len(r.found) - maxReported; n > 0 {
		fmt.Fprintf(&b, "[%d more]\n", n)
	}
	if len(r.found) == 0 {
		b.WriteString("nothing found\n")
	}
	if r.partial {
		b.WriteString("[a language server has not finished: ask again for the rest]\n")
	}
	for _, err := range r.failed {
		fmt.Fprintf(&b, "[%v]\n", err)
	}
	summary := worded.Count(problems, "error", "errors")
	if n := len(r.found) - problems; n > 0 {
		summary += " and " + worded.Count(n, "other finding", "other findings")
	}
	res := tool.OK(summary, tool.Text(clean(b.String())))
	structured, err := json.Marshal(map[string]any{"errors": problems, "others": len(r.found) - problems, "whole": !r.partial && len(r.failed) == 0})
	if err != nil {
		return tool.Result{}, err
	}
	res.Structured = structured
	return res, nil
}
