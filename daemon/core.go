package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway"
	"github.com/yaya-ai/yaya/gateway/plane/measure"
	"github.com/yaya-ai/yaya/hooks"
	"github.com/yaya-ai/yaya/internal/agentskill"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/internal/telemetry"
	"github.com/yaya-ai/yaya/kernel"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/plugins/agent_tool"
	"github.com/yaya-ai/yaya/plugins/llm_anthropic"
	"github.com/yaya-ai/yaya/plugins/llm_echo"
	"github.com/yaya-ai/yaya/plugins/llm_gemini"
	"github.com/yaya-ai/yaya/plugins/llm_ollama"
	"github.com/yaya-ai/yaya/plugins/llm_openai"
	"github.com/yaya-ai/yaya/plugins/llm_responses"
	"github.com/yaya-ai/yaya/plugins/memory_sqlite"
	"github.com/yaya-ai/yaya/plugins/provider"
	"github.com/yaya-ai/yaya/plugins/skills"
	"github.com/yaya-ai/yaya/plugins/strategy_coder"
	"github.com/yaya-ai/yaya/plugins/strategy_react"
	"github.com/yaya-ai/yaya/plugins/tool_plan"
	"github.com/yaya-ai/yaya/plugins/tool_shell"
	"github.com/yaya-ai/yaya/plugins/tool_web"
	"github.com/yaya-ai/yaya/plugins/tool_workspace"
)

// core is the phase of the kernel: with the gate of untrusted folders, those who are asked,
// and the plugins of agents, which hook into its calls. Nothing is started yet.
type core struct {
	st       *stores
	kernel   *kernel.Kernel
	procs    *proc.Manager // of whatever is started
	metrics  *gateway.Metrics
	mix      *measure.Mix
	commands *commands // sessions that yaya run has given rules of their own
	tasks    *tasks    // that MCP clients have given to agents
	// resources are the sessions as MCP clients read them; nil without.
	resources atomic.Pointer[sessionResources]
	people    people
	gate      *folder.Gate
	files     *tool_workspace.Plugin
	shell     *tool_shell.Plugin
	web       *tool_web.Plugin
	plan      *tool_plan.Plugin
	coder     *strategy_coder.Plugin
	hooks     *hooks.Hooks
	spare     spareFolder
	library   *agentskill.Library
	skills    *skills.Plugin
	helpers   *agent_tool.Plugin
	memory    *memory_sqlite.Plugin
	plugins   *thirdParty
	packages  *packages
	models    *modelList
	services  []*provider.Plugin // of models; nil where no agents are loaded
	recorded  *bus.Subscription
	// telemetry sends traces and metrics; nil if they go nowhere.
	telemetry *telemetry.Telemetry
	// unsent is why telemetry goes nowhere that should be sent.
	unsent  error
	ends    undo
	stopped []func(context.Context) error // are called once the kernel has stopped
	undone  *undoable
}

