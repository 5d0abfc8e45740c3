package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	stdlog "log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/internal/fastpath"
	"github.com/yaya-ai/yaya/internal/openfiles"
	"github.com/yaya-ai/yaya/internal/systemd"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// DefaultListen is the default address that yaya listens on.
const DefaultListen = "127.0.0.1:8787"

// Limits of the listener.
const (
	readHeaderTimeout = 5 * time.Second
	idleTimeout       = 120 * time.Second
	maxHeader         = 32 << 10
)

// Config assembles a server. MCP is required.
type Config struct {
	Listen string // host:port, on the loopback interface without TLS; default DefaultListen
	Socket string // path of the Unix socket; "" for none
	// Adopt are connections that the program before this one has accepted; they stay the
	// caller's, too.
	Adopt []*os.File
	// Passed are sockets that this process was started with, which are taken instead of
	// binding others; nil for none.
	Passed *systemd.Passed
	MCP    http.Handler
	// TLS serves TLS with that certificate; nil for none.
	TLS func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// ALPN are protocols that a handshake may agree on besides HTTP: it is all there is
	// of them.
	ALPN []string
	// Local is an address on the loopback interface where this machine is served without
	// TLS, beside a listener with it; "" for none.
	Local string
	// Proxies are the networks of the proxies that serve TLS instead; nil for none.
	// Then nobody is the local owner but over the socket.
	Proxies []netip.Prefix
	// Hosts are names by which clients may address the listener, besides those of
	// this machine.
	Hosts []string
	// Tokens verifies the tokens of an external issuer, for MCP clients that are
	// not the local owner; nil for none.
	Tokens *auth.Verifier
	// Attempts is the one budget for guessing. Default: one of its own.
	Attempts *auth.Attempts
	// Authority knows the devices; nil for none.
	Authority *auth.Authority
	Joins     Joins // who joins the cluster; nil for none
	Metrics   http.Handler
	Profiles  http.Handler // below /debug/pprof/; see [Profiles]
	Live      http.Handler // WebSockets of the local owner
	Page      http.Handler // the dashboard
	Wire      http.Handler // WebSockets of devices
	CLI       http.Handler // below /cli/: what yaya's own commands ask for
	Routes    []api.Route  // of the APIs
	// Sessions can be followed by clients; nil for none.
	Sessions *session.Manager
	// Status is shown to the local owner on GET /status, as JSON.
	Status func() any
	// Age returns for how long other nodes of a cluster may have made changes that this one does not know
	// of; nil if it is alone.
	Age func() time.Duration
	// Ready tries what yaya needs. It is ready unless a check failed.
	Ready        func(context.Context) []Check
	DrainTimeout time.Duration // default 5 s
	// BeforeDrain ends what would otherwise be waited for.
	BeforeDrain func()
	// Tool reports whether a process is one that a tool or a server has started: it is
	// not its user, but for MCP. nil: there are none.
	Tool func(pid int) bool
	// Sandboxed reports whether a process is in a sandbox: it is nobody's user, nor is this
	// process itself then, which passes on what sandboxes send. nil: none is.
	Sandboxed func(pid int) bool
	// SlowPath has net/http serve everything, also what the fast path would (see internal/fastpath).
	SlowPath bool
	// Shed ends one in so many of the WebSockets, for want of memory; nil for none.
	Shed func(part int)
	// OnFailure is called when serving ends by itself.
	OnFailure func(error)
	Log       zerolog.Logger

	limits limits // for tests; zero is the default
}

// limits are limits that tests make smaller.
type limits struct {
	body  time.Duration
	rest  time.Duration
	conns int
}

