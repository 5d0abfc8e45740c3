package wire

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/gateway/wire/codec"
	"github.com/yaya-ai/yaya/internal/fair"
	"github.com/yaya-ai/yaya/internal/workgroup"
)

// Limits before a client has authenticated, and of what it holds open.
const (
	authTimeout     = 10 * time.Second
	maxAuthFrame    = 4 << 10
	maxMessage      = 1 << 20
	maxConnections  = 20_000
	maxPerPrincipal = 256  // connections of one device
	maxRelays       = 2048 // joins of topics of other nodes, and as many of others here
	maxRelaysOfOne  = 512  // of one principal
)

// Times of silence; variables, so that tests need not wait for them.
var (
	pingEvery  = 20 * time.Second
	deadAfter  = 45 * time.Second
	sweepEvery = 5 * time.Second
)

// Close codes (docs/WIRE.md). None of them is 1000: Phoenix clients take that for
// their own wish and do not come back.
const (
	CloseRestart     = websocket.CloseServiceRestart // 1012
	CloseBadMessage  = 4400                          // not a message of the protocol; the client is broken
	CloseUnauthed    = 4401                          // not authenticated, no longer, or revoked
	CloseSlow        = 4408                          // the client did not keep up: come back with the cursor
	CloseTooMany     = 4429                          // too many messages, or connections
	closeUnsupported = websocket.CloseUnsupportedData
)

// The subprotocols by which a client can choose the encoding of the server's first
// frame.
const (
	SubprotocolJSON    = "yaya.json"
	SubprotocolMsgpack = "yaya.msgpack"
)

// ChallengeHeader carries the challenge on the upgrade's answer; its name is that of
// the wire protocol (W-11).
const ChallengeHeader = "X-YAMO-Challenge"

// Config assembles a [Server]. Authority, KernelID and Audience are required.
type Config struct {
	Authority *auth.Authority
	KernelID  string
	// Audience returns the URL that a request's client has dialled.
	Audience func(*http.Request) string
	// Address returns where a request comes from.
	Address func(*http.Request) netip.Addr
	// Attempts is the budget of failed attempts that all ways to authenticate share.
	Attempts *auth.Attempts
	// Nodes leads to the topics of other nodes; nil if there are none.
	Nodes Nodes
	// Known is called with the principal that has authenticated on a connection; it may be nil.
	Known func(net.Conn, auth.Principal)
	// OnPresence is called when a device's first connection has come, or its last has
	// gone; nil for nobody. It must not block.
	OnPresence func(device string, there bool)
	Log        zerolog.Logger
}

// Server is the handler of WebSockets, and publishes to topics.
type Server struct {
	cfg      Config
	upgrader websocket.Upgrader

	mu       sync.Mutex
	closed   bool
	conns    map[*conn]struct{}
	fresh    map[*conn]struct{} // have not authenticated
	devices  map[string]int
	relays   share // joins of topics of other nodes
	passed   share // joins of clients of other nodes here
	unknown  *fair.Places[netip.Prefix, *stranger]
	full     zerolog.Logger // says that places were all taken, now and then
	handlers []handler
	topics   map[string]*topic
	all      workgroup.Group // connections
	sweeping chan struct{}
	swept    chan struct{}

	pingEvery, deadAfter time.Duration

	stats stats
}

// New returns a server; [Server.Close] ends what it starts.
func New(cfg Config) *Server {
	s := &Server{
		cfg: cfg, conns: map[*conn]struct{}{}, fresh: map[*conn]struct{}{}, devices: map[string]int{}, relays: share{of: map[string]int{}}, passed: share{of: map[string]int{}}, unknown: fair.New[netip.Prefix, *stranger](maxUnknown, maxUnknownPeer), topics: map[string]*topic{},
		sweeping: make(chan struct{}), swept: make(chan struct{}),
		full:      cfg.Log.Sample(&zerolog.BurstSampler{Burst: 1, Period: fullLogged}),
		pingEvery: pingEvery, deadAfter: deadAfter,
	}
	s.upgrader = websocket.Upgrader{
		HandshakeTimeout: 5 * time.Second, WriteBufferSize: 512, WriteBufferPool: new(sync.Pool), // it reads from a hijacker's buffer
		Subprotocols: []string{SubprotocolMsgpack, SubprotocolJSON},
		CheckOrigin:  func(*http.Request) bool { return true }, // the listener has
	}
	cfg.Authority.OnScopes(s.recheck)
	go s.sweep(sweepEvery)
	return s
}

