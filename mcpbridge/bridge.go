package mcpbridge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/linelog"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/internal/secretfile"
	"github.com/yaya-ai/yaya/internal/telemetry"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/oauth"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/trust"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// Name is the bridge's source on the bus and the name of its private session.
const (
	Name    = "mcp-bridge"
	session = event.BridgePrefix + Name
)

// ServerTool is a tool in [ServerReady].
type ServerTool struct {
	Name        string `json:"name"`
	MCPName     string `json:"mcp_name"`
	Description string `json:"description"`
}

// ServerReady is the payload of x.mcp.server.ready.
type ServerReady struct {
	Server string       `json:"server"`
	Tools  []ServerTool `json:"tools"`
}

// ServerError is the payload of x.mcp.server.error; Kind is
// config_invalid or boot_failed.
type ServerError struct {
	Server  string `json:"server"`
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// ToolsQuarantined is the payload of x.mcp.tools.quarantined: for each tool of a server that is
// not offered, the reason; the tools that keep their approved wording; and whether the server's
// instructions do.
type ToolsQuarantined struct {
	Server       string            `json:"server"`
	Tools        map[string]string `json:"tools"`
	Wording      []string          `json:"wording,omitempty"`
	Instructions bool              `json:"instructions,omitempty"`
}

// ResultCut is the payload of x.mcp.result.cut: a tool's result exceeded the limit for clients.
type ResultCut struct {
	Server  string             `json:"server"`
	Tool    string             `json:"tool"`
	Session string             `json:"session"`
	Cut     upstream.Truncated `json:"cut"`
}

// The bridge's events.
var (
	Cut         = event.DefineExtension[ResultCut]("x.mcp.result.cut", event.Reliable)
	Quarantined = event.DefineExtension[ToolsQuarantined]("x.mcp.tools.quarantined", event.Reliable)
	Ready       = event.DefineExtension[ServerReady]("x.mcp.server.ready", event.Reliable)
	Error       = event.DefineExtension[ServerError]("x.mcp.server.error", event.Reliable)
)

// Config assembles a bridge. Registry, Procs, HTTP, Env and Home are required.
type Config struct {
	// Servers start when the plugin is loaded; Invalid ones are reported.
	Servers  []servers.Server
	Invalid  []servers.Invalid
	Registry *tool.Registry
	// Dispatcher decides about agents' reads of resources. Without it, agents have none.
	Dispatcher *tool.Dispatcher
	Procs      *proc.Manager
	HTTP       http.RoundTripper
	Artifacts  *tool.Store
	// Trust stores the user's approvals. Without it, everything counts as approved.
	Trust *trust.Store
	// MayStart is called before each connection to a server that a project brings, and at each
	// start of its process, whose files must be the approved ones; an error prevents it.
	// Required for such servers.
	MayStart func(servers.Server) (servers.Places, error)
	// Refuse returns an error if a server, with its variables expanded, must not be used.
	// Optional.
	Refuse func(servers.Server) error
	// Grants stores the authorizations for servers. Without it, servers that require
	// authorization cannot be used.
	Grants *oauth.Store
	// Eras remembers which protocol eras servers speak. Optional.
	Eras    *upstream.Eras
	Version string
	Log     zerolog.Logger
	// Secrets learns the secrets of a server before it starts, and conceals all known secrets
	// in the output of servers. Optional.
	Secrets *masked.Secrets
	// Mask returns a text without the secrets in it; nil leaves texts as they are.
	Mask func(string) string
	// Telemetry sends traces and metrics; nil for none.
	Telemetry *telemetry.Telemetry
	// Limits returns the current limits for all servers. Optional.
	Limits func() upstream.Limits
	// Sandboxes runs the servers' processes. Without it, they run with all rights of their
	// user.
	Sandboxes *sandbox.Sandboxes
	// Permits returns a server with the permits that the user added to its entry. Optional.
	Permits func(servers.Server) servers.Server
	// Env looks up yaya's own environment.
	Env func(string) (string, bool)
	// Secret returns the value of a secret that a server refers to. Optional.
	Secret func(name string) (string, error)
	// PassEnv names further variables of yaya's environment that every server's process gets.
	// // Optional.
	PassEnv   func() []string
	Home      string
	Workspace string
	// Node is the name of this node of a cluster, "" if this yaya is alone. Elsewhere returns the
	// way to a server on another node, and its address there; nil if other nodes cannot be reached.
	Node      string
	Elsewhere func(node, server string) (way http.RoundTripper, address string)
	// Vouch returns the header by which another node knows who a call is from.
	Vouch func(who tool.Caller, origin tool.Origin) http.Header
}

// Bridge is the plugin that runs the configured servers. Its methods are safe
// for concurrent use.
type Bridge struct {
	cfg    Config
	host   *feature.Host
	face   Face
	router *relay.Router

	mu        sync.Mutex
	emit      func(kind, session string, payload any) error // nil until it is loaded
	providers map[string]*upstream.Provider
	invalid   []servers.Invalid
	announced map[string]bool
	logs      map[string]*linelog.Ring  // logs of servers, by name
	states    map[string]string         // the last noted state
	added     map[string][32]byte       // the expanded configuration of each server when it was added
	off       map[string]servers.Server // disabled ones, by name
	refused   map[string]string         // files that were not reloaded, with the reason

	weaker sync.Map // the last logged weakness of each server's sandbox, by name
}

// New returns a bridge. Attach gives it its host, and Offer its face, before it is loaded.
func New(cfg Config) *Bridge {
	b := &Bridge{cfg: cfg, providers: map[string]*upstream.Provider{}, announced: map[string]bool{}, logs: map[string]*linelog.Ring{}, states: map[string]string{}, added: map[string][32]byte{}, off: map[string]servers.Server{}}
	b.router = &relay.Router{Servers: b.servers}
	return b
}

// Router returns the router that finds the servers of prompts and resources.
func (b *Bridge) Router() *relay.Router { return b.router }

// servers returns the servers by name.
func (b *Bridge) servers() []relay.Server {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]relay.Server, 0, len(b.providers))
	for _, name := range slices.Sorted(maps.Keys(b.providers)) {
		out = append(out, b.providers[name])
	}
	return out
}

