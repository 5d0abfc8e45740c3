package downstream

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/traffic"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

// Bounds (C.2, R12).
const (
	MaxMessage    = 256 << 20 // bytes of one message from a client, whatever is configured
	MaxBody       = 64 << 20  // bytes of one, unless something else is configured
	maxConcurrent = 256       // requests at a time on one stdio connection
	keepAlive     = 15 * time.Second
	listTTL       = 5 * time.Second // cache hint of lists for modern clients
)

// Config assembles a server.
type Config struct {
	Dispatcher *tool.Dispatcher
	Registry   *tool.Registry
	// Boundary brings the registry up to date; it is asked before tools are
	// listed. Default: the registry's current snapshot.
	Boundary func(context.Context) *tool.Snapshot
	// Settle waits for servers that are in their first start, before their instructions
	// are read. Optional.
	Settle func(context.Context)
	// Watch calls its argument with the providers whose tools may have changed, until
	// the returned function is called. Optional.
	Watch func(func(providers []string)) (stop func())
	// Absent returns the server of a tool that nobody offers because that server does
	// not run, and why, for the caller; "" for a name that is nobody's. Optional.
	Absent func(tool string) (server, why string)
	// Router finds the servers of prompts and resources. Optional.
	Router *relay.Router
	// Caller says who an HTTP request is from. Without it, or when it reports false,
	// requests are refused.
	Caller func(*http.Request) (tool.Caller, bool)
	// Profiles returns the configured profiles by name. Optional.
	Profiles func() (map[string]Profile, error)
	// Traffic records calls of tools, and what is read of resources and prompts.
	// Optional.
	Traffic *traffic.Log
	// MaxMessage returns how many bytes a message of a client may have now. Default
	// [MaxBody].
	MaxMessage func() int
	// Artifacts holds what was too large for a result. Optional.
	Artifacts *tool.Store
	// TaskAfter is how long a call may take before it becomes a task, for clients
	// that know them. Default 20 s.
	TaskAfter time.Duration
	// SessionEnded is told the kernel session of a client that is gone.
	SessionEnded func(session string)

	Name, Version string
	// Instructions come before those of the servers.
	Instructions string
	Log          zerolog.Logger
}

// Server serves MCP. Its methods are safe for concurrent use.
type Server struct {
	cfg  Config
	info []byte   // serverInfo as JSON
	all  *profile // the default

	// What is recorded.
	toCall, toPrompt, toRead, toExtension func(context.Context, *exchange) ([]byte, error)

	mu       sync.Mutex
	sessions map[string]*client // by Mcp-Session-Id
	owned    map[string]int     // sessions, by principal
	shares   shares
	streams  map[*stream]struct{}
	flights  map[string]*flight // that wait for their client, by state
	tasks    map[string]*ownTask
	made     made // tasks of servers
	profiles map[string]*profile
	closed   bool

	life   context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	unhook func()
}

// New returns a server; Close ends it.
func New(cfg Config) *Server {
	if cfg.Boundary == nil {
		cfg.Boundary = func(context.Context) *tool.Snapshot { return cfg.Registry.Snapshot() }
	}
	if cfg.Router == nil {
		cfg.Router = &relay.Router{Servers: func() []relay.Server { return nil }}
	}
	if cfg.MaxMessage == nil {
		cfg.MaxMessage = func() int { return MaxBody }
	}
	cfg.TaskAfter = cmp.Or(cfg.TaskAfter, defaultTaskAfter)
	cfg.Name, cfg.Version = cmp.Or(cfg.Name, "yaya"), cmp.Or(cfg.Version, "0.0.0")
	info := jsonrpc.AppendString([]byte(`{"name":`), cfg.Name)
	info = append(jsonrpc.AppendString(append(info, `,"version":`...), cfg.Version), '}')
	s := &Server{cfg: cfg, info: info, sessions: map[string]*client{}, owned: map[string]int{}, shares: newShares(maxima), streams: map[*stream]struct{}{}, flights: map[string]*flight{}, tasks: map[string]*ownTask{}, made: newMade(maxMade, maxMadeEach), profiles: map[string]*profile{}, all: &profile{name: ProfileAll, path: ProfileAll}}
	s.toCall, s.toPrompt, s.toRead, s.toExtension = s.recorded(s.callTool), s.recorded(s.getPrompt), s.recorded(s.readResource), s.recorded(s.extension)
	s.life, s.cancel = context.WithCancel(context.Background())
	s.unhook = cfg.Router.Listen(s)
	if cfg.Watch != nil {
		stop, also := s.unhook, cfg.Watch(s.toolsChanged)
		s.unhook = func() {
			stop()
			also()
		}
	}
	s.work.Go(s.expire)
	return s
}