// openCore puts the kernel together.
func openCore(ctx context.Context, st *stores) (_ *core, err error) {
	at := st.at
	c := &core{
		st: st, procs: &proc.Manager{Guard: true, Escaped: tellEscapees(at.log)}, metrics: at.metrics, mix: new(measure.Mix),
		commands: new(commands), tasks: newTasks(), memory: memory_sqlite.New(filepath.Join(at.data.Name(), "memory.db")),
	}
	if c.models, err = openModels(at.data, at.settings); err != nil {
		at.log.Warn().Err(err).Msg("the list of models in the data directory is not used")
	}
	cfg := kernel.Config{
		Data: at.data, Settings: at.settings, Workspace: st.workspace, Version: Version(), Asker: c.tasks.asker,
		Observer: observers{c.metrics, usage{c.mix}, st.record}, Scopes: auth.ScopeNames(), Secrets: at.secrets, Models: c.models.catalogue, Synced: at.metrics.Synced("tape"), Log: at.log,
	}
	if st.controlPlane != nil {
		cfg.Audit, cfg.Denied = st.controlPlane.decided, st.controlPlane.guarded
	}
	n := st.cluster()
	var own *owner
	if n != nil {
		if own, err = openOwner(n, at.data, at.log); err != nil {
			return nil, err
		}
		cfg.Owner = own
	} else {
		cfg.Owner = ownerAlone(at.data)
	}
	k, err := kernel.Open(cfg)
	if err != nil {
		return nil, err
	}
	c.kernel = k
	if n != nil {
		k.Artifacts.Mark = "@" + n.nodes.Name()
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close(ctx))
		}
	}()
	c.procs.Adopt() // before anything is started
	if n != nil {
		own.serve(k)
	}
	if c.recorded, err = st.record.follow(k.Bus); err != nil {
		return nil, err
	}
	counted, err := c.metrics.Follow(k.Bus)
	if err != nil {
		return nil, err
	}
	c.ends.add(counted)
	if err := c.openTelemetry(ctx); err != nil {
		return nil, err
	}
	c.people = people{commands: c.commands, approvals: k.Approvals, dispatch: k.Dispatch, first: c.approving}
	k.Dispatch.SetApprover(c.people)
	c.gate = folder.NewGate(folder.GateConfig{Store: st.folders, Folder: c.folder, Ask: c.people.ask})
	k.Dispatch.SetGate(c.gate)
	k.SetLook(c.gate.Hold)
	c.packages = &packages{loaded: map[string]*agentPackage{}, changed: func() {}}
	if c.undone, err = openUndo(at.data, at.secrets); err != nil {
		return nil, err
	}
	c.stopped = append(c.stopped, func(context.Context) error { return c.undone.Close() })
	k.Sessions.SetEnded(c.undone.Forget)
	c.files = tool_workspace.New(c.folder, st.guard, k.Artifacts)
	c.files.KeepsUndo(c.undone.Store)
	c.files.EditsFreely(func(id string) bool {
		mode, err := k.Sessions.Mode(id)
		return err == nil && mode == session.Edits
	})
	c.shell = tool_shell.New(tool_shell.Config{
		Folder: c.folder, Trusted: c.gate.Trusted, Agreed: c.gate.Agreed, Guard: st.guard, Artifacts: k.Artifacts, Procs: c.procs, Data: at.data, Sandboxes: st.sandboxes,
		Ask: c.people.askAboutHost, Unasked: c.commands.unasked, Remedy: at.settings.Remedy,
		Hosts: func() []string { return at.settings.Texts(commandHosts) }, Write: func() []string { return at.settings.Texts(commandWrite) },
		OwnParts: c.packages.shown, Undo: c.undone.Store,
	})
	st.folders.OnChange(c.shell.TrustChanged) // after the gate, which forgets its answers
	c.web = tool_web.New(sandbox.Web{Listens: st.sandboxes.Listens}, c.shell, k.Artifacts)
	c.plan = tool_plan.New(k.Sessions)
	k.Dispatch.SetWitness(c.shell.Unreviewed)
	c.coder = strategy_coder.New(strategy_coder.Config{Folder: c.folder, Look: c.gate.Look, Verify: c.shell})
	c.library = agentskill.NewLibrary(at.UserSkills()...)
	c.library.Also(c.packages.skillFolders)
	c.skills = skills.New(skills.Config{Library: c.library, Open: c.openSkills, Look: c.lookAtSkills, Hidden: func(dir string) bool {
		return (inside(dir, at.Config) || inside(dir, at.data.Name())) && !c.packages.shows(dir)
	}})
	k.AddNotes(c.skills.Catalogue)
	c.helpers = agent_tool.New(k.Sessions, k.Loop, agent_tool.Files{Open: c.openSkills, Look: c.lookAtSkills, User: at.UserAgents(), Restricted: c.restrictedAgent, Known: k.Tools.Snapshot})
	k.AddStanding(c.shell.Note)
	k.AddStanding(c.helpers.Note)
	c.plugins = newThirdParty(c)
	for _, h := range []tool.Hook{c.files.Hook(), c.shell.Hook(), c.plan.Hook(), c.coder.Hook(), c.commands} {
		k.Dispatch.AddHook(h)
	}
	return c, c.startHooks(ctx)
}

// agents are the plugins that agents are made of, in the order in which they are
// loaded; the first provider is the one that works out of the box.
func (c *core) agents() []plugin.Plugin {
	env := provider.Env{Getenv: os.Getenv, Models: c.models.catalogue}
	c.services = []*provider.Plugin{llm_openai.New(env), llm_anthropic.New(env), llm_ollama.New(env), llm_responses.New(env), llm_gemini.New(env)}
	all := []plugin.Plugin{strategy_react.New(), llm_echo.New()}
	for _, s := range c.services {
		all = append(all, s)
	}
	return append(all, c.memory, c.helpers, c.files, c.shell, c.web, c.plan, c.coder, c.skills, c.skills.Tool())
}

// onStopped has f called once the kernel has stopped: a later phase ends what turns use in f,
// and not when it closes itself.
func (c *core) onStopped(f func(context.Context) error) { c.stopped = append(c.stopped, f) }

// Close stops the kernel, ends what its turns used, and waits for its processes.
func (c *core) Close(ctx context.Context) error {
	ctx, cancel := c.st.at.closing(ctx, writeTime)
	defer cancel()
	if c.hooks != nil {
		c.hooks.Close()
	}
	if c.plugins != nil {
		c.plugins.endWatch()
	}
	err := c.kernel.Stop(ctx, "stopped")
	if c.plugins != nil {
		err = errors.Join(err, c.plugins.Close(ctx))
	}
	for _, f := range c.stopped {
		err = errors.Join(err, f(ctx))
	}
	c.procs.Close(ctx)
	if c.recorded != nil {
		c.recorded.Close()
	}
	c.ends.all()
	return errors.Join(err, c.spare.remove())
}
