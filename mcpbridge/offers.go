package mcpbridge

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/mention"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// Bounds of what users get of prompts.
const (
	maxArguments = 64
	maxValues    = 64 << 10 // bytes of the values of a prompt's arguments
)

// Offers are the resources and prompts of servers that the user of a session can put into a message.
// A call names the user and the session. A server offers them what neither the rules for the session's
// agent nor those for the user deny, and what the session's profile has. Its methods are safe for
// concurrent use.
type Offers struct{ b *Bridge }

// Offers returns what the servers of the bridge offer to users.
func (b *Bridge) Offers() Offers { return Offers{b} }

// allowed reports whether a user may know what a server offers through a method: no rule denies it to
// the user, or to the agent of the session, which reads it.
func (o Offers) allowed(ctx context.Context, call tool.Call, server, method string) bool {
	if o.b.cfg.Dispatcher == nil {
		return false
	}
	agent := call
	agent.Caller, agent.Origin = o.b.cfg.Dispatcher.Agent(call.SessionID), tool.OriginLoop
	return o.b.sees(ctx, call, server, method) && o.b.sees(ctx, agent, server, method)
}

// Servers returns the connected servers with resources or prompts, by name. It asks none of them.
func (o Offers) Servers(ctx context.Context, call tool.Call) []mention.Server {
	out := []mention.Server{}
	for _, s := range o.b.own().Servers() {
		m := mention.Server{
			Name:      s.Name(),
			Resources: s.Has("resources") && o.allowed(ctx, call, s.Name(), methodRead),
			Prompts:   s.Has("prompts") && o.allowed(ctx, call, s.Name(), methodPrompt),
		}
		if m.Resources || m.Prompts {
			out = append(out, m)
		}
	}
	return out
}

