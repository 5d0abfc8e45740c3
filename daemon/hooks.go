package daemon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/hooks"
	"github.com/yaya-ai/yaya/internal/agentpackage"
	"github.com/yaya-ai/yaya/internal/hookconf"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/plugins/installed"
	"github.com/yaya-ai/yaya/plugins/tool_shell"
)

// claudeHooks is the setting that files of Claude Code count.
const claudeHooks = "hooks.claude"

// UserHooks are the user's files of hooks: yaya's own, and that of Claude Code.
func (p Paths) UserHooks() (own, claude string) {
	return filepath.Join(p.Config, "hooks.toml"), filepath.Join(p.Home, ".claude", "settings.json")
}

// startHooks starts the hooks, and has them see all calls, turns and events.
func (c *core) startHooks(ctx context.Context) error {
	at := c.st.at
	own, claude := at.UserHooks()
	cfg := hooks.Config{
		User: own, UserClaude: claude, Claude: func() bool { return at.settings.Bool(claudeHooks) },
		More: c.packages.hooks, Open: c.openHooks, Folder: c.hookFolder, Log: at.log,
		Run: func(ctx context.Context, p hooks.Program) (hooks.Ended, error) {
			end, err := c.shell.Run(ctx, tool_shell.Program{Session: p.Session, Folder: p.Folder, Command: p.Command, Env: p.Env, Input: p.Input, Limit: p.Limit, Secrets: at.secrets})
			return hooks.Ended(end), err
		},
	}
	if c.st.controlPlane != nil {
		cfg.Audit = c.st.controlPlane.denied
	}
	c.hooks = hooks.Start(context.WithoutCancel(ctx), cfg) // until Close
	c.packages.changed = c.hooks.Changed
	stop, err := c.hooks.Follow(c.kernel.Bus)
	if err != nil {
		return err
	}
	c.ends.add(stop)
	c.kernel.Dispatch.AddHook(c.hooks)
	c.kernel.Dispatch.SetAfter(c.hooks)
	c.kernel.SetAdmit(c.hooks.Admit)
	return nil
}

// openHooks is openTrusted for a folder with files of hooks. Whether it is trusted is looked up
// only then: that reads more than these files.
func (c *core) openHooks(session string) (w *workspace.Workspace, done func()) {
	dir := c.st.workspace
	if session != "" {
		at, err := c.folder(session)
		if err != nil {
			return nil, func() {}
		}
		dir = at
	}
	for _, name := range hooks.Files(c.st.at.settings.Bool(claudeHooks)) {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return c.openTrusted(session)
		}
	}
	return nil, func() {}
}

// approving runs the hooks for an ask. A client that started the agent with yaya_run is told that it waits.
func (c *core) approving(ctx context.Context, call tool.Call, def tool.Definition) error {
	c.tasks.say(call.SessionID, "waits for approval: "+def.Name)
	return c.hooks.Approving(ctx, call, def)
}

// hookFolder returns the folder that the hooks of a session run in: its own, otherwise that of
// yaya, and where no sandbox can be in that, an empty one.
func (c *core) hookFolder(session string) (string, error) {
	if session != "" {
		if dir, err := c.folder(session); err == nil && c.st.guard.Check(dir) == nil {
			return dir, nil
		}
	}
	if c.st.guard.Check(c.st.workspace) == nil {
		return c.st.workspace, nil
	}
	return c.spare.get()
}

// spareFolder is an empty folder, made when it is first needed.
type spareFolder struct {
	mu  sync.Mutex
	dir string
}

func (s *spareFolder) get() (dir string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == "" {
		s.dir, err = os.MkdirTemp("", "yaya-hooks-")
	}
	return s.dir, err
}

func (s *spareFolder) remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == "" {
		return nil
	}
	return os.RemoveAll(s.dir) //nolint:forbidigo // a folder of this process's own
}