// ServeHTTP takes a WebSocket, authenticates its client and serves it until it
// goes.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("token") || r.URL.Query().Has("device_token") {
		api.Refuse(w, r, api.Detail, api.Fail(http.StatusBadRequest, "do not send a token in the URL: send it in the first frame"))
		return
	}
	addr := s.cfg.Address(r)
	guest := s.enter(addr)
	if guest == nil {
		stopping(w, r)
		return
	}
	challenge := s.cfg.Authority.NewChallenge(s.cfg.Audience(r))
	text := base64.StdEncoding.EncodeToString(challenge.Bytes())
	s.open(w, r, guest, http.Header{ChallengeHeader: {text}}, func(c *conn) (auth.Principal, error) { return c.authenticate(challenge, text, addr) })
}

// Local returns the handler for the owner, whom the listener identified by the
// connection: it needs neither device, token nor challenge, and the first frame is
// auth_ok. Everything else is the same.
func (s *Server) Local() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := auth.FromContext(r.Context())
		if p.Kind != auth.Owner {
			api.Refuse(w, r, api.Detail, api.Fail(http.StatusForbidden, "this is for the user that runs yaya; devices use /ws"))
			return
		}
		if !s.all.Begin() {
			stopping(w, r)
			return
		}
		s.open(w, r, nil, nil, func(*conn) (auth.Principal, error) { return p, nil })
	})
}

func stopping(w http.ResponseWriter, r *http.Request) {
	api.Refuse(w, r, api.Detail, &api.Failure{Status: http.StatusServiceUnavailable, Message: stops, Wait: 10 * time.Second})
}

// open upgrades a connection that s.all or enter has counted, and serves it. guest is
// nil for one whose principal is known.
func (s *Server) open(w http.ResponseWriter, r *http.Request, guest *stranger, header http.Header, who func(*conn) (auth.Principal, error)) {
	h := &hijacker{ResponseWriter: w}
	ws, err := s.upgrader.Upgrade(h, r, header)
	if err != nil { // it has answered
		s.leave(guest)
		s.all.End()
		return
	}
	c := newConn(s, ws, h.r, codec.Format{Msgpack: ws.Subprotocol() == SubprotocolMsgpack, Arrays: r.URL.Query().Get("vsn") == "2.0.0"})
	s.mu.Lock()
	s.fresh[c] = struct{}{}
	closed := s.closed
	lost := false
	if guest != nil {
		guest.conn, lost = c, guest.leaves
	}
	s.mu.Unlock()
	if lost {
		c.evict()
	}
	if closed { // Close has not seen it
		c.q.flush(goodbye)
	}
	// Not on this goroutine: net/http keeps buffers for as long as it is in use.
	go s.run(c, guest, who)
}

// hijacker lends the WebSocket a reader that is also the connection's own: it waits
// there for the next message, see [conn.serve].
type hijacker struct {
	http.ResponseWriter
	r *bufio.Reader
}

const readBuffer = 1 << 10

// Hijack implements [http.Hijacker].
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil || rw.Reader.Buffered() > 0 { // which the upgrader refuses
		return nc, rw, err
	}
	h.r = bufio.NewReaderSize(nc, readBuffer)
	return nc, bufio.NewReadWriter(h.r, rw.Writer), nil
}

// run serves a connection until it is over.
func (s *Server) run(c *conn, guest *stranger, who func(*conn) (auth.Principal, error)) {
	defer s.all.End()
	defer c.close()
	greeted := make(chan bool)
	go func() { greeted <- s.greet(c, guest, who) }()
	if <-greeted {
		c.serve()
		s.forget(c)
	}
}