// server finds a server that offers a list, by the method that gets an entry of it.
func (o Offers) server(ctx context.Context, call tool.Call, name, capability, method string) (relay.Server, error) {
	for _, s := range o.b.own().Servers() {
		if s.Name() == name && s.Has(capability) && o.allowed(ctx, call, name, method) {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%w %q has %s for this session (yaya mcp list shows the servers)", mention.ErrNoServer, cut.Line(name, maxField), capability)
}

// list returns the entries of a server's list whose names begin with a prefix, those that fit, and the
// number of the others.
func list[T any](ctx context.Context, s relay.Server, k relay.Kind, prefix string, entry func(name string, raw jsonrpc.Object) T) (out []T, more int, err error) {
	all, err := s.List(ctx, k)
	if err != nil {
		return nil, 0, fmt.Errorf("server %q does not list its %s: %w", s.Name(), k.Member, err)
	}
	out = []T{}
	for _, raw := range all {
		name, ok := raw.String(k.Key)
		if !ok || name == "" || len(name) > maxURI || !strings.HasPrefix(name, prefix) {
			continue
		}
		if len(out) == maxListed {
			more++
			continue
		}
		out = append(out, entry(name, raw))
	}
	return out, more, nil
}

func field(raw jsonrpc.Object, keys ...string) string {
	for _, key := range keys {
		if v, ok := raw.String(key); ok && v != "" {
			return cut.Line(v, maxField)
		}
	}
	return ""
}

// Resources returns the resources of a server whose URIs begin with a prefix.
func (o Offers) Resources(ctx context.Context, call tool.Call, server, prefix string) ([]mention.Resource, int, error) {
	s, err := o.server(ctx, call, server, "resources", methodRead)
	if err != nil {
		return nil, 0, err
	}
	return list(ctx, s, relay.Resources, prefix, func(uri string, raw jsonrpc.Object) mention.Resource {
		return mention.Resource{URI: uri, Name: field(raw, "title", "name"), Description: field(raw, "description"), MimeType: field(raw, "mimeType")}
	})
}

// Prompts returns the prompts of a server whose names begin with a prefix.
func (o Offers) Prompts(ctx context.Context, call tool.Call, server, prefix string) ([]mention.Prompt, int, error) {
	s, err := o.server(ctx, call, server, "prompts", methodPrompt)
	if err != nil {
		return nil, 0, err
	}
	return list(ctx, s, relay.Prompts, prefix, promptOf)
}

func promptOf(name string, raw jsonrpc.Object) mention.Prompt {
	p := mention.Prompt{Name: name, Title: field(raw, "title"), Description: field(raw, "description"), Arguments: []mention.Argument{}}
	var args []mention.Argument
	if json.Unmarshal(raw.Get("arguments"), &args) != nil {
		return p // a prompt with arguments that cannot be read has none
	}
	for _, a := range args[:min(len(args), maxArguments)] {
		a.Name, a.Description = cut.Line(a.Name, maxField), cut.Line(a.Description, maxField)
		p.Arguments = append(p.Arguments, a)
	}
	return p
}

// Read reads a resource of a server. Nobody is asked about it without a rule that says so: the user
// named it.
func (o Offers) Read(ctx context.Context, call tool.Call, server, uri string) tool.Result {
	s, err := o.server(ctx, call, server, "resources", methodRead)
	if err != nil {
		return tool.Fail(tool.ErrNotFound, "%v", err)
	}
	r, err := o.b.read(s, uri)
	if err == nil {
		var res tool.Result
		if res, err = o.b.run(ctx, r, call, map[string]string{"server": server, "uri": uri}); err == nil {
			return shown(res)
		}
	}
	return tool.Fail(tool.ErrInternal, "%v", err)
}

// shown is a result whose texts have no character that a user does not see: what the model gets of a
// server in the user's name, the user can read.
func shown(res tool.Result) tool.Result {
	res.Display = slices.Clone(res.Display)
	for i, b := range res.Display {
		res.Display[i].Text = feature.Clean(strings.ReplaceAll(b.Text, "\r\n", "\n"), tool.MaxModelText)
	}
	return res
}

// Prompt gets a prompt of a server as the text of a message. An argument that the prompt requires must
// be among args.
func (o Offers) Prompt(ctx context.Context, call tool.Call, server, name string, args map[string]string) tool.Result {
	s, err := o.server(ctx, call, server, "prompts", methodPrompt)
	if err != nil {
		return tool.Fail(tool.ErrNotFound, "%v", err)
	}
	all, err := s.List(ctx, relay.Prompts)
	if err != nil {
		return tool.Fail(tool.ErrTool, "server %q does not list its prompts: %s", server, feature.Clean(err.Error(), 600))
	}
	i := slices.IndexFunc(all, func(raw jsonrpc.Object) bool { n, _ := raw.String("name"); return n == name })
	if i < 0 {
		return tool.Fail(tool.ErrNotFound, "server %q does not list the prompt %q", server, cut.Line(name, maxField))
	}
	if why := unfit(promptOf(name, all[i]), args); why != "" {
		return tool.Fail(tool.ErrValidation, "the prompt %q of the server %q %s", cut.Line(name, maxField), server, why)
	}
	if args == nil {
		args = map[string]string{} // an object, for servers that require one
	}
	raw, err := json.Marshal(map[string]any{"name": name, "arguments": args})
	if err != nil {
		return tool.Fail(tool.ErrInternal, "%v", err)
	}
	params, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return tool.Fail(tool.ErrInternal, "%v", err)
	}
	res, err := o.b.run(ctx, request{
		server: server, method: methodPrompt, at: s, params: params, brief: "get the prompt " + name + " of the server " + server,
		result: func(call tool.Call, raw []byte) (tool.Result, error) {
			return upstream.PromptResult(o.b.cfg.Artifacts, call, server, name, raw)
		},
	}, call, map[string]any{"server": server, "name": name, "arguments": args})
	if err != nil {
		return tool.Fail(tool.ErrInternal, "%v", err)
	}
	return shown(res)
}

// unfit returns why a prompt cannot be had with some arguments, "" if it can.
func unfit(p mention.Prompt, args map[string]string) string {
	var missing []string
	known := map[string]bool{}
	for _, a := range p.Arguments {
		known[a.Name] = true
		if _, given := args[a.Name]; a.Required && !given {
			missing = append(missing, a.Name)
		}
	}
	if len(missing) > 0 {
		noun := "arguments"
		if len(missing) == 1 {
			noun = "argument"
		}
		return "needs the " + noun + " " + strings.Join(missing, ", ")
	}
	size := 0
	for name, value := range args {
		if size += len(name) + len(value); !known[name] {
			return fmt.Sprintf("has no argument %q; it takes: %s", cut.Line(name, maxField), cmp.Or(argumentNames(p), "none"))
		}
	}
	if size > maxValues {
		return fmt.Sprintf("takes at most %d bytes of arguments", maxValues)
	}
	return ""
}

func argumentNames(p mention.Prompt) string {
	var out []string
	for _, a := range p.Arguments {
		out = append(out, a.Name)
	}
	return strings.Join(out, ", ")
}