// Attach names the host that runs the providers; it is called once.
func (b *Bridge) Attach(h *feature.Host) { b.host = h }

// Face offers the servers of a bridge to clients. Both fields are optional.
type Face struct {
	// Standing returns the way to a client between its requests, nil when there is none.
	Standing func(client string) relay.Peer
	// Endpoint returns yaya's MCP endpoint for a server that may call tools of others, as
	// that server.
	Endpoint func(server string) http.Handler
}

// Offer names what offers clients the bridge's servers, and is made of the bridge; it is
// called once, before the bridge is loaded.
func (b *Bridge) Offer(f Face) { b.face = f }

// Add starts a configured server in the background and returns warnings. A server that cannot
// be used is recorded and reported on the bus.
func (b *Bridge) Add(ctx context.Context, s servers.Server) []string {
	s, way, err := b.place(s)
	x, warnings := s, []string(nil)
	if err == nil {
		x, warnings, err = b.expand(ctx, s)
	}
	b.mu.Lock()
	if _, there := b.added[s.Name]; !there { // another server of that name is not started
		b.added[s.Name] = b.digest(x, err)
	}
	delete(b.off, s.Name)
	if s.Disabled {
		b.off[s.Name] = s
	}
	b.mu.Unlock()
	if s.Disabled {
		return nil
	}
	if err == nil && b.cfg.Refuse != nil {
		err = b.cfg.Refuse(x)
	}
	if err != nil {
		b.Invalid(servers.Invalid{Name: s.Name, File: s.File, Err: err})
		return warnings
	}
	b.learn(x)
	_, refused := b.passed()
	warnings = append(warnings, refused...)
	authorize, renewed := b.authorize(x)
	pin, repinned, instructions := b.pins(s, x)
	var mayStart func() error
	if s.Project {
		mayStart = func() error {
			_, err := b.cfg.MayStart(s)
			return err
		}
	}
	its := x // with the variables that are read late
	var late func(context.Context) error
	if secretfile.IsPipe(x.EnvFile) {
		late = func(ctx context.Context) error {
			if err := b.readEnvFile(ctx, &its); err != nil {
				return err
			}
			b.learn(its)
			return nil
		}
	}
	hidden := new(unseen)
	var kept func(line string) upstream.Denial // the lines of other servers are not examined
	if x.SandboxProfile() == servers.SandboxServer {
		kept = func(line string) upstream.Denial { return b.complaint(x, hidden, line) }
	}
	var vouch func(tool.Caller, tool.Origin) http.Header
	if way != nil {
		vouch = b.cfg.Vouch
	}
	p := upstream.New(upstream.Config{
		MayStart: mayStart,
		Log:      b.logTo(x.Name),
		Mask:     b.cfg.Mask, Secrets: b.cfg.Secrets, Telemetry: b.cfg.Telemetry,
		Pin: pin, Repinned: repinned, Instructions: instructions,
		Cut: func(call tool.Call, t upstream.Truncated) {
			b.tell(Cut.Name(), ResultCut{x.Name, call.Name, call.SessionID, t})
		},
		Authorize: authorize, Renewed: renewed,
		Server: inSandbox(x), Environ: func() []string {
			b.learn(its) // the passed variables may have changed
			return b.environ(its)
		},
		Sandbox: func(tell func(upstream.Denial)) (*sandbox.Run, error) { return b.enter(s, x, hidden, tell) },
		Kept:    kept,
		Denied:  func(denial string) { b.cfg.Log.Warn().Str("server", x.Name).Msg(denial) },
		Late:    late, Procs: b.cfg.Procs, HTTP: cmp.Or(way, b.cfg.HTTP), Vouch: vouch, Artifacts: b.cfg.Artifacts,
		Name: "yaya", Version: b.cfg.Version, Router: b.router, Standing: b.face.Standing, Eras: b.cfg.Eras, Limits: b.cfg.Limits,
		Guard: func(ctx context.Context, f func() error) error { return b.host.Do(ctx, x.Name, f) },
	})
	if err := b.host.Install(ctx, feature.Contribution{Name: Name, Providers: []feature.Provider{p}}); err != nil {
		if errors.Is(err, feature.ErrDuplicate) {
			err = errors.New("another server of that name is configured; rename one of them")
		}
		b.Invalid(servers.Invalid{Name: s.Name, File: s.File, Err: err})
		return warnings
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.providers[s.Name] = p
	return warnings
}

// Refused sets the configuration files that were not reloaded, with the reasons, for the health
// check.
func (b *Bridge) Refused(files map[string]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused = files
}

// Loaded reports whether the bridge is loaded, and so starts added servers.
func (b *Bridge) Loaded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.emit != nil
}

