package daemon

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/gateway/plane"
	"github.com/yaya-ai/yaya/internal/openfiles"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// running is the last phase: the kernel with all plugins started, the gateway last among
// them, and whatever works beside it until the end.
type running struct {
	front *front
	ends  undo
}

// start starts everything.
func start(ctx context.Context, f *front, o Options) (_ *running, err error) {
	b, c, st := f.bridge, f.bridge.core, f.bridge.core.st
	r := &running{front: f}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close(ctx))
		}
	}()
	if os.Geteuid() == 0 {
		st.at.log.Warn().Msg(asRoot)
	}
	if linked, is := st.linkedDiagnosis(); is {
		st.at.log.Warn().Msg(linked.Summary)
	}
	if low := openfiles.Warning(openfiles.Limit()); low != "" {
		st.at.log.Warn().Msg(low)
	}
	if err := st.controlPlane.watch(c.kernel.Bus); err != nil {
		return nil, err
	}
	logging, err := st.at.logs.follow(c.kernel.Bus, st.at.settings)
	if err != nil {
		return nil, err
	}
	r.ends.add(logging.Close)
	if err := join(ctx, f); err != nil {
		return nil, err
	}
	r.ends.add(st.controlPlane.plane.Close)
	detach, err := attach(o.Upstream, c, f.doctor)
	if err != nil {
		return nil, err
	}
	r.ends.add(detach)
	st.awaitSecrets()
	c.kernel.OnBundled(c.plugins.load)
	if err := c.kernel.Start(ctx, append(c.agents(), b.mcp, f.web)...); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(c.kernel.Plugins.Snapshot(), func(s plugin.Status) bool { return s.Name == "web" && s.Status != plugin.Loaded }) {
		return nil, errWebOff
	}
	r.ends.add(f.in.source.run(ctx))
	r.ends.add(f.files.watch(ctx, o.Reload))
	r.ends.add(f.watchdog(ctx))
	// yaya may end without the end of ctx: a server that is required may have failed.
	beside, cancel := context.WithCancel(ctx)
	var aside sync.WaitGroup
	r.ends.add(func() { cancel(); aside.Wait() })
	aside.Go(func() {
		c.resume(beside)
		c.repair(beside)
		st.at.tidy(beside) // last: it reads every folder, and nobody waits for it
		if o.Settled != nil {
			o.Settled(beside)
		}
	})
	st.at.log.Info().Str("version", Version()).Str("address", f.in.bases[0]).Str("data", st.at.Data).Msg("yaya serves")
	aside.Go(func() { newJanitor(c, f.chats.Service).run(beside) })
	aside.Go(st.tellSandbox)
	aside.Go(func() {
		if err := st.trust.Tidy(); err != nil {
			st.at.log.Warn().Err(err).Msg("what is known of servers cannot be read as a whole")
		}
	})
	return r, nil
}

var errWebOff = errors.New("the plugin web is switched off, and without it there is nothing to serve: yaya config unset plugin.web.enabled")

// asRoot says what is wrong with running as root.
const asRoot = "yaya runs as root: so do its servers and the commands of its agents; give it a user of its own"

// join makes this kernel and its agents part of the control plane.
func join(ctx context.Context, f *front) error {
	c := f.bridge.core
	k, controlPlane := c.kernel, c.st.controlPlane
	if controlPlane.cluster != nil {
		if err := controlPlane.cluster.start(ctx, controlPlane.devices, c.st.at.log); err != nil {
			return err
		}
	}
	return controlPlane.plane.Start(ctx, plane.Running{
		Log: controlPlane.log.Log, Server: f.sockets, Bus: k.Bus, Sessions: k.Sessions, Loop: k.Loop, Mix: c.mix, Memories: c.memory.Count,
		Nodes: controlPlane.between(), Changed: func() { f.bridge.changes.tell(admin.PartAgents) }, Exports: c.exports, Invoke: c.invoke, Begin: c.begin,
	})
}

// resume goes on with the sessions that have a queue.
func (c *core) resume(ctx context.Context) {
	if err := c.kernel.Loop.Resume(ctx); err != nil && ctx.Err() == nil {
		c.st.at.log.Error().Err(err).Msg("not every queue goes on: yaya verify tells which sessions are damaged")
	}
}

// repair brings the list of sessions up to date, which pages shown before need not wait for,
// ends the turns that a crash has left open, and starts those that it kept from starting,
// session by session. It says what it cannot read.
func (c *core) repair(ctx context.Context) {
	if err := c.kernel.Loop.Repair(ctx); err != nil && ctx.Err() == nil {
		c.st.at.log.Error().Err(err).Msg("not every session is whole: yaya verify tells which")
	}
}

// started says where this yaya is, and what it has; watched is that its start is shown.
func (r *running) started(watched bool) Started {
	b, in := r.front.bridge, r.front.in
	return Started{
		Base: in.bases[0], Local: in.local, Remote: in.flags.remote(), Certificate: in.source.welcome(),
		Configured: len(b.loaded.Servers) + len(b.loaded.Invalid), Invalid: b.mcp.InvalidServers(), Watched: watched && len(b.loaded.Servers) > 0,
		SetUp: b.core.setup(in.bases, false).Done, Log: b.core.st.at.log,
	}
}

// wait shows the servers while they start, and waits until yaya has to end: because of
// ctx, because something failed that it cannot go on without, or for a successor.
func (r *running) wait(ctx context.Context, starting func(context.Context, func() Report)) (*Successor, error) {
	b := r.front.bridge
	starts, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	if starting != nil && len(b.loaded.Servers) > 0 {
		work.Go(func() { starting(starts, func() Report { return b.report("", b.loaded.Servers) }) })
	}
	required := make(chan error, 1)
	work.Go(func() {
		if err := b.required(starts); err != nil && starts.Err() == nil {
			required <- err
		}
	})
	for {
		select {
		case err := <-b.core.kernel.Failed():
			return nil, err
		case err := <-b.core.st.controlPlane.lost:
			return nil, err
		case err := <-required:
			return nil, err
		case <-ctx.Done():
			return nil, nil //nolint:nilnil // nothing comes after it
		case asked := <-r.front.restarts.asked:
			next, err := r.handOver(ctx, asked)
			if err == nil {
				return next, nil
			}
			b.core.st.at.log.Error().Err(err).Msg("yaya was not restarted, and goes on as before")
			r.front.restarts.failed(err)
			b.core.st.at.service.ready(r.front.in.bases[0])
		}
	}
}

// Close ends what works beside the kernel; the phases that have made the kernel and its
// plugins end them.
func (r *running) Close(context.Context) error {
	r.ends.all()
	return nil
}
