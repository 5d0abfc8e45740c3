package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	stdlog "log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/kernel/session"
)

// DefaultListen is where yaya listens unless told otherwise.
const DefaultListen = "127.0.0.1:8787"

// Limits of the listener (C.2).
const (
	readHeaderTimeout = 5 * time.Second
	idleTimeout       = 120 * time.Second
	maxHeader         = 32 << 10
)

// Config assembles a server. MCP is required.
type Config struct {
	Listen string // host:port on the loopback interface; default DefaultListen
	Socket string // path of the Unix socket; "" for none
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
	Metrics   http.Handler
	API       http.Handler // below /api/
	Live      http.Handler // WebSockets of the local owner
	Page      http.Handler // the dashboard
	Wire      http.Handler // WebSockets of devices
	RPC       http.Handler // POST /rpc
	Agents    http.Handler // GET /agents and /agents/{id}
	V1        http.Handler // below /v1/: chat sessions
	CLI       http.Handler // below /cli/: what yaya's own commands ask for
	// Sessions can be followed by clients; nil for none.
	Sessions *session.Manager
	// Status is shown to the local owner on GET /status, as JSON.
	Status func() any
	// Ready says why yaya is not ready, nil when it is.
	Ready        func() error
	DrainTimeout time.Duration // default 5 s
	// BeforeDrain ends what would otherwise be waited for.
	BeforeDrain func()
	// Tool reports whether a process is one that a tool or a server has started: it is
	// not its user, but for MCP. nil: there are none.
	Tool func(pid int) bool
	// Sandboxed reports whether a process is in a sandbox: it is nobody's user, nor is this
	// process itself then, which passes on what sandboxes send. nil: none is.
	Sandboxed func(pid int) bool
	// Shed ends one in so many of the WebSockets, for want of memory; nil for none.
	Shed func(part int)
	// OnFailure is told when serving ends by itself.
	OnFailure func(error)
	Log       zerolog.Logger

	limits limits // for tests; zero is the default
}

// limits are what tests make smaller.
type limits struct {
	body  time.Duration
	conns int
}

// Server is the HTTP surface, and the plugin that it is loaded as.
type Server struct {
	cfg       Config
	http      *http.Server
	tcp       net.Listener
	local     net.Listener // nil for none
	unix      net.Listener
	started   time.Time
	fresh     freshConns
	load      *overload
	conns     *conns
	live      sync.WaitGroup // handlers of connections that net/http does not wait for
	closing   chan struct{}  // closed when those have to end
	holders   holders
	strangers strangers

	stop context.CancelFunc // while loaded
	done chan error
}

// freshConns are connections on which nothing has been asked yet. A drain would
// wait seconds for each of them.
type freshConns struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func (f *freshConns) track(c net.Conn, state http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if state != http.StateNew {
		delete(f.conns, c)
		return
	}
	if f.conns == nil {
		f.conns = map[net.Conn]struct{}{}
	}
	f.conns[c] = struct{}{}
}

func (f *freshConns) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		_ = c.Close()
	}
}

// New binds the listener and the socket, so that an address in use is an error
// before anything else is started.
func New(ctx context.Context, cfg Config) (*Server, error) {
	cfg.Listen = cmp.Or(cfg.Listen, DefaultListen)
	cfg.DrainTimeout = cmp.Or(cfg.DrainTimeout, 5*time.Second)
	cfg.limits.body = cmp.Or(cfg.limits.body, bodyTimeout)
	cfg.limits.conns = cmp.Or(cfg.limits.conns, connsFor(openFiles()))
	if cfg.Attempts == nil {
		cfg.Attempts = auth.NewAttempts(time.Now)
	}
	if cfg.TLS == nil && cfg.Proxies == nil {
		if err := loopbackOnly(ctx, cfg.Listen); err != nil {
			return nil, err
		}
	}
	var lc net.ListenConfig
	tcp, err := lc.Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return nil, cannotListen("--listen", cfg.Listen, err)
	}
	var local net.Listener
	if cfg.Local != "" {
		if err = loopbackOnly(ctx, cfg.Local); err == nil {
			if local, err = lc.Listen(ctx, "tcp", cfg.Local); err != nil {
				err = cannotListen("--local", cfg.Local, err)
			}
		}
		if err != nil {
			_ = tcp.Close()
			return nil, err
		}
	}
	s := &Server{
		cfg: cfg, tcp: tcp, local: local, load: newOverload(), started: time.Now(), closing: make(chan struct{}),
		conns: newConns(cfg.limits.conns, cfg.Proxies != nil, cfg.Log),
	}
	if cfg.Socket != "" {
		if s.unix, err = listenSocket(ctx, cfg.Socket); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	s.http = &http.Server{
		Handler:           s.routes(),
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnContext:       s.withPeer,
		// Strangers decide how many handshakes fail.
		ErrorLog:  stdlog.New(cfg.Log.Sample(&zerolog.BurstSampler{Burst: 10, Period: fullLogged}), "", 0),
		ConnState: s.fresh.track,
	}
	if cfg.TLS != nil {
		// HTTP/2 is named here, and not left to ServeTLS: net/http decides once for all
		// listeners whether there is HTTP/2, and whichever listener is first, the Unix
		// socket too, decides by this list. Without it h2 would be offered and not served.
		s.http.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: cfg.TLS, NextProtos: append([]string{"h2", "http/1.1"}, cfg.ALPN...)}
	}
	return s, nil
}