// Runs reports whether adding a server again, as it is configured now, would change nothing.
func (b *Bridge) Runs(s servers.Server) bool {
	s, _, err := b.place(s)
	x := s
	if err == nil {
		x, _, err = b.expand(context.Background(), s)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	was, there := b.added[s.Name]
	return there && was == b.digest(x, err)
}

// expand expands the variables in a server's configuration, including those from its env file,
// unless that is a pipe: the program behind a pipe may ask the user, so a pipe is read only for
// a start.
func (b *Bridge) expand(ctx context.Context, s servers.Server) (servers.Server, []string, error) {
	if b.cfg.Permits != nil {
		s = b.cfg.Permits(s)
	}
	x, warnings, err := s.Expand(servers.Scope{Env: b.cfg.Env, Secret: b.cfg.Secret, Home: b.cfg.Home, Workspace: b.cfg.Workspace})
	if err == nil && x.EnvFile != "" && !secretfile.IsPipe(x.EnvFile) {
		err = b.readEnvFile(ctx, &x)
	}
	return x, warnings, err
}

// digest returns the digest of a server's expanded configuration, or of the error.
func (b *Bridge) digest(x servers.Server, failed error) [32]byte {
	raw, err := json.Marshal(x)
	if err != nil { // cannot happen: it was built from JSON
		failed = err
	}
	return sha256.Sum256(fmt.Appendf(raw, "\x00%v\x00%v", x.Disabled, failed))
}

// Remove stops a server, waits for it, and forgets it. It reports whether there was a server of
// that name.
func (b *Bridge) Remove(name string) bool {
	running := b.host.Remove(name)
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.invalid)
	b.invalid = slices.DeleteFunc(b.invalid, func(i servers.Invalid) bool { return i.Name == name })
	delete(b.providers, name)
	delete(b.states, name)
	delete(b.added, name)
	delete(b.off, name)
	maps.DeleteFunc(b.announced, func(key string, _ bool) bool { return strings.HasPrefix(key, name+"\x00") })
	return running || len(b.invalid) < n
}

