package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/callctx"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/internal/secretfile"
	"github.com/yaya-ai/yaya/internal/telemetry"
	"github.com/yaya-ai/yaya/internal/workgroup"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Config assembles a provider.
type Config struct {
	// Server is the configuration, expanded.
	Server servers.Server
	// Environ returns the whole environment of a child process. It is called at each start.
	Environ func() []string
	// Late reads inputs of Environ that may have to be waited for, up to [secretfile.Patience].
	// It is called at each start until it succeeds once. Optional.
	Late func(context.Context) error
	// Procs runs child processes; required for stdio.
	Procs *proc.Manager
	// Sandbox creates the sandbox of one child process, nil for none, and reports its refusals
	// in words for people. Optional.
	Sandbox func(tell func(Denial)) (*sandbox.Run, error)
	// Kept returns the denial that a line of the child's standard error points to; for most
	// lines, the zero Denial. Optional.
	Kept func(line string) Denial
	// Denied is called, at a limited rate, with refusals of the sandbox. Optional.
	Denied func(denial string)
	// HTTP carries requests to remote servers; required for HTTP and SSE.
	HTTP http.RoundTripper
	// Authorize adds the server's authorization to requests. Optional.
	Authorize func(next http.RoundTripper) http.RoundTripper
	// Pin returns the approved part of the server's offer. Without Pin, all of it is used.
	Pin func(Offer) (Agreed, error)
	// Instructions are the approved instructions of the server's last run, used until the
	// server is ready.
	Instructions string
	// Repinned reports whether Pin's result has changed. Optional.
	Repinned func() bool
	// Cut is called with a result that was too large. Optional.
	Cut func(call tool.Call, t Truncated)
	// Renewed reports whether there is authorization that has not been tried yet. Optional.
	Renewed func() bool
	// Artifacts keeps images and other binary results for the agent loop.
	// Without it they are described and dropped.
	Artifacts *tool.Store
	// Name and Version introduce yaya to the server.
	Name, Version string
	// Router receives notifications that concern no request. Optional.
	Router *relay.Router
	// Log receives the server's output for people: a line of standard error, or a log message
	// // with its level. It must not block. Optional.
	Log func(stream, level, text string)
	// Mask returns a text without the secrets in it; nil leaves texts as they are.
	Mask func(string) string
	// Secrets are concealed in everything that the server sends. Optional.
	Secrets *masked.Secrets
	// Standing returns the peer of a client that has no request in flight, nil if it cannot be
	// // reached. Optional.
	Standing func(client string) relay.Peer
	// MayStart is called before each connection, which may start a process; an error prevents
	// it. Optional.
	MayStart func() error
	// Telemetry sends traces and metrics; nil for none.
	Telemetry *telemetry.Telemetry
	// Limits returns the current limits for all servers. Optional.
	Limits func() Limits
	// Vouch returns headers that say who a request is from, for a server on another node of the
	// cluster; nil for a server that does not learn it.
	Vouch func(who tool.Caller, origin tool.Origin) http.Header
	// Guard calls f once the server is ready, and waits for it if necessary. Optional.
	Guard func(ctx context.Context, f func() error) error
	// Eras remembers which eras the server speaks. Optional.
	Eras *Eras
}

// Provider is one MCP server.
type Provider struct {
	cfg    Config
	remote http.RoundTripper // carries requests to the server
	stats  stats
	// breaker covers all sessions of the server, except a principal's own processes: their
	// failures must not affect the others.
	breaker breaker
	list    catalogue
	alarms  callctx.Alarms // of the limits of calls
	told    atomic.Uint64  // of changes of its tools
	denials denials
	began   atomic.Uint64 // number of denials at the last start
	before  atomic.Uint64 // and at the one before it
	idle    time.Duration

	mu       sync.Mutex
	signals  feature.Signals
	main     *session
	sessions map[place]*slot
	lists    map[string]*listing
	subs     map[string]struct{} // resources that clients have subscribed to
	next     int                 // round robin of the pool
	named    map[string]struct{} // all tools that the server lists
	// instructions are those that clients may read.
	instructions string
	closed       bool
	spoken       spoken          // knowledge about the server's eras
	silent       time.Time       // when server/discover last brought no usable answer
	useSSE       bool            // the fallback was needed
	life         context.Context // a base context: of the current start

	read bool // Late has succeeded

	child *proc.Process // the last one

	boxes    sync.RWMutex       // held while a child is started under the current settings
	children map[*stdio]entered // that have not ended
	entered  *entered           // the outcome of the last start, nil before

	work *workgroup.Group // of the current start
	stop context.CancelFunc
}

// New returns the provider of a server, which is not started.
func New(cfg Config) *Provider {
	p := &Provider{cfg: cfg, remote: cfg.HTTP, instructions: cfg.Instructions, idle: cmp.Or(cfg.Server.IdleTimeout, 5*time.Minute)}
	if cfg.Eras != nil {
		p.spoken = cfg.Eras.load(eraKey(cfg.Server))
	}
	if cfg.Authorize != nil {
		p.remote = &authorized{cfg.Authorize(answering{cfg.HTTP}), cfg.HTTP}
	}
	return p
}