// denied puts the denial of a hook into the audit.
func (c *controlPlane) denied(d hooks.Denial) error {
	_, err := c.log.Append(context.Background(), control.Change{
		Event: "hook_denied", Actor: Printable(cmp.Or(d.Principal, c.kernel), 100), Target: Printable(d.Hook, 100),
		Payload: map[string]any{"file": d.File, "event": d.Event, "session_id": d.Session, "tool": d.Tool, "reason": d.Reason},
	}, nil)
	return err
}

// hooksDiagnosis returns the row of doctor about hooks; false if there are none.
func (c *core) hooksDiagnosis() (plugin.Diagnosis, bool) {
	s := c.hooks.State()
	r := plugin.HealthReport{Status: plugin.Healthy, Summary: fmt.Sprintf("hooks: %d", s.Hooks)}
	switch {
	case s.Denies:
		r = plugin.HealthReport{Status: plugin.Failing, Summary: "calls of tools are denied, since hooks cannot be read: " + s.Err.Error()}
	case s.Err != nil:
		r = plugin.HealthReport{Status: plugin.Degraded, Summary: "the hooks that were read before are in force: " + s.Err.Error()}
	case len(s.Ignored) > 0:
		r = plugin.HealthReport{Status: plugin.Degraded, Summary: "hooks of Claude Code that yaya does not run: " + strings.Join(s.Ignored[:min(len(s.Ignored), 10)], ", ")}
	}
	return plugin.Diagnosis{Plugin: "hooks", HealthReport: r}, s.Hooks > 0 || s.Err != nil || len(s.Ignored) > 0
}

// hookItems are the hooks of a folder, as the question about it shows them. The digest covers
// the files of the folder that the command names.
func hookItems(w *workspace.Workspace, claude bool, seen *manage.Digests) (out []folder.Item, err error) {
	f := hooks.Project(w, claude)
	commands := make([]string, 0, len(f.Hooks))
	for _, h := range f.Hooks {
		commands = append(commands, h.Command)
	}
	sums, err := seen.Commands(w, commands)
	if err != nil {
		return nil, fmt.Errorf("hooks: %w", err)
	}
	for i, h := range f.Hooks {
		name := string(h.Event)
		if h.Tool != "" {
			name += " (" + h.Tool + ")"
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "%q %v %v %s", h.Name, h.Timeout, h.Claude, sums[i]))
		out = append(out, folder.Item{Kind: folder.Hook, Name: name, Runs: h.Command, Digest: hex.EncodeToString(sum[:])})
	}
	if f.Err != nil {
		out = append(out, folder.Item{Kind: folder.Hook, Name: "cannot be read", Runs: Printable(f.Err.Error(), 1000)})
	}
	return out, nil
}

// HooksHere are the hooks of the user and of a folder.
type HooksHere struct {
	User, Project hooks.Found
	Trusted       bool
}

// Hooks returns the hooks of a folder and of the user.
func (g *Flags) Hooks(dir string) (here HooksHere, err error) {
	err = g.withFolder(dir, func(p Paths, settings *config.Store, w *workspace.Workspace, st folder.Status) error {
		theirs := settings.Bool(claudeHooks)
		own, claude := p.UserHooks()
		if !theirs {
			claude = ""
		}
		here.User, here.Trusted = hooks.User(own, claude), st.Trusted
		p.eachPackage(settings, func(e installed.Entry, parts *agentpackage.Package) {
			here.User.Hooks = append(here.User.Hooks, hooksIn(e.Folder(), parts)...)
		})
		if w != nil {
			here.Project = hooks.Project(w, theirs)
		}
		return nil
	})
	return here, err
}

// TestHook runs a hook as an event would, in its sandbox.
func (a *App) TestHook(ctx context.Context, h hookconf.Hook, tool, prompt string, input json.RawMessage) (hookconf.Answer, error) {
	return a.bridge.core.hooks.Test(ctx, h, hooks.Call{Tool: tool, Prompt: prompt, Input: input})
}