// Close ends every session and stream and waits for the server's goroutine.
// Requests that run are their transport's to wait for.
func (s *Server) Close() {
	s.unhook()
	s.mu.Lock()
	s.closed = true
	all := make([]*client, 0, len(s.sessions))
	for _, c := range s.sessions {
		all = append(all, c)
	}
	clear(s.sessions)
	clear(s.owned)
	s.mu.Unlock()
	s.cancel()
	for _, c := range all {
		s.ended(c)
	}
	s.work.Wait()
	s.settleFlights()
}

// client is whoever sends requests: a legacy session, a modern client, or the
// other end of a stdio connection.
type client struct {
	token   string   // Mcp-Session-Id, "" without
	owner   string   // the principal that it belongs to
	session string   // kernel session
	profile *profile // that it was opened with
	calls   atomic.Uint64
	dropped atomic.Uint64 // notifications that found no room
	settled atomic.Bool   // it takes notifications (legacy only, see settle)

	mu       sync.Mutex
	info     []byte // what it says of itself, raw; nil for nothing
	version  string // negotiated, legacy only
	last     time.Time
	busy     int // requests and streams
	inflight map[string]context.CancelCauseFunc
	get      *stream // the current GET stream

	// Legacy only.
	caps       jsonrpc.Object
	level      string               // of log messages; "" when it did not say
	asks       map[int64]pendingAsk // what it was asked
	askSeq     int64
	subscribed int // resources
	records    []*record
	recordSeq  int
	getRecord  *record
}

func newClient(owner, session string, p *profile) *client {
	return &client{owner: owner, session: session, profile: p, last: time.Now(), inflight: map[string]context.CancelCauseFunc{}, asks: map[int64]pendingAsk{}}
}

// modernClient returns the client of a stateless request. Its kernel session
// follows from what the client says of itself and can do, so that one client keeps
// its upstream sessions; it decides nothing else.
func modernClient(owner string, meta requestMeta, p *profile) *client {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(owner), meta.clientInfo, meta.capabilities} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	sum := h.Sum(nil)
	c := newClient(owner, "mcp_"+hex.EncodeToString(sum[:12]), p)
	c.info = meta.clientInfo // the request's memory, as long as the request has it
	return c
}

var errSessionEnded = errors.New("the session has ended")

func (s *Server) ended(c *client) {
	c.mu.Lock()
	for _, cancel := range c.inflight {
		cancel(errSessionEnded)
	}
	if c.get != nil {
		c.get.end()
	}
	c.mu.Unlock()
	if err := s.cfg.Router.Unsubscribe(s.life, c, ""); err != nil {
		s.cfg.Log.Debug().Err(err).Msg("subscriptions of a client that is gone could not be ended")
	}
	if s.cfg.SessionEnded != nil {
		s.cfg.SessionEnded(c.session)
	}
}

// enter and leave bracket everything that keeps a session from expiring.
func (c *client) enter() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy++
}

// introduced reports whether initialize has settled a version.
func (c *client) introduced() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version != ""
}

// settle lets a legacy client's stream begin. Before the client has said
// notifications/initialized, a server sends nothing unasked (lifecycle, initialization):
// some clients take the first message for the answer to initialize. Who leaves the
// notification out and makes requests has had that answer too.
func (c *client) settle() {
	if c.settled.Load() || c.settled.Swap(true) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.get != nil {
		c.get.poke()
	}
}

func (c *client) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy--
	c.last = time.Now()
}

var errNoAnswer = errors.New("the client has cancelled the request")

