package downstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

// Bounds of the extensions that yaya declares on behalf of servers.
const (
	maxExtensions    = 32
	maxExtensionName = 128
	maxExtension     = 4 << 10 // bytes of one's settings
)

// appendExtensions appends the extensions of the servers that a profile shows. Unlike all other
// capabilities, they depend on the servers, since nobody can call a method that no server has.
// If two servers have the same extension, the settings of the first by name count.
func (s *Server) appendExtensions(dst []byte, p *profile, modern bool) []byte {
	var all []byte
	names := map[string]bool{relay.Tasks: true} // relayed as yaya's own
	if modern {
		all = append(jsonrpc.AppendString(all, relay.Tasks), ":{}"...)
	}
	for _, srv := range s.cfg.Router.Servers() {
		if !p.server(srv.Name()) {
			continue
		}
		ext := relay.Extensions(srv.Capabilities())
		for i := range ext.Len() {
			name, value := ext.At(i)
			if names[name] || len(name) > maxExtensionName || len(value) > maxExtension || value[0] != '{' || len(names) > maxExtensions {
				continue
			}
			names[name] = true
			if len(all) > 0 {
				all = append(all, ',')
			}
			all = append(append(jsonrpc.AppendString(all, name), ':'), value...)
		}
	}
	if len(all) == 0 {
		return dst
	}
	return append(append(append(dst, `,"extensions":{`...), all...), '}')
}

// extension relays a method of an extension to the one server that it can be for: the server of
// the tool or resource that params name, or the only server that shares the extension with the
// client.
//
// yaya does not know what the method does. So for profiles, hooks, rules, approvals and
// records, it counts as a call of a tool with the name from [methodName]; and no string in its
// params may name a tool of the server that the client may not call.
func (s *Server) extension(ctx context.Context, x *exchange) ([]byte, error) {
	p := &x.passed
	p.tool, p.failed, p.outcome = clip(x.msg.Method), true, tool.ErrNotFound // the default, set below if another applies
	p.args = ofClient(x.msg.Params, false)
	srv, edits, err := s.extended(ctx, x)
	if err != nil {
		return nil, err
	}
	t := &method{srv: srv, name: x.msg.Method, edits: edits, x: x}
	call := s.methodCall(x.c, x.caller, t.Definition().Name, p.args)
	call.Origin, call.Native = x.origin, &tool.NativeCall{Protocol: "mcp", Params: x.msg.Params, Peer: x}
	p.server, p.name = srv.Name(), call.Name
	if why := s.barred(ctx, s.cfg.Boundary(ctx), x.profile, srv, call); why != nil {
		return nil, s.refused(x.caller, srv, x.msg.Method, why)
	}
	res := s.cfg.Dispatcher.Run(ctx, t, call)
	p.failed, p.outcome, p.approved = !res.OK, res.ErrorKind, res.Approved
	if n := res.Native; n != nil {
		return x.reply(relay.Reply{Result: n.Result, Err: n.Error, Buffer: n.Buffer}, nil)
	}
	switch {
	case ctx.Err() != nil:
		return nil, errNoAnswer
	case res.ErrorKind == tool.ErrNotFound:
		return nil, x.unknownMethod()
	case res.ErrorKind == tool.ErrRejected:
		return nil, s.refused(x.caller, srv, x.msg.Method, fail(jsonrpc.CodeInvalidRequest, "%s", res.Brief))
	}
	return nil, fail(jsonrpc.CodeInternal, "%s", res.Brief)
}

// refused logs the refusal of a method, and returns the error.
func (s *Server) refused(who tool.Caller, srv relay.ServerInfo, method string, why *jsonrpc.Error) *jsonrpc.Error {
	s.cfg.Log.Warn().Str("principal", who.Principal).Str("server", srv.Name()).Str("method", clip(method)).Str("reason", why.Message).
		Msg("an extension's method of an MCP client was refused")
	return why
}

// method presents an extension's method to the dispatcher as a tool.
type method struct {
	srv   relay.Server
	name  string
	edits []jsonrpc.Edit
	x     *exchange
}

// ObeysContext implements [tool.Obedient].
func (m *method) ObeysContext() {}

// Definition implements [tool.Tool].
func (m *method) Definition() tool.Definition {
	return tool.Definition{
		Name: methodName(m.srv, m.name), Identity: tool.Identity{Provider: m.srv.Name(), Tool: m.name},
		Kind: tool.KindNetwork, Timeout: tool.OwnTimeout, InputSchema: []byte(`{"type":"object"}`),
	}
}

