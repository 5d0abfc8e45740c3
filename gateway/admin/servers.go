package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
)

// Servers lists and changes MCP servers for the API. Errors wrap [ErrUnknown],
// [ErrRefused] or [ErrStale], and say why.
type Servers interface {
	ServerChanges
	ServerApprovals
	ServerSwitches
	// List describes the servers that are configured, by name.
	List() []Server
	// Remove stops a server and takes it out of the configuration.
	Remove(ctx context.Context, name string) error
	// Restart stops a server and starts it again as it is configured.
	Restart(ctx context.Context, name string) error
}

// ServerSwitches switches servers and their tools, at once and in the configuration.
type ServerSwitches interface {
	// Switch switches a server on or off, in the configuration too. It calls record right
	// before something changes, and changes nothing if that fails.
	Switch(ctx context.Context, name string, on bool, record func() error) error
	// SwitchTool offers a tool of a server, or withholds it, in the configuration too, and
	// starts the server again. It calls record as Switch does.
	SwitchTool(ctx context.Context, name, tool string, on bool, record func() error) error
}

// ServerChanges prepares changes of the configuration, to be shown before they are applied.
type ServerChanges interface {
	// Known returns an error that wraps [ErrUnknown] if there is no server of that name.
	Known(name string) error
	// Prepare checks the configuration that a server is to have, and says what it
	// would run. Nothing happens before [Prepared.Apply] is called. revision is the one
	// that the change was made from: another one now is [ErrStale]; "" is any.
	Prepare(name string, config json.RawMessage, revision string) (Prepared, error)
	// Allow prepares to let a bounded server do more, or less with remove.
	Allow(name string, what ServerPermit, remove bool) (Prepared, error)
	// Importable lists what other clients of this user have configured, and Import
	// prepares to take over what one of them has, but for servers that are there.
	Importable() []Importable
	Import(client string) ([]Prepared, error)
}

// ServerApprovals agrees to what servers offer.
type ServerApprovals interface {
	// Waiting lists what waits for approval. Approve agrees to what was shown by
	// that digest: to the named tools, or to all of it when none is named.
	Waiting() ([]Waiting, error)
	Approve(ctx context.Context, server, digest string, tools []string) error
}

// Server is an MCP server as the API shows it.
type Server struct {
	Name      string    `json:"name"`
	Transport string    `json:"transport"`
	Endpoint  string    `json:"endpoint" doc:"its command or URL, without secrets"`
	File      string    `json:"file" doc:"where it is configured"`
	Editable  bool      `json:"editable" doc:"it is in yaya's own file"`
	State     string    `json:"state" doc:"declared, starting, installing, ready, degraded, draining, failed, stopped; disabled, invalid, waiting"`
	Reason    string    `json:"reason,omitempty" doc:"why it is degraded or failed, or the last line of its installation"`
	Since     time.Time `json:"since,omitzero"`
	Tools     int       `json:"tools"`
	Restarts  int       `json:"restarts"`
	StartMS   float64   `json:"start_ms"`
	Calls     Calls     `json:"calls"`
	LastError string    `json:"last_error,omitempty"`
	// Diagnostics are its last messages and events, oldest first.
	Diagnostics []string `json:"diagnostics,omitempty"`
	// Sandbox is the sandbox of its process; nil for a remote server.
	Sandbox *ServerSandbox `json:"sandbox,omitempty"`
	// Stderr is the end of what it has written to standard error.
	Stderr   string          `json:"stderr,omitempty"`
	Config   json.RawMessage `json:"config" doc:"as it is written, secrets masked"`
	Revision string          `json:"revision,omitempty" doc:"of the configuration: another one after every change, and after a restart of yaya"`
	// Withheld are tools that the configuration withholds.
	Withheld []string `json:"withheld,omitempty" doc:"names and patterns of tools that are not offered"`
	// History has the states of the last day, since yaya runs.
	History []ServerState `json:"history,omitempty" doc:"the last 64 changes of state in the last 24 hours, oldest first, and the state before them"`
}

// ServerState is a state that a server has had from then on.
type ServerState struct {
	State string    `json:"state"`
	Since time.Time `json:"since"`
}

// ServerPermit holds the rights of a server beyond those of its profile.
type ServerPermit struct {
	Read  []string `json:"read,omitempty" maxItems:"64" doc:"absolute paths"`
	Write []string `json:"write,omitempty" maxItems:"64" doc:"absolute paths"`
	Hosts []string `json:"hosts,omitempty" maxItems:"64" doc:"example.com, *.example.com, example.com:8443"`
	Env   []string `json:"env,omitempty" maxItems:"64" doc:"names of variables of yaya's environment"`
}

