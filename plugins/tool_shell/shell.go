// Package tool_shell has the tools that run programs in the folder that a session
// works in: shell, verify and diagram (S-47).
//
// Every command runs in a process group of its own, with an environment that has none
// of yaya's secrets, and its whole tree is gone when it ends, times out, is
// cancelled, or yaya dies (R20). Its output is streamed as tool.progress and kept up
// to 1 MiB, its beginning and its end. yaya does not sandbox commands: they can do
// what its user can, which is why they are asked about.
//
// verify runs the commands that check the work, those of AGENTS.md or the
// configuration. What they were when a session called its first tool is what its user
// is taken to have agreed to: as long as they are the same, verify is not asked about
// (S-51); once they have changed, as by the agent itself, it is (TW-23).
package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Bounds of a command (C.2).
const (
	defaultTimeout = 120 * time.Second
	maxTimeout     = 30 * time.Minute
	maxOutput      = 1 << 20
	maxCommand     = 64 << 10
	progressEvery  = 100 * time.Millisecond
	maxProgress    = 4 << 10
	maxPins        = 10_000
)

// passed are the variables of yaya's own environment that commands get.
var passed = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SHELL", "GOPATH", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GONOSUMDB", "CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME", "XDG_CACHE_HOME"}

// Plugin has the tools.
type Plugin struct {
	folder    func(session string) (string, error)
	trusted   func(session string) bool
	artifacts *tool.Store
	procs     *proc.Manager

	mu   sync.Mutex
	c    plugin.Context
	pins map[string][]string // verify commands that were there when a session began
}

// New returns the plugin. folder returns the absolute path that a session works in,
// trusted whether that folder's checks may run.
func New(folder func(session string) (string, error), trusted func(session string) bool, artifacts *tool.Store, procs *proc.Manager) *Plugin {
	return &Plugin{folder: folder, trusted: trusted, artifacts: artifacts, procs: procs, pins: map[string][]string{}}
}

// Manifest implements [plugin.Plugin].
func (*Plugin) Manifest() plugin.Manifest {
	return plugin.Manifest{
		Name: "tool-shell", Version: "0.1.0", Category: plugin.Tool,
		ConfigSchema: json.RawMessage(`{"type":"object","properties":{"verify":{"type":"array","items":{"type":"string"}},"timeout":{"type":"string","default":"2m"},"env":{"type":"array","items":{"type":"string"}},"max_memory":{"type":"integer"}}}`),
	}
}

// Subscriptions implements [plugin.Plugin].
func (*Plugin) Subscriptions() []string { return nil }

// OnEvent implements [plugin.Plugin].
func (*Plugin) OnEvent(context.Context, event.Event, plugin.Context) error { return nil }

// OnUnload implements [plugin.Plugin]. Commands that run end with their calls.
func (*Plugin) OnUnload(context.Context, plugin.Context) error { return nil }

// OnLoad implements [plugin.Plugin].
func (p *Plugin) OnLoad(_ context.Context, c plugin.Context) error {
	p.mu.Lock()
	p.c = c
	p.mu.Unlock()
	sh, err := tool.New(tool.Definition{
		Name: "shell", Title: "Shell", Kind: tool.KindExec, ForAgents: true, InFolder: true, Timeout: tool.OwnTimeout,
		Description: "Runs a command with sh in the workspace and returns its output, standard error included, and its exit code. Nothing can be typed into it.",
	}, p.shell)
	if err != nil {
		return err
	}
	ver, err := tool.New(tool.Definition{
		Name: "verify", Title: "Verify", Kind: tool.KindExec, ForAgents: true, InFolder: true, Timeout: tool.OwnTimeout,
		Description: "Runs the commands that check the work (those of AGENTS.md or the configuration, make test by default) and returns how they ended.",
	}, p.verify)
	if err != nil {
		return err
	}
	dia, err := tool.New(tool.Definition{
		Name: "diagram", Title: "Diagram", Kind: tool.KindExec, ForAgents: true, InFolder: true, Timeout: tool.OwnTimeout,
		Description: "Draws a diagram from a Graphviz (dot) source and keeps the picture (SVG) as an artifact. Without Graphviz on this machine the source is kept.",
	}, p.diagram)
	if err != nil {
		return err
	}
	return errors.Join(c.RegisterTool(shellTool{sh}), c.RegisterTool(verifyTool{ver, p}), c.RegisterTool(obedient{dia}))
}