// greet authenticates a connection and takes it in.
func (s *Server) greet(c *conn, guest *stranger, who func(*conn) (auth.Principal, error)) bool {
	p, err := who(c)
	s.mu.Lock()
	delete(s.fresh, c)
	s.mu.Unlock()
	s.leave(guest)
	if err != nil {
		s.cfg.Log.Debug().Err(err).Msg("a client was not authenticated")
		return false
	}
	if s.cfg.Known != nil && !c.passed {
		s.cfg.Known(c.ws.NetConn(), p)
	}
	if !s.admit(c, p) {
		c.end(CloseTooMany, "too many connections")
		return false
	}
	if err := c.welcome(p); err != nil {
		s.cfg.Log.Error().Err(err).Msg("a client could not be welcomed")
		s.forget(c)
		return false
	}
	return true
}

// admit takes an authenticated connection in.
func (s *Server) admit(c *conn, p auth.Principal) bool {
	if c.passed {
		return s.admitPassed(c, p)
	}
	s.mu.Lock()
	if s.closed || (len(s.conns)-s.passed.all >= maxConnections && p.Kind != auth.Owner) || s.devices[p.ID] >= maxPerPrincipal {
		s.mu.Unlock()
		return false
	}
	c.who = p
	s.conns[c] = struct{}{}
	s.devices[p.ID]++
	first := s.devices[p.ID] == 1
	s.mu.Unlock()
	if first && p.Kind == auth.Device && s.cfg.OnPresence != nil {
		s.cfg.OnPresence(p.ID, true)
	}
	return true
}

func (s *Server) forget(c *conn) {
	who := c.principal()
	id := who.ID
	s.mu.Lock()
	delete(s.conns, c)
	if c.passed {
		s.passed.give(who.Name())
		s.mu.Unlock()
		return
	}
	s.devices[id]--
	last := s.devices[id] == 0
	if last {
		delete(s.devices, id)
	}
	s.mu.Unlock()
	if last && who.Kind == auth.Device && s.cfg.OnPresence != nil {
		s.cfg.OnPresence(id, false)
	}
}

// Present returns the devices that are connected, in order (presence).
func (s *Server) Present() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]string, 0, len(s.devices))
	for id := range s.devices {
		if id != "" { // that is the local owner
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// Shed tells one in so many clients to come back later, for want of memory: those
// that have most queued.
func (s *Server) Shed(part int) {
	all := s.connections()
	queued := make(map[*conn]int, len(all))
	for _, c := range all {
		queued[c] = c.q.backlog()
	}
	slices.SortFunc(all, func(a, b *conn) int { return cmp.Compare(queued[b], queued[a]) })
	for _, c := range all[:(len(all)+part-1)/part] {
		c.end(websocket.CloseTryAgainLater, "yaya is short of memory")
	}
}

// connections returns those that are authenticated.
func (s *Server) connections() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.conns))
}

// sweep pings everybody in turn: one goroutine for all, instead of a timer each.
func (s *Server) sweep(every time.Duration) {
	defer close(s.swept)
	t := time.NewTicker(every)
	defer t.Stop()
	ping := codec.NewFrame(websocket.PingMessage, nil)
	for {
		select {
		case now := <-t.C:
			for _, c := range s.connections() {
				if now.Sub(c.pinged) >= s.pingEvery {
					c.pinged = now
					c.push(ping, true)
				}
			}
		case <-s.sweeping:
			return
		}
	}
}

const stops = "yaya stops"

var goodbye = codec.CloseFrame(CloseRestart, stops)

// Close tells every client to come back later and waits until all of them have
// gone, or ctx ends; then it cuts them off.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.all.Shut()
	close(s.sweeping)
	<-s.swept
	for _, c := range s.connections() {
		c.leave(CloseRestart, stops)
	}
	for _, c := range s.strangers() {
		c.q.flush(goodbye) // in no encoding: theirs is not known yet
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		s.all.Close()
	}()
	var err error
	select {
	case <-gone:
	case <-ctx.Done():
		err = errors.New("some WebSockets had to be cut off")
		for _, c := range append(s.connections(), s.strangers()...) {
			_ = c.ws.Close()
		}
		<-gone
	}
	s.closeTopics()
	return err
}