// ServerSandbox is the sandbox of a server's process.
type ServerSandbox struct {
	Profile string `json:"profile" enum:"guarded,server,off"`
	Allowed string `json:"allowed" doc:"what the process may do, in words"`
	// Backend, Enforced, Missing and Breaks describe the sandbox of the running process, empty
	// without one.
	Backend  string   `json:"backend,omitempty" doc:"of the process that runs: namespaces, landlock, off"`
	Enforced []string `json:"enforced,omitempty" doc:"what is enforced of the profile"`
	Missing  []string `json:"missing,omitempty" doc:"what is not, or in part, in sentences"`
	Breaks   []string `json:"breaks,omitempty" doc:"what the profile allows and does not work here, in sentences"`
	// Denied lists the last denials, the newest first.
	Denied []ServerDenial `json:"denied,omitempty"`
}

// ServerDenial is something that a sandbox has refused.
type ServerDenial struct {
	What  string `json:"what"`
	Allow string `json:"allow,omitempty" doc:"the command that allows it"`
}

// Calls counts the calls of a server's tools.
type Calls struct {
	Total  float64 `json:"total"`
	Errors float64 `json:"errors"`
	P50MS  float64 `json:"p50_ms"`
	P95MS  float64 `json:"p95_ms"`
}

// Prepared is a change of a server that waits to be applied: what is shown is what
// is done.
type Prepared struct {
	Server  string
	New     bool
	Runs    string          // the command line, or URL, secrets masked
	Config  json.RawMessage // secrets masked
	Notes   []string
	Secrets []string // names of those that Apply stores
	// Apply does it. It fails with [ErrStale] if the server has been changed since.
	Apply func(context.Context) error
}

// Importable holds the servers that another client has configured.
type Importable struct {
	Client  string         `json:"client"`
	Path    string         `json:"path"`
	Servers []ImportServer `json:"servers"`
}

// ImportServer is a server of another client.
type ImportServer struct {
	Name     string `json:"name"`
	Endpoint string `json:"endpoint"`
	Known    bool   `json:"known" doc:"yaya has one of that name"`
}

// Waiting lists the changes of one server that wait for approval.
type Waiting struct {
	Server string `json:"server"`
	Reason string `json:"reason,omitempty" doc:"about the server as a whole"`
	// Runs is the command line of a server that a project brings.
	Runs   string          `json:"runs,omitempty"`
	Config json.RawMessage `json:"config,omitempty"`
	Tools  []WaitingTool   `json:"tools"`
	// Instructions are approved with all of it.
	Instructions string `json:"instructions,omitempty" doc:"what has changed in what the server tells its clients, line by line; those that were approved stay in force"`
	Digest       string `json:"digest" doc:"of all of this: what is approved"`
}

// WaitingTool is a tool that waits.
type WaitingTool struct {
	Name    string `json:"name"`
	New     bool   `json:"new"`
	Wording bool   `json:"wording,omitempty" doc:"only its description has changed: the approved one stays in use"`
	Diff    string `json:"diff" doc:"what has changed, line by line"`
}

type (
	InServer struct {
		Name string `path:"name" maxLength:"256"`
	}
	outChange struct{ Body Change }
)