// cannotListen says what to do when an address cannot be had.
func cannotListen(flag, addr string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("cannot listen on %s (ports below 1024 need a right: setcap cap_net_bind_service=+ep on the program, AmbientCapabilities=CAP_NET_BIND_SERVICE in its unit, or another port with %s that the router forwards to): %w", addr, flag, err)
	}
	return fmt.Errorf("cannot listen on %s (is another yaya running? choose another with %s): %w", addr, flag, err)
}

// loopbackOnly refuses addresses that other machines can reach (R11).
func loopbackOnly(ctx context.Context, addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("listen address %q is not host:port: %w", addr, err)
	}
	ips, err := net.DefaultResolver.LookupIPAddr(ctx, cmp.Or(host, "0.0.0.0"))
	if err != nil {
		return fmt.Errorf("listen address %q: %w", addr, err)
	}
	for _, ip := range ips {
		if !ip.IP.IsLoopback() {
			return fmt.Errorf("listen address %q can be reached from other machines: give it a certificate (--acme, --tls-self-signed, or --tls-cert and --tls-key) or put a proxy with one before it (--behind-proxy), or use 127.0.0.1", addr)
		}
	}
	return nil
}

// listenSocket binds the Unix socket for its owner only. A socket that a dead
// yaya left behind is replaced; the caller holds the lock of the data directory.
func listenSocket(ctx context.Context, path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { //nolint:forbidigo // a socket has no os.Root
		return nil, fmt.Errorf("socket: %w", err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	return l, nil
}

// Close lets go of the listeners of a server that was never run.
func (s *Server) Close() error {
	var err error
	for _, l := range s.listeners() {
		err = errors.Join(err, l.Close())
	}
	return err
}

// listeners are those that there are.
func (s *Server) listeners() []net.Listener {
	out := []net.Listener{s.tcp}
	for _, l := range []net.Listener{s.local, s.unix} {
		if l != nil {
			out = append(out, l)
		}
	}
	return out
}

// Addr returns the address of the listener.
func (s *Server) Addr() string { return s.tcp.Addr().String() }

// LocalAddr returns the address of the listener for this machine alone, "" without one.
func (s *Server) LocalAddr() string {
	if s.local == nil {
		return ""
	}
	return s.local.Addr().String()
}

// Run serves until ctx ends and drains then.
func (s *Server) Run(ctx context.Context) error {
	listeners := s.listeners()
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
		go func() { errs <- s.serve(l) }()
	}
	var first error
	running := len(listeners)
	select {
	case <-ctx.Done():
	case first = <-errs:
		running--
	}
	// ctx is over by now, so the drain needs a deadline of its own.
	dctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.DrainTimeout)
	defer cancel()
	for _, l := range listeners {
		_ = l.Close() // nobody new comes while the fresh ones are sent away
	}
	s.fresh.close()
	close(s.closing)
	defer s.live.Wait()
	err := s.http.Shutdown(dctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.Join(s.http.Close(), nil) // streams end here; they are resumed elsewhere
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

func (s *Server) serve(l net.Listener) error {
	switch {
	case l == s.unix:
		return s.http.Serve(l)
	case l == s.tcp && s.cfg.TLS != nil:
		return s.http.ServeTLS(&places{l, s}, "", "")
	}
	return s.http.Serve(&places{l, s})
}

func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	body := struct {
		Status   string `json:"status"`
		UptimeMS int64  `json:"uptime_ms"`
		Reason   string `json:"reason,omitempty"`
	}{"ok", time.Since(s.started).Milliseconds(), ""}
	status := http.StatusOK
	if r.URL.Query().Get("ready") == "1" && s.cfg.Ready != nil {
		if err := s.cfg.Ready(); err != nil {
			status, body.Status, body.Reason = http.StatusServiceUnavailable, "not ready", err.Error()
		}
	}
	writeJSON(w, status, body)
}

func (s *Server) status(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, s.cfg.Status())
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	writeRaw(w, status, append(data, '\n'))
}

func writeRaw(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that went away gets nothing
}