// pins returns the function that holds a server to the approved offer; nil for a server that is
// always trusted. The written configuration is part of the approval: a server that the user
// reconfigures counts as new.
func (b *Bridge) pins(s, x servers.Server) (pin func(upstream.Offer) (upstream.Agreed, error), repinned func() bool, instructions string) {
	if b.cfg.Trust == nil || s.Trust == servers.TrustAlways {
		return nil, nil, ""
	}
	src := trust.Source{Server: x.Name, Config: strings.Join(append([]string{string(s.Transport), s.Command, s.URL}, s.Args...), "\x00")}
	var mu sync.Mutex
	var checked time.Time
	pin = func(o upstream.Offer) (upstream.Agreed, error) {
		v, err := b.cfg.Trust.Check(src, trust.Seen(o), time.Now())
		mu.Lock()
		defer mu.Unlock()
		checked = b.cfg.Trust.Changed(src)
		if len(v.Blocked)+len(v.Approved) > 0 || v.NewInstructions {
			b.tell(Quarantined.Name(), ToolsQuarantined{x.Name, v.Blocked, slices.Sorted(maps.Keys(v.Approved)), v.NewInstructions})
		}
		return upstream.Agreed(v), err
	}
	instructions, err := b.cfg.Trust.Instructions(src)
	if err != nil { // the start reports the error, too
		b.cfg.Log.Warn().Err(err).Str("server", x.Name).Msg("cannot read the approved instructions of a server before it starts")
	}
	return pin, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return !checked.IsZero() && checked != b.cfg.Trust.Changed(src)
	}, instructions
}

// Invalid records a server that cannot be used.
func (b *Bridge) Invalid(inv servers.Invalid) {
	b.mu.Lock()
	b.invalid = append(b.invalid, inv)
	b.mu.Unlock()
	b.report(inv.Name, "config_invalid", b.masked(inv.Err.Error()))
}

// InvalidServers returns the servers that cannot be used. Their errors contain no secrets.
func (b *Bridge) InvalidServers() []servers.Invalid {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := append([]servers.Invalid(nil), b.invalid...)
	for i := range out {
		out[i].Err = &maskedError{out[i].Err, b.masked(out[i].Err.Error())}
	}
	return out
}

func (b *Bridge) report(server, kind, msg string) {
	b.tell(Error.Name(), ServerError{server, kind, msg})
}

// tell publishes an event as the plugin.
func (b *Bridge) tell(kind string, payload any) {
	b.mu.Lock()
	emit := b.emit
	b.mu.Unlock()
	if emit == nil {
		return
	}
	if err := emit(kind, session, payload); err != nil && !errors.Is(err, bus.ErrClosed) {
		b.cfg.Log.Error().Err(err).Msg("cannot publish an event")
	}
}

// OnStatus is the host's status hook. It publishes the first time that a server is ready, or
// fails to start, on the bus.
func (b *Bridge) OnStatus(st feature.Status) {
	b.noteState(st)
	if !st.State.Usable() && st.State != feature.Failed {
		return
	}
	key := st.ID + "\x00" + string(map[bool]feature.State{true: feature.Ready, false: feature.Failed}[st.State.Usable()])
	b.mu.Lock()
	first := !b.announced[key]
	b.announced[key] = true
	b.mu.Unlock()
	if !first {
		return
	}
	if st.State == feature.Failed {
		b.report(st.ID, "boot_failed", st.Reason)
		return
	}
	ready := ServerReady{Server: st.ID, Tools: []ServerTool{}}
	for e := range b.cfg.Registry.Snapshot().All() {
		if e.Def.Identity.Provider == st.ID {
			ready.Tools = append(ready.Tools, ServerTool{e.Def.Name, e.Def.Identity.Tool, e.Def.Description})
		}
	}
	b.tell(Ready.Name(), ready)
}

// Release closes the sessions that servers hold for a client that is gone.
func (b *Bridge) Release(client string) {
	b.mu.Lock()
	all := make([]*upstream.Provider, 0, len(b.providers))
	for _, p := range b.providers {
		all = append(all, p)
	}
	b.mu.Unlock()
	for _, p := range all {
		p.Release(client)
	}
}
