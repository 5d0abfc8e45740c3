package mcpbridge

import (
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

// ServerReady is the payload of x.mcp.server.ready (Y-67).
type ServerReady struct {
	Server string       `json:"server"`
	Tools  []ServerTool `json:"tools"`
}

// ServerError is the payload of x.mcp.server.error (Y-68); Kind is
// config_invalid or boot_failed.
type ServerError struct {
	Server  string `json:"server"`
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// ToolsQuarantined is the payload of x.mcp.tools.quarantined: why tools of a
// server are not offered, by tool; which tools go on with the wording that was
// approved; and whether the server's instructions do.
type ToolsQuarantined struct {
	Server       string            `json:"server"`
	Tools        map[string]string `json:"tools"`
	Wording      []string          `json:"wording,omitempty"`
	Instructions bool              `json:"instructions,omitempty"`
}

// ResultCut is the payload of x.mcp.result.cut: a result of a tool was larger than
// the server may send to a client.
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
	// Servers are started when the plugin is loaded; Invalid ones are reported.
	Servers   []servers.Server
	Invalid   []servers.Invalid
	Registry  *tool.Registry
	Procs     *proc.Manager
	HTTP      http.RoundTripper
	Artifacts *tool.Store
	// Trust remembers what was agreed to. Without it everything is.
	Trust *trust.Store
	// MayStart is asked before each connection to a server that a project brings, and at
	// each start of its process, which reads and writes what was agreed to; its error is
	// why there is none. Required for such servers.
	MayStart func(servers.Server) (servers.Places, error)
	// Refuse returns why a server, its variables expanded, must not be used, nil for
	// others. Optional.
	Refuse func(servers.Server) error
	// Grants keeps the authorization that servers have given. Without it servers
	// that want some cannot be used.
	Grants *oauth.Store
	// Eras remembers which protocol eras servers speak. Optional.
	Eras    *upstream.Eras
	Version string
	Log     zerolog.Logger
	// Secrets learns those of a server before it is started, and conceals what is known
	// in all that servers say. Optional.
	Secrets *masked.Secrets
	// Mask returns a text without the secrets in it; nil leaves texts as they are.
	Mask func(string) string
	// Limits returns what holds for all servers now. Optional.
	Limits func() upstream.Limits
	// Standing returns the way to a client between its requests, nil when there
	// is none. Optional.
	Standing func(client string) relay.Peer
	// Sandboxes are what servers' processes run in. Without them they run with all rights
	// of their user.
	Sandboxes *sandbox.Sandboxes
	// Permits returns a server with what the user lets it do beyond what its entry says.
	// Optional.
	Permits func(servers.Server) servers.Server
	// Endpoint returns yaya's MCP endpoint for a server that may call tools of others, as
	// that server. Optional.
	Endpoint func(server string) http.Handler
	// Env looks up yaya's own environment.
	Env func(string) (string, bool)
	// Secret returns the value of a secret that a server refers to. Optional.
	Secret func(name string) (string, error)
	// PassEnv names further variables of it that every server's process gets.
	// Optional.
	PassEnv   func() []string
	Home      string
	Workspace string
}

// Bridge is the plugin that runs the configured servers. Its methods are safe
// for concurrent use.
type Bridge struct {
	cfg    Config
	host   *feature.Host
	router *relay.Router

	mu        sync.Mutex
	emit      func(kind, session string, payload any) error // nil until it is loaded
	providers map[string]*upstream.Provider
	invalid   []servers.Invalid
	announced map[string]bool
	logs      map[string]*linelog.Ring  // what servers have said, by name
	states    map[string]string         // what was noted last
	added     map[string][32]byte       // what each server came to when it was added
	off       map[string]servers.Server // disabled ones, by name
	refused   map[string]string         // files that are not taken over as they are now, and why

	weaker sync.Map // how the sandbox of each server was weaker when that was logged last, by name
}

// New returns a bridge. Attach gives it its host before it is loaded.
func New(cfg Config) *Bridge {
	b := &Bridge{cfg: cfg, providers: map[string]*upstream.Provider{}, announced: map[string]bool{}, logs: map[string]*linelog.Ring{}, states: map[string]string{}, added: map[string][32]byte{}, off: map[string]servers.Server{}}
	b.router = &relay.Router{Servers: b.servers}
	return b
}

// Router returns what finds the servers of prompts and resources.
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

// Add starts a configured server in the background. A server that cannot be
// used is recorded and reported on the bus, and is no error of Add; warnings are
// returned.
func (b *Bridge) Add(ctx context.Context, s servers.Server) []string {
	x, warnings, err := b.expand(ctx, s)
	b.mu.Lock()
	if _, there := b.added[s.Name]; !there { // another of that name is not started
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
	its := x // with the variables that come late
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
	var kept func(line string) upstream.Denial // of others, no line is looked at
	if x.SandboxProfile() == servers.SandboxServer {
		kept = func(line string) upstream.Denial { return b.fileDenied(x, line) }
	}
	p := upstream.New(upstream.Config{
		MayStart: mayStart,
		Said:     b.said(x.Name),
		Mask:     b.cfg.Mask, Secrets: b.cfg.Secrets,
		Pin: pin, Repinned: repinned, Instructions: instructions,
		Cut: func(call tool.Call, t upstream.Truncated) {
			b.tell(Cut.Name(), ResultCut{x.Name, call.Name, call.SessionID, t})
		},
		Authorize: authorize, Renewed: renewed,
		Server: inSandbox(x), Environ: func() []string {
			b.learn(its) // what is passed may have changed
			return b.environ(its)
		},
		Sandbox: func(tell func(upstream.Denial)) (*sandbox.Run, error) { return b.enter(s, x, tell) },
		Kept:    kept,
		Denied:  func(denial string) { b.cfg.Log.Warn().Str("server", x.Name).Msg(denial) },
		Late:    late, Procs: b.cfg.Procs, HTTP: b.cfg.HTTP, Artifacts: b.cfg.Artifacts,
		Name: "yaya", Version: b.cfg.Version, Router: b.router, Standing: b.cfg.Standing, Eras: b.cfg.Eras, Limits: b.cfg.Limits,
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

// Refused sets which files of the configuration are not taken over as they are now, and
// why: a health check says so.
func (b *Bridge) Refused(files map[string]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused = files
}

// Loaded reports whether the bridge is loaded, and so starts what is added.
func (b *Bridge) Loaded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.emit != nil
}

// Runs reports whether a server, as it is configured, comes to what was added under its
// name: whether adding it again would change nothing.
func (b *Bridge) Runs(s servers.Server) bool {
	x, _, err := b.expand(context.Background(), s)
	b.mu.Lock()
	defer b.mu.Unlock()
	was, there := b.added[s.Name]
	return there && was == b.digest(x, err)
}

// expand puts variables into a server's configuration, and its file of variables, unless
// that is a pipe: what fills it asks somebody, so it is read only for a start.
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

// digest is what a server comes to, or why it comes to nothing.
func (b *Bridge) digest(x servers.Server, failed error) [32]byte {
	raw, err := json.Marshal(x)
	if err != nil { // cannot be: it was made of JSON
		failed = err
	}
	return sha256.Sum256(fmt.Appendf(raw, "\x00%v\x00%v", x.Disabled, failed))
}

// Remove stops a server, waits for it, and forgets what is known of it. It reports
// whether there was one of that name.
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

// pins returns what holds a server to what was agreed to; nil for a server that is
// trusted always. The configuration as written is part of what is trusted: a server
// that the user has configured again is seen for the first time.
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
	if err != nil { // the start says so, too
		b.cfg.Log.Warn().Err(err).Str("server", x.Name).Msg("the instructions of a server are not known before it is there")
	}
	return pin, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return !checked.IsZero() && checked != b.cfg.Trust.Changed(src)
	}, instructions
}

// authorize returns what adds a server's authorization to its requests; nil when
// there is nothing to add, or the configuration adds it.
func (b *Bridge) authorize(s servers.Server) (wrap func(http.RoundTripper) http.RoundTripper, renewed func() bool) {
	if b.cfg.Grants == nil || s.Transport == servers.Stdio || s.NoOAuth {
		return nil, nil
	}
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return nil, nil
		}
	}
	t := Authorization(s, b.cfg.Grants)
	return func(next http.RoundTripper) http.RoundTripper {
		t.Next = next
		return t
	}, t.Renewed
}