// Info implements [feature.Provider].
func (p *Provider) Info() feature.Info {
	srv := p.cfg.Server
	info := feature.Info{ID: srv.Name, StartTimeout: srv.StartTimeout}
	if srv.StartTimeout == 0 && srv.Fetches() {
		info.InstallTimeout = installTimeout
	}
	if p.cfg.Late != nil {
		info.InstallTimeout = cmp.Or(info.InstallTimeout, srv.StartTimeout, startTimeout) + secretfile.Patience
	}
	if srv.Prefix != nil {
		info.Prefix, info.Bare = *srv.Prefix, *srv.Prefix == ""
	}
	return info
}

// Worked implements [feature.Worker].
func (p *Provider) Worked() time.Duration {
	p.mu.Lock()
	child := p.child
	p.mu.Unlock()
	if child == nil {
		return 0
	}
	return child.Worked()
}

// Start implements [feature.Provider]: it opens the main session.
func (p *Provider) Start(ctx context.Context, sig feature.Signals) error {
	life, stop := context.WithCancel(context.Background())
	p.mu.Lock()
	p.signals, p.life, p.stop, p.closed, p.entered = sig, life, stop, false, nil
	p.sessions, p.work = map[place]*slot{}, new(workgroup.Group)
	if p.subs == nil {
		p.subs = map[string]struct{}{}
	}
	work, ask := p.work, p.mainAsks()
	p.mu.Unlock()
	p.before.Store(p.began.Swap(p.denials.count.Load()))
	p.breaker.record(true, 0) // a new start gets another chance
	policy, _ := p.cfg.Server.SessionPolicy()
	of := tenant{}
	if policy == servers.PerPrincipal {
		of.principal = tool.Owner
	}
	main, err := p.open(ctx, ask, of, nil)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.main = main
	p.mu.Unlock()
	main.subscribe()
	work.Go(func() {
		select {
		case <-main.t.done():
			sig.Failed(main.t.failed())
		case <-life.Done():
		}
	})
	if policy != servers.PerCall {
		work.Go(func() { p.recycle(life) })
	}
	return nil
}

// Stop implements [feature.Provider]: it closes every session.
func (p *Provider) Stop(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	if p.stop != nil {
		p.stop()
	}
	all := make([]*session, 0, len(p.sessions)+1)
	if p.main != nil {
		all = append(all, p.main)
		p.entered = nil // the child that ends has worked, and the next one starts under the settings of that time
	}
	slots, work := p.sessions, p.work
	p.main, p.sessions = nil, nil
	p.mu.Unlock()
	for _, sl := range slots {
		if s := sl.take(); s != nil {
			all = append(all, s)
		}
	}
	var wg sync.WaitGroup
	for _, s := range all {
		wg.Go(func() { s.close(ctx) })
	}
	wg.Wait()
	work.Close()
	return nil
}

// readEnviron calls Late. The first session does so, before there are others.
func (p *Provider) readEnviron(ctx context.Context) error {
	p.mu.Lock()
	need := p.cfg.Late != nil && !p.read
	p.mu.Unlock()
	if !need {
		return nil
	}
	if err := p.cfg.Late(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read = true
	return nil
}

// open connects and initialises a session for a tenant.
func (p *Provider) open(ctx context.Context, ask asking, of tenant, first relay.Peer) (*session, error) {
	if p.cfg.MayStart != nil {
		if err := p.cfg.MayStart(); err != nil {
			return nil, err
		}
	}
	if err := p.readEnviron(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	useSSE, calling := p.useSSE, p.main != nil
	legacy := p.spoken.Legacy
	p.mu.Unlock()
	srv := p.cfg.Server
	if srv.Transport == servers.SSE || useSSE {
		return p.connect(ctx, servers.SSE, asking{servers.EraLegacy, true}, of, first)
	}
	try := ctx
	if calling && ask.first == servers.EraModern {
		// The call that opens the session may wait longer than a server may be silent.
		limit := newLimit(ctx, times{silent: cmp.Or(srv.StartTimeout, startTimeout), silentSetting: "startup_timeout_sec in its configuration"})
		defer limit.stop()
		try = limit
	}
	s, err := p.connect(try, srv.Transport, ask, of, first)
	if err == nil {
		return s, nil
	}
	if pinned := srv.Era == servers.EraLegacy || srv.Era == servers.EraModern; pinned {
		e, ok := errors.AsType[*eraError](err)
		switch {
		case ok && p.Elsewhere(): // every node speaks it
			err = e.err
		case ok:
			err = fmt.Errorf("the server does not support the configured %s era: %w", e.era, e.err)
		}
		return nil, err
	}
	if why := context.Cause(try); ask.first == servers.EraModern && (errors.Is(why, context.DeadlineExceeded) || errors.Is(why, errCallTimeout)) {
		// Only the start limit decides about a silent server: from now on, yaya requests the
		// other era.
		p.mu.Lock()
		p.silent = time.Now()
		p.mu.Unlock()
		if ctx.Err() == nil && ask.only {
			return nil, &eraError{ask.first, err}
		}
		if ctx.Err() == nil {
			return p.connect(ctx, srv.Transport, asking{first: servers.EraLegacy}, of, first)
		}
	}
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, errDiedAsked) && !ask.only && (ask.first == servers.EraModern || legacy != spoke):
		// The server may be one that exits on an unknown method.
		other, otherErr := p.connect(ctx, srv.Transport, asking{otherEra(ask.first), true}, of, first)
		if otherErr != nil {
			return nil, err
		}
		p.learn(other.peer, true)
		return other, nil
	case srv.FallBackToSSE && !ask.only && speaksNoStreamable(err):
		sse, sseErr := p.connect(ctx, servers.SSE, asking{servers.EraLegacy, true}, of, first)
		if sseErr != nil {
			return nil, fmt.Errorf("%w (and it does not speak HTTP+SSE either: %w)", err, sseErr)
		}
		p.mu.Lock()
		p.useSSE = true
		p.mu.Unlock()
		return sse, nil
	}
	return nil, err
}