func (a *API) serverRoutes() {
	r := routes{a, "mcp", a.cfg.Servers != nil, "MCP servers"}
	handle(r, "GET", "/api/mcp/servers", "listServers", api.For(auth.ConfigRead), "List MCP servers: state, latency, errors, configuration", http.StatusOK, func(context.Context, *none) (*struct{ Body []Server }, error) {
		return &struct{ Body []Server }{a.cfg.Servers.List()}, nil
	})
	handle(r, "POST", "/api/mcp/servers", "addServer", api.For(auth.ConfigWrite), "Propose a new server; the response shows what it would run, and waits to be applied", http.StatusAccepted, func(ctx context.Context, in *struct {
		Body struct {
			Name   string          `json:"name" minLength:"1" maxLength:"128"`
			Config json.RawMessage `json:"config" doc:"an entry of mcpServers"`
		}
	},
	) (*outChange, error) {
		return a.propose(ctx, in.Body.Name, in.Body.Config, "", true)
	})
	handle(r, "PUT", "/api/mcp/servers/{name}", "changeServer", api.For(auth.ConfigWrite), "Propose another configuration; returned masked values keep their secrets while the address or the command stays the same", http.StatusAccepted, func(ctx context.Context, in *struct {
		InServer
		Body struct {
			Config   json.RawMessage `json:"config"`
			Revision string          `json:"revision,omitempty" maxLength:"128" doc:"that the change was made from: if the server has another one, the change is refused"`
		}
	},
	) (*outChange, error) {
		return a.propose(ctx, in.Name, in.Body.Config, in.Body.Revision, false)
	})
	handle(r, "POST", "/api/mcp/servers/{name}/sandbox", "allowServer", api.For(auth.ConfigWrite), "Propose to let a bounded server do more or less; the response shows its permissions, and waits to be applied", http.StatusAccepted, func(ctx context.Context, in *struct {
		InServer
		Body struct {
			ServerPermit
			Remove bool `json:"remove,omitempty" doc:"take it back"`
		}
	},
	) (*outChange, error) {
		return a.proposed(ctx, func() (Prepared, error) { return a.cfg.Servers.Allow(in.Name, in.Body.ServerPermit, in.Body.Remove) })
	})
	a.switchRoutes(r)
	handle(r, "DELETE", "/api/mcp/servers/{name}", "removeServer", api.For(auth.ConfigWrite), "Stop and remove a server", http.StatusNoContent, func(ctx context.Context, in *InServer) (*none, error) {
		if err := a.cfg.Servers.Known(in.Name); err != nil {
			return nil, err
		}
		return nil, a.recorded(ctx, "server_removed", in.Name, nil, func() error {
			return a.cfg.Servers.Remove(ctx, in.Name)
		})
	})
	handle(r, "POST", "/api/mcp/servers/{name}/restart", "restartServer", api.For(auth.ConfigWrite), "Restart a server", http.StatusNoContent, func(ctx context.Context, in *InServer) (*none, error) {
		if err := a.cfg.Servers.Known(in.Name); err != nil {
			return nil, err
		}
		return nil, a.recorded(ctx, "server_restarted", in.Name, nil, func() error {
			return a.cfg.Servers.Restart(ctx, in.Name)
		})
	})
	handle(r, "GET", "/api/mcp/quarantine", "listWaiting", api.For(auth.ConfigRead), "List tools and servers that wait for approval: new or changed tools, servers of a project", http.StatusOK, func(context.Context, *none) (*struct{ Body []Waiting }, error) {
		all, err := a.cfg.Servers.Waiting()
		return &struct{ Body []Waiting }{all}, err
	})
	handle(r, "POST", "/api/mcp/quarantine/{name}/approve", "approveTools", api.For(auth.ConfigWrite), "Approve tools or a server as shown", http.StatusNoContent, func(ctx context.Context, in *struct {
		InServer
		Body struct {
			Digest string   `json:"digest" maxLength:"128" doc:"of what was shown"`
			Tools  []string `json:"tools,omitempty" maxItems:"500" doc:"all of it if there are none"`
		}
	},
	) (*none, error) {
		all, err := a.cfg.Servers.Waiting()
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(all, func(w Waiting) bool { return w.Server == in.Name }) {
			return nil, api.Fail(http.StatusNotFound, "no changes of server %q wait for approval", in.Name)
		}
		return nil, a.recorded(ctx, "tools_approved", in.Name, map[string]any{"digest": in.Body.Digest, "tools": in.Body.Tools}, func() error {
			return a.cfg.Servers.Approve(ctx, in.Name, in.Body.Digest, in.Body.Tools)
		})
	})
	handle(r, "GET", "/api/mcp/import", "listImportable", api.For(auth.ConfigRead), "List the servers that other MCP clients of this user have configured", http.StatusOK, func(context.Context, *none) (*struct{ Body []Importable }, error) {
		return &struct{ Body []Importable }{a.cfg.Servers.Importable()}, nil
	})
}

func (a *API) switchRoutes(r routes) {
	handle(r, "PATCH", "/api/mcp/servers/{name}", "switchServer", api.For(auth.ConfigWrite), "Enable or disable a server, at once and permanently", http.StatusNoContent, func(ctx context.Context, in *struct {
		InServer
		Body struct {
			Enabled bool `json:"enabled"`
		}
	},
	) (*none, error) {
		if err := a.cfg.Servers.Known(in.Name); err != nil {
			return nil, err
		}
		return nil, a.recordedIf(ctx, "server_switched", in.Name, map[string]bool{"enabled": in.Body.Enabled}, func(record func() error) error {
			return a.cfg.Servers.Switch(ctx, in.Name, in.Body.Enabled, record)
		})
	})
	handle(r, "PATCH", "/api/mcp/servers/{name}/tools/{tool}", "switchTool", api.For(auth.ConfigWrite), "Offer or withhold a tool of a server, at once and permanently; the server starts again", http.StatusNoContent, func(ctx context.Context, in *struct {
		InServer
		Tool string `path:"tool" maxLength:"256" doc:"the server's own name of it"`
		Body struct {
			Enabled bool `json:"enabled"`
		}
	},
	) (*none, error) {
		if err := a.cfg.Servers.Known(in.Name); err != nil {
			return nil, err
		}
		return nil, a.recordedIf(ctx, "server_tool_switched", in.Name, map[string]any{"tool": in.Tool, "enabled": in.Body.Enabled}, func(record func() error) error {
			return a.cfg.Servers.SwitchTool(ctx, in.Name, in.Tool, in.Body.Enabled, record)
		})
	})
}