// Authorization returns the transport that authorises requests to a server.
func Authorization(s servers.Server, grants *oauth.Store) *oauth.Transport {
	t := &oauth.Transport{Server: s.URL, Name: s.Name, Store: grants}
	if s.OAuth != nil {
		t.Config = oauth.Config{OAuth: *s.OAuth}
	}
	return t
}

// Invalid records a server that cannot be used.
func (b *Bridge) Invalid(inv servers.Invalid) {
	b.mu.Lock()
	b.invalid = append(b.invalid, inv)
	b.mu.Unlock()
	b.report(inv.Name, "config_invalid", b.masked(inv.Err.Error()))
}

// InvalidServers returns the servers that cannot be used. Their errors read without
// secrets.
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

// tell publishes as the plugin.
func (b *Bridge) tell(kind string, payload any) {
	b.mu.Lock()
	emit := b.emit
	b.mu.Unlock()
	if emit == nil {
		return
	}
	if err := emit(kind, session, payload); err != nil && !errors.Is(err, bus.ErrClosed) {
		b.cfg.Log.Error().Err(err).Msg("an event could not be published")
	}
}

// OnStatus is the host's status hook: the first time that a server is ready, or
// fails to be, is told on the bus (Y-67, Y-68).
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

// Release ends what servers hold for a client that is gone.
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