// Invoke implements [tool.Tool].
func (m *method) Invoke(ctx context.Context, call tool.Call) (tool.Result, error) {
	r, err := m.srv.Relay(ctx, m.x, m.name, call.Native.Params, m.edits...)
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Result{OK: r.Err == nil, Native: &tool.NativeResult{Result: r.Result, Error: r.Err, Buffer: r.Buffer}}, nil
}

// methodName returns the name of an extension's method in profiles and rules: the name of a
// tool of the server that is called like the method.
func methodName(srv relay.ServerInfo, method string) string {
	if prefix, bare := srv.Prefix(); !bare {
		return prefix + "__" + method
	}
	return method
}

func (s *Server) methodCall(c *client, who tool.Caller, name string, args []byte) tool.Call {
	return tool.Call{
		ID:   "call_" + strconv.FormatUint(c.calls.Add(1), 36),
		Name: name, Args: args, SessionID: c.session, Origin: tool.OriginMCP, Caller: who,
	}
}

// ofClient returns params in the form for a server, without the protocol's own members of
// _meta: they belong to the hop and differ in each request. The progress token belongs to the
// hop only in requests. Everything else is the client's, and counts.
func ofClient(params jsonrpc.Object, token bool) []byte {
	if params.IsZero() {
		return []byte("{}")
	}
	meta, err := jsonrpc.ParseObject(params.Get("_meta"))
	if err != nil || !meta.IsObject() { // absent, or not the protocol's
		return bytes.Clone(params.Raw())
	}
	const reserved = "io.modelcontextprotocol/"
	var of []jsonrpc.Edit
	for i := range meta.Len() {
		name, _ := meta.At(i)
		if len(name) > len(reserved) && strings.HasPrefix(name, reserved) || name == "progressToken" && !token {
			of = append(of, jsonrpc.Edit{Name: name})
		}
	}
	if len(of) < meta.Len() {
		return params.Append(nil, jsonrpc.Edit{Name: "_meta", Value: meta.Append(nil, of...)})
	}
	return params.Append(nil, jsonrpc.Edit{Name: "_meta"})
}

// barred returns an error if the arguments of an extension's method must not go to a server:
// they name a tool of the server that the caller may not call without approval, by its original
// name or by the one that clients know. An extension can put a name anywhere, so every string
// counts, including keys.
func (s *Server) barred(ctx context.Context, snap *tool.Snapshot, p *profile, srv relay.Server, call tool.Call) *jsonrpc.Error {
	type known struct {
		def *tool.Definition
		why string
	}
	tools := map[string]known{}
	for def, why := range snap.Of(srv.Name()) {
		tools[def.Name], tools[def.Identity.Tool] = known{def, why}, known{def, why}
	}
	box, _ := srv.(relay.Toolbox)
	var found *jsonrpc.Error
	err := texts(call.Args, func(text string) bool {
		t, ok := tools[text]
		switch {
		case !ok && (box == nil || !box.HasTool(text)):
			return true
		case !ok || !p.tool(t.def):
			found = fail(jsonrpc.CodeInvalidParams, "unknown tool %q: a method of an extension can only reach tools that its client may call", clip(text))
		case t.why != "":
			found = fail(jsonrpc.CodeInvalidParams, "%s", t.why)
		default:
			its := call
			its.Name, its.Args = t.def.Name, []byte("{}")
			if v := s.cfg.Dispatcher.Verdict(ctx, its, *t.def); v.Decision != tool.Allow {
				found = fail(jsonrpc.CodeInvalidRequest, "denied: %s; a method of an extension cannot name the tool %q, which its client may not call without approval", cmp.Or(v.Reason, "the policy does not allow it"), clip(text))
			}
		}
		return found == nil
	})
	if err != nil && found == nil {
		found = fail(jsonrpc.CodeInvalidParams, "the params cannot be checked for the names of tools: %v", err)
	}
	return found
}

// texts calls f for each string in JSON, at any depth and including keys, until f returns
// false. An error means that it did not reach all of them.
func texts(raw []byte, f func(string) bool) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // a number that does not fit float64 is still JSON
	for open := 0; ; {
		tok, err := dec.Token()
		switch {
		case errors.Is(err, io.EOF) && open == 0:
			return nil
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
		switch v := tok.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				open++
			} else {
				open--
			}
		case string:
			if !f(v) {
				return nil
			}
		}
	}
}

