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

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/telemetry"
	"github.com/yaya-ai/yaya/internal/toolsearch"
	"github.com/yaya-ai/yaya/internal/traffic"
	"github.com/yaya-ai/yaya/internal/workgroup"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

// Bounds of clients and their messages.
const (
	MaxMessage    = 256 << 20 // bytes of one message from a client, regardless of the configuration
	MaxBody       = 64 << 20  // default for the bytes of one message
	maxConcurrent = 256       // requests at a time on one stdio connection
	keepAlive     = 15 * time.Second
	listTTL       = 5 * time.Second // cache hint of lists for modern clients
)

// Config assembles a server.
type Config struct {
	Dispatcher *tool.Dispatcher
	Registry   *tool.Registry
	// Boundary updates the registry; it is called before tools are listed. Default: the
	// registry's current snapshot.
	Boundary func(context.Context) *tool.Snapshot
	// Settle waits for servers in their first start, before their instructions are read.
	// Optional.
	Settle func(context.Context)
	// Watch calls its argument with the providers whose tools may have changed, until
	// the returned function is called. Optional.
	Watch func(func(providers []string)) (stop func())
	// Absent returns the server of a tool that is missing because the server does not run, and
	// the reason for the caller; "" for other names. Optional.
	Absent func(name string, caller tool.Caller) (server, why string)
	// Router finds the servers of prompts and resources. Optional.
	Router *relay.Router
	// Caller identifies the caller of an HTTP request. Without it, or if it reports false,
	// requests are refused.
	Caller func(*http.Request) (tool.Caller, bool)
	// Profiles returns the configured profiles by name. Optional.
	Profiles func() (map[string]Profile, error)
	// Scope returns the scope that a caller needs to see a server of yaya's own, "" for none.
	// Optional.
	Scope func(server string) string
	// Traffic records tool calls, and reads of resources and prompts. Optional.
	Traffic *traffic.Log
	// Embeddings rank tools by meaning, too; nil for words alone.
	Embeddings *toolsearch.Embeddings
	// Telemetry sends traces and metrics; nil for none.
	Telemetry *telemetry.Telemetry
	// MaxMessage returns the current limit for a client's message, in bytes. Default [MaxBody].
	MaxMessage func() int
	// Artifacts stores content that is too large for a result. Optional.
	Artifacts *tool.Store
	// TaskAfter is the time after which a call becomes a task, for clients that know tasks.
	// Default 20 s.
	TaskAfter time.Duration
	// TakeOver are the sessions of the process that this one goes on for. Optional.
	TakeOver Handover
	// Node is the name of this node of a cluster, "" without one. Ids that clients bring back name it.
	Node string
	// Forward returns what serves the requests for another node; nil if there is no other node of that name.
	Forward func(node string) http.Handler
	// Drained returns what serves the requests of new clients while this node takes none; nil while it
	// does, or if no other node does. Optional.
	Drained func(r *http.Request) http.Handler
	// SessionEnded is called with the kernel session of a client that is gone.
	SessionEnded func(session string)

	Name, Version string
	// Instructions precede those of the servers.
	Instructions string
	Log          zerolog.Logger
}