type obedient struct{ tool.Tool }

func (obedient) ObeysContext() {}

type shellTool struct{ tool.Tool }

func (shellTool) ObeysContext() {}

// ApprovalBrief implements [tool.ApprovalBriefer].
func (shellTool) ApprovalBrief(call tool.Call) string {
	var a shellArgs
	if json.Unmarshal(call.Args, &a) != nil {
		return "run a command"
	}
	return "run: " + a.Command
}

type shellArgs struct {
	Command string `json:"command" jsonschema:"what sh runs"`
	Dir     string `json:"dir,omitempty" jsonschema:"folder to run it in, relative to the workspace"`
	Timeout int    `json:"timeout_seconds,omitempty" jsonschema:"120 by default, 1800 at most"`
}

func (p *Plugin) shell(ctx context.Context, call tool.Call, a shellArgs) (tool.Result, error) {
	if strings.TrimSpace(a.Command) == "" || len(a.Command) > maxCommand || strings.ContainsRune(a.Command, 0) {
		return tool.Fail(tool.ErrValidation, "the command has between 1 and %d bytes and no NUL", maxCommand), nil
	}
	dir, err := p.place(call.SessionID, a.Dir)
	if err != nil {
		return tool.Fail(tool.ErrValidation, "%v", err), nil
	}
	limit := p.timeout()
	if a.Timeout > 0 {
		limit = min(time.Duration(a.Timeout)*time.Second, maxTimeout)
	}
	r, err := p.run(ctx, dir, a.Command, nil, limit, call.Progress)
	if err != nil {
		return tool.Result{}, err
	}
	return r.result(), nil
}

func (p *Plugin) timeout() time.Duration {
	var s string
	if raw := p.c.Config("timeout"); raw != nil && json.Unmarshal(raw, &s) == nil {
		if d, err := time.ParseDuration(s); err == nil && d > 0 {
			return min(d, maxTimeout)
		}
	}
	return defaultTimeout
}

// place returns the absolute path of a folder of the workspace.
func (p *Plugin) place(session, dir string) (string, error) {
	root, err := p.folder(session)
	if err != nil || dir == "" {
		return root, err
	}
	w, err := workspace.Open(root)
	if err != nil {
		return "", err
	}
	defer func() { _ = w.Close() }()
	at, err := w.Clean(dir)
	if err != nil {
		return "", err
	}
	sub, err := w.Root().OpenRoot(at)
	if err != nil {
		return "", fmt.Errorf("%s is no folder of the workspace", dir)
	}
	return sub.Name(), sub.Close()
}

type diagramArgs struct {
	Source string `json:"source" jsonschema:"what to draw, in the language of Graphviz (dot)"`
}

func (p *Plugin) diagram(ctx context.Context, call tool.Call, a diagramArgs) (tool.Result, error) {
	if len(a.Source) == 0 || len(a.Source) > maxCommand {
		return tool.Fail(tool.ErrValidation, "the source has between 1 and %d bytes", maxCommand), nil
	}
	dir, err := p.place(call.SessionID, "")
	if err != nil {
		return tool.Fail(tool.ErrUnavailable, "%v", err), nil
	}
	r, err := p.run(ctx, dir, "command -v dot >/dev/null || exit 127; exec dot -Tsvg", strings.NewReader(a.Source), 20*time.Second, nil)
	if err != nil {
		return tool.Result{}, err
	}
	kind, data, note := "image/svg+xml", []byte(r.output), "drawn"
	switch {
	case r.code == 127:
		kind, data, note = "text/vnd.graphviz", []byte(a.Source), "Graphviz is not on this machine: the source is kept"
	case r.code != 0 || r.timedOut:
		return r.result(), nil
	}
	art, err := p.artifacts.Put(call, kind, data)
	if err != nil {
		return tool.Result{}, err
	}
	res := tool.OK(note, tool.Text(note+", as artifact "+art.ID))
	res.Artifacts = []tool.Artifact{art}
	return res, nil
}
