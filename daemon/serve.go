package daemon

import (
	"context"
	"errors"
	"os"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/systemd"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Options configures a daemon, and the output of its command.
type Options struct {
	MCPConfig []string // files of servers, instead of yaya's own
	Listen    *Listen
	Upstream  string            // a yaya elsewhere that this one attaches to, or ""
	Settings  map[string]string // that flags have set
	Reload    <-chan struct{}   // has the files read again
	Inherited *Inherited        // what the process was started with; nil for nothing
	// Started is called once, when everything serves. It does not wait for the MCP servers.
	Started func(Started)
	// Settled is called once, when what a start does beside serving is done, and may run until
	// ctx ends: memory that is no longer needed can be given back. It may be nil.
	Settled func(ctx context.Context)
	// Starting, unless it is nil, shows the servers while they start, until ctx ends.
	Starting func(ctx context.Context, now func() Report)
}

// Started holds the addresses and settings of a yaya that has started.
type Started struct {
	Base        string // URL of clients in general
	Local       string // URL of those on this machine
	Remote      bool   // other machines can reach it
	Certificate string // lines about it
	Configured  int    // servers, with those that cannot be used
	Invalid     []servers.Invalid
	Watched     bool // starting shows them
	SetUp       bool // somebody has been through the first steps
	Log         zerolog.Logger
}

// Serve runs a daemon until ctx ends, or something fails that it cannot go on without. It
// is the only daemon of its data directory; when it returns, nothing that it started runs.
//
// The successor is nil unless the caller has to run it in this process: after a restart was
// asked for, or, with an error, when this program could not go on after one.
func Serve(ctx context.Context, g *Flags, o Options) (next *Successor, err error) {
	service, err := newSupervised(g.NewLog(os.Stderr))
	if err != nil {
		return nil, errors.Join(err, o.Inherited.close())
	}
	if o.Inherited.Restarted() {
		service.tell(systemd.Alive) // the start may take as long again
	}
	started := false
	defer func() {
		if err != nil && next == nil && !started {
			next = o.Inherited.before(err)
		}
		err = errors.Join(err, o.Inherited.close())
	}()
	return serve(ctx, g, o, service, func() {
		started = true
		err := o.Inherited.close()
		if err != nil {
			service.log.Warn().Err(err).Msg("what yaya was started with cannot be closed")
		}
	})
}

// serve is Serve; started is called when everything serves.
func serve(ctx context.Context, g *Flags, o Options, service supervised, started func()) (next *Successor, err error) {
	p, err := g.Paths()
	if err != nil {
		return nil, err
	}
	l, err := manage.Load(p.Servers(), o.MCPConfig)
	if err != nil {
		return nil, err
	}
	logs := g.newLogs(os.Stderr)
	at, err := openPlace(g, p, access{lock: true, settings: o.Settings, log: logs.Logger, logs: logs, have: o.Inherited.lockFile(), service: service})
	if err != nil {
		return nil, err
	}
	defer end(ctx, at, &err)
	in, err := openEntrance(ctx, at, o.Listen, o.Inherited)
	if err != nil {
		return nil, err
	}
	defer end(ctx, in, &err)
	controlPlane, err := openControlPlane(ctx, at)
	if err != nil {
		return nil, err
	}
	defer end(ctx, controlPlane, &err)
	st, err := openStores(ctx, at, holdings{controlPlane: controlPlane, listens: in.addrs, outside: g.OwnFiles(p, o.MCPConfig).listening(o.Listen)})
	if err != nil {
		return nil, err
	}
	defer end(ctx, st, &err)
	if err := l.Here(o.MCPConfig, st.workspace, st.folders); err != nil {
		return nil, err
	}
	c, err := openCore(ctx, st)
	if err != nil {
		return nil, err
	}
	defer end(ctx, c, &err)
	b, err := newBridge(ctx, c, l, o.Inherited.clients())
	if err != nil {
		return nil, err
	}
	defer end(ctx, b, &err)
	f, err := openFront(ctx, b, in, o.MCPConfig, o.Inherited)
	if err != nil {
		return nil, err
	}
	defer end(ctx, f, &err)
	r, err := start(ctx, f, o)
	if err != nil {
		return nil, err
	}
	defer end(ctx, r, &err)
	in.listeners.Keep()
	if err := f.restarts.settled(o.Inherited, controlPlane.kernel); err != nil {
		return nil, err
	}
	started()
	o.Started(r.started(o.Starting != nil))
	service.ready(in.bases[0])
	next, err = r.wait(ctx, o.Starting)
	if next == nil || ctx.Err() != nil { // otherwise the service goes on, and its manager must not wait for its end
		service.tell(systemd.Stopping)
	}
	return next, err
}