// Server serves MCP. Its methods are safe for concurrent use.
type Server struct {
	cfg    Config
	info   []byte                    // serverInfo as JSON
	all    *profile                  // the default
	agents atomic.Pointer[tool.Tool] // gives a task to an agent; nil for none

	// The record of calls.
	toCall, toPrompt, toRead, toExtension func(context.Context, *exchange) ([]byte, error)

	mu       sync.Mutex
	sessions map[string]*client // by Mcp-Session-Id
	owned    map[string]int     // sessions, by principal
	kinds    map[kind]int       // sessions, by principal and client
	shares   shares
	pace     *pace // of new sessions
	streams  map[*stream]struct{}
	flights  map[string]*flight // parked ones, by state
	tasks    map[string]*ownTask
	made     made // tasks of servers
	profiles map[string]*profile
	closed   bool
	leaving  bool // new streams end at once

	life   context.Context // a base context: of streams and flights, until Close
	cancel context.CancelFunc
	work   workgroup.Group
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
	s := &Server{cfg: cfg, info: info, sessions: map[string]*client{}, owned: map[string]int{}, kinds: map[kind]int{}, shares: newShares(maxima), pace: newPace(clientRate, principalRate), streams: map[*stream]struct{}{}, flights: map[string]*flight{}, tasks: map[string]*ownTask{}, made: newMade(maxMade, maxMadeEach), profiles: map[string]*profile{}, all: &profile{name: ProfileAll, path: ProfileAll}}
	s.toCall, s.toPrompt, s.toRead, s.toExtension = s.observed(s.recorded(s.callTool)), s.observed(s.recorded(s.getPrompt)), s.observed(s.recorded(s.readResource)), s.observed(s.recorded(s.extension))
	s.life, s.cancel = context.WithCancel(context.Background())
	s.takeOver(cfg.TakeOver)
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

// Close ends every session and stream and waits for the server's goroutine. The transport has
// to wait for running requests.
func (s *Server) Close() {
	s.unhook()
	s.work.Shut()
	s.mu.Lock()
	s.closed = true
	all := make([]*client, 0, len(s.sessions))
	for _, c := range s.sessions {
		all = append(all, c)
	}
	clear(s.sessions)
	clear(s.owned)
	clear(s.kinds)
	s.mu.Unlock()
	s.cancel()
	for _, c := range all {
		s.ended(c, tool.ErrStopping)
	}
	s.work.Close()
	s.settleFlights()
}

// client is a sender of requests: a legacy session, a modern client, or the other end of a
// stdio connection.
type client struct {
	token   string   // Mcp-Session-Id, "" without
	owner   string   // the principal that it belongs to
	kind    kind     // legacy only
	session string   // kernel session
	profile *profile // the profile that it was opened with
	calls   atomic.Uint64
	dropped atomic.Uint64 // dropped notifications
	settled atomic.Bool   // it accepts notifications (legacy only, see settle)
	moved   atomic.Bool   // a predecessor's session: its next stream says that all lists may have changed

	mu       sync.Mutex
	info     []byte // its description of itself, raw; nil if none
	version  string // negotiated, legacy only
	last     time.Time
	busy     int                 // requests and streams
	inflight map[uint64]*running // by the hash of their ids; nil before the first
	get      *stream             // the current GET stream
	caps     jsonrpc.Object      // its declared capabilities, zero if none
	level    string              // minimum severity of log messages; "" if it did not say

	// Legacy only.
	asks       map[int64]pendingAsk // pending questions
	askSeq     int64
	subscribed map[string]bool // resources
	records    []*record
	recordSeq  int
	getRecord  *record
}

func newClient(owner, session string, p *profile) *client {
	return &client{owner: owner, session: session, profile: p, last: time.Now(), asks: map[int64]pendingAsk{}, subscribed: map[string]bool{}}
}

// modernClient returns the client of a stateless request. Its kernel session derives from the
// client's description and capabilities, so that a client keeps its upstream sessions; nothing
// else depends on them.
func modernClient(owner string, meta requestMeta, p *profile) *client {
	var room [512]byte
	all := binary.BigEndian.AppendUint64(room[:0], uint64(len(owner)))
	all = append(all, owner...)
	for _, part := range [][]byte{meta.clientInfo, meta.capabilities} {
		all = binary.BigEndian.AppendUint64(all, uint64(len(part)))
		all = append(all, part...)
	}
	sum := sha256.Sum256(all)
	// It asks no questions outside a flight, and has no subscriptions.
	var name [4 + 24]byte
	return &client{ // in the request's memory, while the request owns it
		owner: owner, session: string(hex.AppendEncode(append(name[:0], "mcp_"...), sum[:12])), profile: p, last: time.Now(),
		info: meta.clientInfo, caps: meta.open(), level: meta.level,
	}
}

var errSessionEnded = errors.New("the session has ended")

// ended cancels the requests of a client, which is gone or loses its session, with a cause.
func (s *Server) ended(c *client, cause error) {
	c.cancelAll(cause)
	c.mu.Lock()
	if c.get != nil {
		c.get.end()
	}
	c.mu.Unlock()
	if err := s.cfg.Router.Unsubscribe(s.life, c, ""); err != nil {
		s.cfg.Log.Debug().Err(err).Msg("cannot end the subscriptions of a client that is gone")
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

// introduced reports whether initialize has negotiated a version.
func (c *client) introduced() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version != ""
}

// settle opens a legacy client's stream. Before notifications/initialized, a server must not
// send messages on its own (lifecycle, initialization): some clients take the first message for
// the answer to initialize. A client that skips the notification but makes requests already has
// that answer, so its stream opens, too.
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
	// A member that some parsers would take for another one is ambiguous.
	if name, of := x.msg.Params.Variant("name", "arguments", "_meta", "cursor", "uri", "ref", "inputResponses", "requestState", "taskId"); name != "" {
		return nil, fail(jsonrpc.CodeInvalidParams, "member %q is a variant of %q", clip(name), of)
	}
	if x.caller.IsServer() {
		if err := x.beyond(); err != nil {
			s.cfg.Log.Warn().Str("principal", x.caller.Principal).Str("method", clip(x.msg.Method)).Msg("refused a request of a server: " + err.Error())
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

// clip is how much of a client's words is said back to it.
func clip(s string) string { return cut.Text(s, 100) }

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

// capabilities are declared in the same words in both eras. They do not depend on the connected
// servers, so a server that connects later need not be announced.
const capabilities = `"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{}`

// appendCapabilities appends the capabilities for the client of a request.
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