// speaksNoStreamable reports whether a response to POST is typical of a pure HTTP+SSE server.
func speaksNoStreamable(err error) bool {
	se, ok := errors.AsType[*statusError](err)
	return ok && (se.code == http.StatusNotFound || se.code == http.StatusMethodNotAllowed || se.code == http.StatusBadRequest)
}

// errDiedAsked says that a child ended before it answered which era it speaks.
var errDiedAsked = errors.New("the server ended when it was asked for its protocol version")

func (p *Provider) connect(ctx context.Context, kind servers.Transport, ask asking, of tenant, first relay.Peer) (*session, error) {
	srv := p.cfg.Server
	s := newSession(p, of, first)
	var t transport
	var err error
	switch kind {
	case servers.Stdio:
		var st *stdio
		if st, err = p.startChild(s); err == nil {
			p.mu.Lock()
			p.child = st.p
			tell := p.signals.Installing
			p.mu.Unlock()
			if tell != nil && srv.Fetches() {
				defer st.installing(srv.Command, tell)()
			}
			t = st
		}
	case servers.SSE:
		t, err = dialSSE(ctx, p.remote, srv.URL, srv.Headers, &p.stats.dropped, s, s.room())
	case servers.HTTP:
		t, err = newHTTP(p.remote, srv.URL, srv.Headers, &p.stats.dropped, s, s.room())
	default:
		err = fmt.Errorf("transport %q is not supported", kind)
	}
	if err != nil {
		s.cancel()
		return nil, err
	}
	s.t = t
	refusal, err := s.handshake(ctx, identity{p.cfg.Name, p.cfg.Version}, ask)
	if err != nil {
		if st, ok := t.(*stdio); ok && ctx.Err() != nil && t.failed() == nil {
			err = st.explained(err)
		}
		err = s.wroteOddly(err)
		died := kind == servers.Stdio && t.failed() != nil
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
		s.close(closing)
		cancel()
		if died {
			err = fmt.Errorf("%w: %w", errDiedAsked, err)
		}
		if refusal && cmp.Or(srv.Era, servers.EraAuto) == servers.EraAuto {
			p.note(func(k spoken) spoken { return k.without(ask.first) })
		}
		return nil, err
	}
	if st, ok := t.(*stdio); ok {
		st.ready.Store(true)
	}
	p.learn(s.peer, refusal)
	return s, nil
}

// Elsewhere reports whether the server runs on another node of the cluster.
func (p *Provider) Elsewhere() bool { return p.cfg.Vouch != nil }

// Stale implements [feature.Stale].
func (p *Provider) Stale() bool { return p.cfg.Repinned != nil && p.cfg.Repinned() }

// Revived implements [feature.Reviver].
func (p *Provider) Revived() bool { return p.cfg.Renewed != nil && p.cfg.Renewed() }

// authorized is the transport to a server that requires authorization. The time limit of the
// server's answer excludes the requests to authorization servers in between, which have their
// own limits.
type authorized struct {
	next http.RoundTripper // adds the authorization; over answering
	base http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (a *authorized) RoundTrip(req *http.Request) (*http.Response, error) {
	limits(req.Context(), (*limit).pause)
	defer limits(req.Context(), (*limit).resume)
	return a.next.RoundTrip(req)
}

// answering restarts the clock that [authorized] stopped, during the request to the server
// itself.
type answering struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (a answering) RoundTrip(req *http.Request) (*http.Response, error) {
	limits(req.Context(), (*limit).resume)
	defer limits(req.Context(), (*limit).pause)
	return a.RoundTripper.RoundTrip(req)
}

const (
	stopGrace = 3 * time.Second
	// installTimeout bounds the time until the first answer of a command that downloads its
	// program.
	installTimeout = 10 * time.Minute
)