func fail(code int, format string, args ...any) *jsonrpc.Error {
	return &jsonrpc.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func (s *Server) dispatch(ctx context.Context, x *exchange) ([]byte, error) {
	// A member that some reader would take for another has two meanings (DN-05).
	if name, of := x.msg.Params.Variant("name", "arguments", "_meta", "cursor", "uri", "ref", "inputResponses", "requestState", "taskId"); name != "" {
		return nil, fail(jsonrpc.CodeInvalidParams, "member %q is a variant of %q", clip(name), of)
	}
	if x.caller.IsServer() {
		if err := x.beyond(); err != nil {
			s.cfg.Log.Warn().Str("principal", x.caller.Principal).Str("method", clip(x.msg.Method)).Msg("a request of a server was refused: " + err.Error())
			return nil, err
		}
	}
	if !x.modern && x.msg.Method != "initialize" && x.msg.Method != "ping" {
		x.c.settle()
	}
	switch x.msg.Method {
	case "tools/call":
		return s.fly(ctx, x, s.toCall)
	case "tools/list":
		return s.listTools(ctx, x)
	case "prompts/get":
		return s.fly(ctx, x, s.toPrompt)
	case "resources/read":
		return s.fly(ctx, x, s.toRead)
	case "prompts/list":
		return s.list(ctx, x, relay.Prompts)
	case "resources/list":
		return s.list(ctx, x, relay.Resources)
	case "resources/templates/list":
		return s.list(ctx, x, relay.Templates)
	case "completion/complete":
		return s.completeArgument(ctx, x)
	case "tasks/get", "tasks/update", "tasks/cancel":
		return s.task(ctx, x)
	case "server/discover":
		return s.discover(ctx, x)
	case "subscriptions/listen":
		return s.listen(ctx, x)
	}
	if !x.modern {
		switch x.msg.Method {
		case "initialize":
			return s.initialize(ctx, x)
		case "ping":
			return []byte("{}"), nil
		case "logging/setLevel":
			return s.setLevel(x)
		case "resources/subscribe":
			return s.follow(ctx, x, true)
		case "resources/unsubscribe":
			return s.follow(ctx, x, false)
		}
	}
	if len(s.sharing(x.profile, x.caps, x.msg.Method)) == 0 {
		return nil, x.unknownMethod()
	}
	return s.fly(ctx, x, s.toExtension)
}

func clip(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}

func (s *Server) initialize(ctx context.Context, x *exchange) ([]byte, error) {
	want, ok := x.msg.Params.String("protocolVersion")
	if !ok {
		return nil, fail(jsonrpc.CodeInvalidParams, "initialize needs a protocolVersion")
	}
	version := mcp.LATEST_LEGACY_PROTOCOL_VERSION
	if mcp.IsValidProtocolVersion(want) && !mcp.IsModernProtocol(want) {
		version = want
	}
	x.c.mu.Lock()
	x.c.version = version
	x.c.info = bytes.Clone(x.msg.Params.Get("clientInfo"))
	if caps, err := jsonrpc.ParseObject(bytes.Clone(x.msg.Params.Get("capabilities"))); err == nil {
		x.c.caps = caps
	}
	x.c.mu.Unlock()
	s.settle(ctx)
	out := append([]byte(nil), `{"protocolVersion":"`+version+`","capabilities":{`...)
	out = append(s.appendCapabilities(out, x), `},"serverInfo":`...)
	out = append(out, s.info...)
	return append(s.appendInstructions(out, x.profile), '}'), nil
}

// capabilities are what both eras declare in the same words. They are the same
// whichever servers are there: one that comes later has not to be announced.
const capabilities = `"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{}`

// appendCapabilities appends what the client of a request is offered.
func (s *Server) appendCapabilities(dst []byte, x *exchange) []byte {
	if x.caller.IsServer() {
		return append(dst, narrowCapabilities...)
	}
	return s.appendExtensions(append(dst, capabilities+`,"logging":{}`...), x.profile, x.modern)
}

func (s *Server) discover(ctx context.Context, x *exchange) ([]byte, error) {
	versions, err := json.Marshal(mcp.ValidProtocolVersions)
	if err != nil {
		return nil, err
	}
	out := append([]byte(`{"resultType":"complete","supportedVersions":`), versions...)
	s.settle(ctx)
	out = append(out, `,"capabilities":{`...)
	out = append(s.appendCapabilities(out, x), '}')
	out = s.appendInstructions(out, x.profile)
	out = appendCacheHints(out)
	return append(s.appendServerMeta(out), '}'), nil
}

func appendCacheHints(dst []byte) []byte {
	dst = append(dst, `,"ttlMs":`...)
	dst = jsonrpc.AppendInt(dst, listTTL.Milliseconds())
	return append(dst, `,"cacheScope":"private"`...)
}

func (s *Server) appendServerMeta(dst []byte) []byte {
	dst = append(dst, `,"_meta":{"`+mcp.MetaKeyServerInfo+`":`...)
	return append(append(dst, s.info...), '}')
}