// Server is the HTTP surface, and the plugin that it is loaded as.
type Server struct {
	cfg       Config
	http      *http.Server
	tls       *tls.Config             // nil for none
	fast      []*fastpath.Listener    // while it runs
	checked   http.Handler            // of all requests, with the checks
	admitted  http.Handler            // of requests of the local owner for MCP that have passed the checks
	cut       context.CancelCauseFunc // cancels every request
	listeners *Listeners
	started   time.Time
	opened    opened
	load      *overload
	routed    *api.Table
	conns     *conns
	serving   sync.WaitGroup                  // accept connections
	live      sync.WaitGroup                  // handlers of connections that net/http does not wait for
	closing   chan struct{}                   // closed when those have to end
	endLive   func()                          // closes closing, once
	leaving   atomic.Bool                     // another process goes on with the listeners
	goes      func()                          // ends the streams
	whenGone  func(func()) (stop func() bool) // calls a function then
	holders   holders
	strangers strangers

	stop context.CancelFunc // while loaded
	done chan error
}

// New returns a server for those who come through l. It closes l's listeners when it has
// been run; until then they are the caller's.
func New(l *Listeners, cfg Config) *Server {
	cfg.DrainTimeout = cmp.Or(cfg.DrainTimeout, 5*time.Second)
	cfg.limits.body = cmp.Or(cfg.limits.body, bodyTimeout)
	cfg.limits.rest = cmp.Or(cfg.limits.rest, restTimeout)
	cfg.limits.conns = cmp.Or(cfg.limits.conns, openfiles.Of(openfiles.Limit()).Connections)
	if cfg.Attempts == nil {
		cfg.Attempts = auth.NewAttempts(time.Now)
	}
	s := &Server{
		cfg: cfg, listeners: l, started: time.Now(), closing: make(chan struct{}),
		conns: newConns(cfg.limits.conns, cfg.Proxies != nil, cfg.Log),
	}
	s.endLive = sync.OnceFunc(func() { close(s.closing) })
	gone, goes := context.WithCancel(context.Background())
	s.goes, s.whenGone = goes, func(f func()) func() bool { return context.AfterFunc(gone, f) }
	s.load = newOverload(s.refuse)
	s.admitted = s.always(s.load.guard(cfg.MCP))
	base, cut := context.WithCancelCause(context.Background())
	s.cut = cut
	s.http = &http.Server{
		BaseContext: func(net.Listener) context.Context { return base },
		Handler:     s.routes(),
		// net/http would answer OPTIONS * by itself, whatever the Host.
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            readHeaderTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeader,
		ConnContext:                  s.withPeer,
		// Strangers decide how many handshakes fail.
		ErrorLog:  stdlog.New(cfg.Log.Sample(&zerolog.BurstSampler{Burst: 10, Period: fullLogged}), "", 0),
		ConnState: s.opened.track,
	}
	if cfg.TLS != nil {
		// HTTP/2 is named here, and not left to ServeTLS: net/http decides once for all
		// listeners whether there is HTTP/2, and whichever listener is first, the Unix
		// socket too, decides by this list. Without it h2 would be offered and not served.
		s.tls = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: cfg.TLS, NextProtos: append([]string{"h2", "http/1.1"}, cfg.ALPN...)}
		s.http.TLSConfig = s.tls.Clone() // net/http adds to its own
	}
	return s
}

// Addr returns the address of the listener.
func (s *Server) Addr() string { return s.listeners.Addr() }

// LocalAddr returns the address of the listener for this machine alone, "" without one.
func (s *Server) LocalAddr() string { return s.listeners.LocalAddr() }

