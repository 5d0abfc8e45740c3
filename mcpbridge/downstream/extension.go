package downstream

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

// Bounds of the extensions that are declared for servers.
const (
	maxExtensions    = 32
	maxExtensionName = 128
	maxExtension     = 4 << 10 // bytes of one's settings
)

// appendExtensions appends the extensions of the servers that a profile shows. They
// come with the servers, unlike all other capabilities: a method that no server has is
// not there to be called. Of two servers with the same one, the settings of the first
// by name count.
func (s *Server) appendExtensions(dst []byte, p *profile, modern bool) []byte {
	var all []byte
	names := map[string]bool{relay.Tasks: true} // which is relayed as yaya's own
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

// extension relays a method that an extension brings, to the one server that it can be
// for: the server of the tool or resource that params name, or the only one that shares
// the extension with the client.
func (s *Server) extension(ctx context.Context, x *exchange) ([]byte, error) {
	server, edits, err := s.extended(ctx, x)
	if err != nil {
		return nil, err
	}
	return x.reply(server.Relay(ctx, x, x.msg.Method, x.msg.Params, edits...))
}

func (s *Server) extended(ctx context.Context, x *exchange) (relay.Server, []jsonrpc.Edit, error) {
	able := s.sharing(x.profile, x.caps, x.msg.Method)
	if len(able) == 0 {
		return nil, nil, x.unknownMethod()
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
		return nil, nil, fail(jsonrpc.CodeInvalidParams, "%s can be for any of the servers %s: use a profile that shows one of them (/mcp/<profile>)", clip(x.msg.Method), strings.Join(names, ", "))
	}
	return able[0], nil, nil
}

// sharing returns the servers that share an extension with a client: of them, those
// whose extension the method is called after, if there are some.
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

// extensionNote passes a client's notification on, to the sessions of its own that it
// has with servers that share an extension with it.
func (s *Server) extensionNote(c *client, msg *jsonrpc.Message) {
	to := s.sharing(c.profile, c.capabilities(), msg.Method)
	if len(to) == 0 {
		return
	}
	params := bytes.Clone(msg.Params.Raw())
	for _, srv := range to {
		srv.Notify(c.session, msg.Method, params)
	}
}
