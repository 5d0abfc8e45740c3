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
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/internal/secretfile"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Config assembles a provider.
type Config struct {
	// Server is the configuration, expanded.
	Server servers.Server
	// Environ returns the whole environment of a child process. It is asked at each start.
	Environ func() []string
	// Late reads what Environ needs and has to wait for, up to [secretfile.Patience]: at
	// the first start that succeeds in it, and not again. Optional.
	Late func(context.Context) error
	// Procs runs child processes; required for stdio.
	Procs *proc.Manager
	// Sandbox makes the sandbox of one child process, nil for none. What it refuses it
	// tells, in words for people. Optional.
	Sandbox func(tell func(Denial)) (*sandbox.Run, error)
	// Kept returns what a line of the child's standard error says of its sandbox, the
	// zero Denial for most. Optional.
	Kept func(line string) Denial
	// Denied is told, not too often, what the sandbox has refused. Optional.
	Denied func(denial string)
	// HTTP carries requests to remote servers; required for HTTP and SSE.
	HTTP http.RoundTripper
	// Authorize adds to requests what the server wants for authorization.
	// Optional.
	Authorize func(next http.RoundTripper) http.RoundTripper
	// Pin says what of the server's offer is to be used. Without it everything is.
	Pin func(Offer) (Agreed, error)
	// Instructions are those that the server had the last time, as far as they were
	// approved: what is said for it until it is there.
	Instructions string
	// Repinned reports whether Pin would say something else now. Optional.
	Repinned func() bool
	// Cut is told of a result that was too large. Optional.
	Cut func(call tool.Call, t Truncated)
	// Renewed reports whether there is authorization that has not been tried.
	// Optional.
	Renewed func() bool
	// Artifacts keeps images and other binary results for the agent loop.
	// Without it they are described and dropped.
	Artifacts *tool.Store
	// Name and Version introduce yaya to the server.
	Name, Version string
	// Router is told what concerns no request. Optional.
	Router *relay.Router
	// Said is told what the server says for people: a line of standard error, or a log
	// message with its level. It must not block. Optional.
	Said func(stream, level, text string)
	// Mask returns a text without the secrets in it; nil leaves texts as they are.
	Mask func(string) string
	// Secrets are concealed in all that the server says. Optional.
	Secrets *masked.Secrets
	// Standing returns the way to a client that has no request in flight, nil
	// when there is none. Optional.
	Standing func(client string) relay.Peer
	// MayStart is asked before each connection, which may start a process; its error
	// is why there is none. Optional.
	MayStart func() error
	// Limits returns what holds for all servers now. Optional.
	Limits func() Limits
	// Guard runs f when the server is there, waiting for it if need be. Optional.
	Guard func(ctx context.Context, f func() error) error
	// Eras remembers which eras the server speaks. Optional.
	Eras *Eras
}