// Run serves until ctx ends and drains then.
func (s *Server) Run(ctx context.Context) error {
	listeners := s.listeners.all()
	watched := make(chan struct{})
	wctx, unwatch := context.WithCancel(ctx)
	go func() {
		defer close(watched)
		s.load.watch(wctx, s.cfg.Shed)
	}()
	defer func() {
		unwatch()
		<-watched
	}()
	errs := make(chan error, len(listeners))
	for _, l := range listeners {
		s.start(l, errs)
	}
	var first error
	running := len(listeners)
	for first == nil && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case first = <-errs:
			running--
			if s.leaving.Load() {
				first = nil // they are handed over; what was accepted is served until ctx ends
			}
		}
	}
	// ctx may have ended, so the drain needs a deadline of its own.
	dctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.DrainTimeout)
	defer cancel()
	for _, l := range listeners {
		_ = l.Close() // nobody new comes while the new ones are sent away
	}
	s.opened.closeNew()
	s.endLive()
	defer s.live.Wait()
	early, soon := context.WithTimeout(dctx, s.cfg.DrainTimeout*4/5)
	defer soon()
	err := s.shutdown(early)
	s.cut(tool.ErrStopping) // what still runs has the rest of the time to say so
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.shutdown(dctx)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close() // streams end here; they are resumed elsewhere
		for _, l := range s.fast {
			l.Abort()
		}
	}
	for ; running > 0; running-- {
		if e := <-errs; first == nil {
			first = e
		}
	}
	if errors.Is(first, http.ErrServerClosed) || (ctx.Err() != nil && errors.Is(first, net.ErrClosed)) {
		first = nil
	}
	if errors.Is(err, net.ErrClosed) { // closed above
		err = nil
	}
	return errors.Join(first, err)
}

// shutdown ends the connections, each when it has answered what it was asked.
func (s *Server) shutdown(ctx context.Context) error {
	errs := make([]error, len(s.fast)+1)
	var all sync.WaitGroup
	for i, l := range s.fast {
		all.Go(func() { errs[i] = l.Shutdown(ctx) })
	}
	errs[len(s.fast)] = s.http.Shutdown(ctx)
	all.Wait()
	return cmp.Or(errs...)
}

// start serves the connections of a listener; errs gets the error with which that ends.
func (s *Server) start(l net.Listener, errs chan<- error) {
	if l != s.listeners.unix {
		secure, adopted := s.secure(l), l == s.listeners.adopted
		l = &places{l, s, secure}
		if !s.cfg.SlowPath && s.cfg.Proxies == nil {
			s.serving.Add(1) // before a connection comes: Leave may be called on it
			fast := s.fastPath(l, secure, adopted)
			s.fast = append(s.fast, fast)
			go func() {
				defer s.serving.Done()
				fast.WaitAccepted()
			}()
			go func() { errs <- s.http.Serve(fast) }() // Run waits for the error
			return
		}
		if secure {
			s.serving.Go(func() { errs <- s.http.ServeTLS(l, "", "") })
			return
		}
	}
	s.serving.Go(func() { errs <- s.http.Serve(l) })
}

// secure reports whether a listener's connections have TLS.
func (s *Server) secure(l net.Listener) bool { return l == s.listeners.tcp && s.cfg.TLS != nil }

// Check is one thing that readiness tries. Everybody may read it: it names nothing that is private.
type Check struct {
	Name   string `json:"name"`
	Status string `json:"status"` // ok, degraded or failed
	Reason string `json:"reason,omitempty"`
}

func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	body := struct {
		Status   string  `json:"status"`
		UptimeMS int64   `json:"uptime_ms"`
		Reason   string  `json:"reason,omitempty"`
		Checks   []Check `json:"checks,omitempty"`
	}{Status: "ok", UptimeMS: time.Since(s.started).Milliseconds()}
	status := http.StatusOK
	if r.URL.Query().Get("ready") == "1" && s.cfg.Ready != nil {
		body.Checks = s.cfg.Ready(r.Context())
		for _, c := range body.Checks {
			if c.Status == string(plugin.Failing) {
				status, body.Status, body.Reason = http.StatusServiceUnavailable, "not ready", cmp.Or(body.Reason, c.Reason)
			}
		}
	}
	api.Write(w, status, body)
}

func (s *Server) status(w http.ResponseWriter, _ *http.Request) {
	api.Write(w, http.StatusOK, s.cfg.Status())
}
