package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// Bounds of what agents get of resources. Servers write these texts.
const (
	maxListed = 200 // resources and templates in one answer
	maxURI    = 8 << 10
	maxField  = 200 // characters of a name or a description
)

// registerResources offers agents the resources of servers. Lists are those that the bridge has
// anyway; a read is a request to the server, about which hooks, rules and people decide as about a
// call of one of its tools.
func (b *Bridge) registerResources(c plugin.Context) error {
	if b.cfg.Dispatcher == nil {
		return nil
	}
	list, err := tool.New(tool.Definition{
		Name: "mcp_resources", Title: "Resources of servers", Kind: tool.KindRead, ForAgents: true,
		Description: "Lists resources of the connected MCP servers, and templates of their URIs: files, records and pages that mcp_read reads. With find, those that have all the words.",
	}, b.listResources)
	if err != nil {
		return err
	}
	read, err := tool.New(tool.Definition{
		Name: "mcp_read", Title: "Read a resource", Kind: tool.KindRead, ForAgents: true, Timeout: tool.OwnTimeout,
		Description: "Reads a resource of an MCP server by its URI, from mcp_resources or made of a template.",
	}, b.readResource)
	if err != nil {
		return err
	}
	return errors.Join(c.RegisterTool(obedient{list}), c.RegisterTool(obedient{read}))
}

type obedient struct{ tool.Tool }

func (obedient) ObeysContext() {}

// own routes to the servers of the bridge alone: agents have tools of their own for what yaya itself
// offers to clients.
func (b *Bridge) own() *relay.Router { return &relay.Router{Servers: b.servers} }

// sees reports whether a caller may know what a server offers through a method, such as its
// resources: whether it may use the server, the view of its session has the method, and no rule
// denies it. The view has the profile of the MCP client that gave the agent its task.
func (b *Bridge) sees(ctx context.Context, call tool.Call, server, method string) bool {
	def := request{server: server, method: method}.Definition()
	call.Name, call.Args, call.Prepared = def.Name, json.RawMessage("{}"), nil
	return call.Caller.Reaches(server) && b.cfg.Registry.Sees(call.SessionID, &def) && b.cfg.Dispatcher.Ruled(ctx, call, def).Decision != tool.Deny
}

type listArgs struct {
	Server string `json:"server,omitempty" jsonschema:"of this server alone"`
	Find   string `json:"find,omitempty" jsonschema:"words that the URI, the name or the description has"`
}