// Provider is one MCP server.
type Provider struct {
	cfg    Config
	remote http.RoundTripper // carries requests to the server
	stats  stats
	// breaker is about the server, whichever session is used, but for processes that
	// are a principal's own: what one does to its own is no failure of the others'.
	breaker breaker
	list    catalogue
	told    atomic.Uint64 // of changes of its tools
	denials denials
	idle    time.Duration

	mu       sync.Mutex
	signals  feature.Signals
	main     *session
	sessions map[place]*slot
	lists    map[string]*listing
	subs     map[string]struct{} // resources whose updates clients want
	next     int                 // round robin of the pool
	named    map[string]struct{} // all tools that the server lists
	// instructions are those that clients may read.
	instructions string
	closed       bool
	spoken       spoken          // what is known of the server's eras
	silent       time.Time       // when server/discover last brought no answer that says anything
	useSSE       bool            // the fall-back was needed
	life         context.Context // of the current start

	read bool // Late has

	child *proc.Process // the last one

	boxes    sync.RWMutex       // held while a child is started as the settings want it
	children map[*stdio]entered // that have not ended
	entered  *entered           // what the last start of one came to, nil before

	work *group // of the current start
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
	p.sessions, p.work = map[place]*slot{}, new(group)
	if p.subs == nil {
		p.subs = map[string]struct{}{}
	}
	work, ask := p.work, p.mainAsks()
	p.mu.Unlock()
	p.breaker.record(true, 0) // what starts has another chance
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
		p.entered = nil // what ends has worked, and whatever comes is started as is wanted then
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

// readEnviron reads the environment that comes late. The first session does, before
// there are others.
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
		// The call that opens it may wait longer than a server may be silent.
		limit := newLimit(ctx, times{silent: cmp.Or(srv.StartTimeout, startTimeout), silentSetting: "startup_timeout_sec in its configuration"})
		defer limit.stop()
		try = limit
	}
	s, err := p.connect(try, srv.Transport, ask, of, first)
	if err == nil {
		return s, nil
	}
	if pinned := srv.Era == servers.EraLegacy || srv.Era == servers.EraModern; pinned {
		if e, ok := errors.AsType[*eraError](err); ok {
			err = fmt.Errorf("it does not speak the %s era that is configured: %w", e.era, e.err)
		}
		return nil, err
	}
	if why := context.Cause(try); ask.first == servers.EraModern && (errors.Is(why, context.DeadlineExceeded) || errors.Is(why, errCallTimeout)) {
		// The start limit, and nothing else, decides on a server that is silent: it is
		// asked for the other era from now on.
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
		// It may be one that exits on a method that it does not know.
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

// speaksNoStreamable reports whether an answer to POST is one that a pure
// HTTP+SSE server gives.
func speaksNoStreamable(err error) bool {
	se, ok := errors.AsType[*statusError](err)
	return ok && (se.code == http.StatusNotFound || se.code == http.StatusMethodNotAllowed || se.code == http.StatusBadRequest)
}

// errDiedAsked says that a child ended before it had answered which era it speaks.
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
			err = st.said(err)
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

// Stale implements [feature.Stale].
func (p *Provider) Stale() bool { return p.cfg.Repinned != nil && p.cfg.Repinned() }

// Revived implements [feature.Reviver].
func (p *Provider) Revived() bool { return p.cfg.Renewed != nil && p.cfg.Renewed() }

// authorized is the transport to a server that wants authorization. A server has
// a limited time to answer; the requests to authorization servers in between have
// limits of their own and do not count.
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

// answering lets the clock run that [authorized] has stopped, while the server
// itself is asked.
type answering struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (a answering) RoundTrip(req *http.Request) (*http.Response, error) {
	limits(req.Context(), (*limit).resume)
	defer limits(req.Context(), (*limit).pause)
	return a.RoundTripper.RoundTrip(req)
}

const (
	stopGrace = 3 * time.Second
	// installTimeout is how long a command that downloads its program may take for its
	// first answer.
	installTimeout = 10 * time.Minute
)

// Detail is what `yaya mcp list` shows of a server beyond its state.
type Detail struct {
	Transport servers.Transport `json:"transport"`
	Endpoint  string            `json:"endpoint"`
	PID       int               `json:"pid,omitempty"`
	Sandbox   *sandbox.Enforced `json:"sandbox,omitempty"` // of the process that runs
	Denied    []Denial          `json:"denied,omitempty"`  // what its sandbox kept it from last, the newest first
	Peer      *peer             `json:"peer,omitempty"`
	Sessions  int               `json:"sessions"`
	Calls     uint64            `json:"calls"`
	Errors    uint64            `json:"errors"`
	Dropped   uint64            `json:"dropped"` // messages that answered nothing
	Cut       uint64            `json:"cut"`     // results that were too large
	MedianMS  float64           `json:"median_ms"`
	Stderr    string            `json:"stderr,omitempty"` // last lines, made safe to show
}

// Detail implements [feature.Detailer].
func (p *Provider) Detail() any {
	p.mu.Lock()
	defer p.mu.Unlock()
	endpoint := p.cfg.Server.Endpoint()
	if p.cfg.Mask != nil { // its secrets stand wherever the configuration has put them
		endpoint = p.cfg.Mask(endpoint)
	}
	d := Detail{
		Transport: p.cfg.Server.Transport, Endpoint: feature.Clean(endpoint, 500),
		Denied: p.denials.recent(),
		Calls:  p.stats.calls.Load(), Errors: p.stats.errors.Load(), Dropped: p.stats.dropped.Load(), Cut: p.stats.cut.Load(),
		MedianMS: float64(p.stats.median().Microseconds()) / 1000,
	}
	if p.useSSE {
		d.Transport = servers.SSE
	}
	for _, sl := range p.sessions {
		if sl.open() {
			d.Sessions++
		}
	}
	if p.main != nil {
		d.Sessions++
		d.Peer = &p.main.peer
		if st, ok := p.main.t.(*stdio); ok {
			d.PID = st.pid()
			if st.run != nil {
				d.Sandbox = &st.run.Enforced
			}
		}
	}
	if p.child != nil {
		said := p.child.Stderr()
		if p.cfg.Mask != nil {
			said = p.cfg.Mask(said)
		}
		d.Stderr = lastLines(said, 4096)
	}
	return d
}