func (s *Server) extended(ctx context.Context, x *exchange) (relay.Server, []jsonrpc.Edit, error) {
	shared := s.sharing(x.profile, x.caps, x.msg.Method)
	if len(shared) == 0 {
		return nil, nil, x.unknownMethod()
	}
	able := slices.DeleteFunc(slices.Clone(shared), func(srv relay.Server) bool { return !x.profile.named(methodName(srv, x.msg.Method)) })
	if len(able) == 0 {
		return nil, nil, s.refused(x.caller, shared[0], x.msg.Method, fail(jsonrpc.CodeMethodNotFound, "the method %q is not in the profile: its owner can add %q to the profile's tools", clip(x.msg.Method), clip(methodName(shared[0], x.msg.Method))))
	}
	among := func(name string) (relay.Server, bool) {
		i := slices.IndexFunc(able, func(srv relay.Server) bool { return srv.Name() == name })
		if i < 0 {
			return nil, false
		}
		return able[i], true
	}
	if name, ok := x.msg.Params.String("name"); ok {
		snap := s.cfg.Registry.Snapshot()
		if why := x.withheld(snap, name); why != "" {
			return nil, nil, fail(jsonrpc.CodeInvalidParams, "%s", why)
		}
		if e, ok := snap.Lookup(name); ok && x.profile.tool(&e.Def) {
			if srv, ok := among(e.Def.Identity.Provider); ok {
				return srv, []jsonrpc.Edit{{Name: "name", Value: jsonrpc.AppendString(nil, e.Def.Identity.Tool)}}, nil
			}
			return nil, nil, x.unknownMethod()
		}
	}
	if uri, ok := x.msg.Params.String("uri"); ok && len(uri) <= maxURI {
		if found, own, err := s.cfg.Router.Resource(ctx, uri); err == nil {
			if srv, ok := among(found.Name()); ok {
				return srv, []jsonrpc.Edit{{Name: "uri", Value: jsonrpc.AppendString(nil, own)}}, nil
			}
		}
	}
	if len(able) > 1 {
		var names []string
		for _, srv := range able {
			names = append(names, srv.Name())
		}
		return nil, nil, fail(jsonrpc.CodeInvalidParams, "several servers could handle %s: %s; use a profile that shows only one of them (/mcp/<profile>)", clip(x.msg.Method), strings.Join(names, ", "))
	}
	return able[0], nil, nil
}

// sharing returns the servers that share an extension with a client; if the method's name
// contains one of the extensions, only the servers with that one.
func (s *Server) sharing(p *profile, caps jsonrpc.Object, method string) []relay.Server {
	if relay.Core(method) || relay.Extensions(caps).Len() == 0 {
		return nil
	}
	var able, named []relay.Server
	for _, srv := range s.cfg.Router.Servers() {
		if !p.server(srv.Name()) {
			continue
		}
		shared := relay.Shared(caps, srv.Capabilities())
		if len(shared) > 0 {
			able = append(able, srv)
		}
		if slices.ContainsFunc(shared, func(e string) bool { return relay.Brings(e, method) }) {
			named = append(named, srv)
		}
	}
	if len(named) > 0 {
		return named
	}
	return able
}

func (x *exchange) unknownMethod() error {
	return fail(jsonrpc.CodeMethodNotFound, "unknown method %q", clip(x.msg.Method))
}

// extensionNote forwards a client's notification to the client's own sessions with servers that
// share an extension with it. The rules for methods apply to it, but nobody is asked about it.
func (s *Server) extensionNote(c *client, p *profile, who tool.Caller, msg *jsonrpc.Message) {
	to := s.sharing(p, c.capabilities(), msg.Method)
	if len(to) == 0 {
		return
	}
	args := ofClient(msg.Params, true)
	params := args // check exactly the bytes that are sent
	if msg.Params.IsZero() {
		params = nil
	}
	for _, srv := range to {
		def := (&method{srv: srv, name: msg.Method}).Definition()
		call := s.methodCall(c, who, def.Name, args)
		why := s.barred(s.life, s.cfg.Registry.Snapshot(), p, srv, call)
		if why == nil && !p.named(def.Name) {
			why = fail(jsonrpc.CodeMethodNotFound, "it is not in the profile")
		}
		if why == nil {
			if v := s.cfg.Dispatcher.Verdict(s.life, call, def); v.Decision != tool.Allow {
				why = fail(jsonrpc.CodeInvalidRequest, "%s", cmp.Or(v.Reason, "the policy does not allow it"))
			}
		}
		switch {
		case why != nil:
			_ = s.refused(who, srv, msg.Method, why) // a notification has no response
		case !srv.Notify(c.session, msg.Method, params):
			s.lost(c, srv.Name(), msg.Method)
		}
	}
}