func (b *Bridge) listResources(ctx context.Context, call tool.Call, a listArgs) (tool.Result, error) {
	words := strings.Fields(strings.ToLower(a.Find))
	visible := map[string]bool{}
	var lines []string
	total := 0
	for _, k := range []relay.Kind{relay.Resources, relay.Templates} {
		for _, e := range b.own().List(ctx, k) {
			name := e.Server.Name()
			if a.Server != "" && a.Server != name {
				continue
			}
			ok, known := visible[name]
			if !known {
				ok = b.sees(ctx, call, name, methodRead)
				visible[name] = ok
			}
			line := described(k, e)
			if !ok || !hasAll(line, words) {
				continue
			}
			if total++; total <= maxListed {
				lines = append(lines, line)
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	if total == 0 {
		return tool.OK("no resources", tool.Text("No connected server lists such resources.")), nil
	}
	if more := total - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("… %d more: name a server, or words to find", more))
	}
	return tool.OK(fmt.Sprintf("%d resources", total), tool.Text(strings.Join(lines, "\n"))), nil
}

// described is an entry in one line; what a server says about it is in quotes.
func described(k relay.Kind, e relay.Entry) string {
	kind := "resource"
	if k == relay.Templates {
		kind = "template"
	}
	line := fmt.Sprintf("%s of %s: %q", kind, e.Server.Name(), cut.Text(e.Name, maxURI))
	for _, key := range []string{"title", "name", "mimeType", "description"} {
		if v, ok := e.Raw.String(key); ok && v != "" {
			line += fmt.Sprintf(", %s %q", key, cut.Line(v, maxField))
		}
	}
	return line
}

func hasAll(line string, words []string) bool {
	line = strings.ToLower(line)
	for _, w := range words {
		if !strings.Contains(line, w) {
			return false
		}
	}
	return true
}

type readArgs struct {
	URI string `json:"uri" jsonschema:"of the resource"`
}

func (b *Bridge) readResource(ctx context.Context, call tool.Call, a readArgs) (tool.Result, error) {
	if a.URI == "" || len(a.URI) > maxURI {
		return tool.Fail(tool.ErrValidation, "the uri has between 1 and %d bytes", maxURI), nil
	}
	s, own, err := b.own().Resource(ctx, a.URI)
	if err == nil && !b.sees(ctx, call, s.Name(), methodRead) {
		err = relay.ErrUnknown
	}
	if errors.Is(err, relay.ErrUnknown) {
		return tool.Fail(tool.ErrNotFound, "no connected server has the resource %q; mcp_resources lists those that there are", cut.Text(a.URI, maxField)), nil
	}
	if err != nil {
		return tool.Result{}, err
	}
	r, err := b.read(s, own)
	if err != nil {
		return tool.Result{}, err
	}
	inner := tool.Call{ID: call.ID, SessionID: call.SessionID, Turn: call.Turn, Origin: call.Origin, Caller: call.Caller}
	inner.Caller.Tools = nil // the list of a sub-agent has mcp_read
	return b.run(ctx, r, inner, map[string]string{"server": s.Name(), "uri": own})
}

// run has hooks, rules and people decide about a request to a server, and makes it. Asks show args.
func (b *Bridge) run(ctx context.Context, r request, call tool.Call, args any) (tool.Result, error) {
	shown, err := json.Marshal(args)
	if err != nil {
		return tool.Result{}, err
	}
	call.Name, call.Args = r.Definition().Name, shown
	return b.cfg.Dispatcher.Run(ctx, r, call), nil
}

// read returns the request for a resource by its URI at the server.
func (b *Bridge) read(s relay.Server, uri string) (request, error) {
	params, err := jsonrpc.ParseObject(append(jsonrpc.AppendString([]byte(`{"uri":`), uri), '}'))
	return request{
		server: s.Name(), method: methodRead, at: s, params: params, brief: "read " + uri + " of the server " + s.Name(),
		result: func(call tool.Call, raw []byte) (tool.Result, error) {
			return upstream.ResourceResult(b.cfg.Artifacts, call, raw)
		},
	}, err
}

// The methods, and the names of the tools that rules know them by, after the server's.
const (
	methodRead   = "resources/read"
	methodPrompt = "prompts/get"
)

// request presents a request of a server, other than a call of a tool, to the dispatcher as a tool of
// its server.
type request struct {
	server, method string
	at             relay.Server
	params         jsonrpc.Object
	brief          string
	result         func(call tool.Call, raw []byte) (tool.Result, error)
}

// ObeysContext implements [tool.Obedient].
func (request) ObeysContext() {}

// Definition implements [tool.Tool].
func (r request) Definition() tool.Definition {
	return tool.Definition{
		Name: r.server + "__" + r.method, Identity: tool.Identity{Provider: r.server, Tool: r.method},
		Kind: tool.KindRead, Timeout: tool.OwnTimeout, InputSchema: json.RawMessage(`{"type":"object"}`),
	}
}

// ApprovalBrief implements [tool.ApprovalBriefer].
func (r request) ApprovalBrief(tool.Call) string { return r.brief }

// Invoke implements [tool.Tool].
func (r request) Invoke(ctx context.Context, call tool.Call) (tool.Result, error) {
	reply, err := r.at.Relay(ctx, agentPeer{call}, r.method, r.params)
	if err != nil {
		return tool.Result{}, err
	}
	defer reply.Buffer.Release()
	if reply.Err != nil {
		return tool.Fail(tool.ErrTool, "server %q: %s", r.server, cut.Text(jsonrpc.ParseError(reply.Err).Error(), 2000)), nil
	}
	return r.result(call, reply.Result.Raw())
}

// agentPeer is an agent, or its user, as the client of a server: one that answers no questions, and
// reads no notifications.
type agentPeer struct{ call tool.Call }

func (p agentPeer) Client() string                     { return p.call.SessionID }
func (agentPeer) Name() string                         { return "" }
func (p agentPeer) Caller() (tool.Caller, tool.Origin) { return p.call.Caller, p.call.Origin }
func (agentPeer) Modern() bool                         { return false }
func (agentPeer) Capabilities() jsonrpc.Object         { return jsonrpc.Object{} }
func (agentPeer) LogLevel() string                     { return "" }
func (agentPeer) Notify(method string, params []byte)  {}

// Ask implements [relay.Peer].
func (agentPeer) Ask(context.Context, string, []byte) (relay.Reply, error) {
	return relay.Refusal(jsonrpc.CodeMethodNotFound, "nobody answers questions about a resource or a prompt"), nil
}
