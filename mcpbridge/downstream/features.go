package downstream

import (
	"context"
	"errors"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

// codeNoResource is the error code of legacy servers for a resource that does not exist. The
// modern era does not have this code.
const codeNoResource = -32002

// list answers with the entries of all servers, under their names for clients.
func (s *Server) list(ctx context.Context, x *exchange, k relay.Kind) ([]byte, error) {
	if c := x.msg.Params.Get("cursor"); c != nil && string(c) != "null" {
		return nil, fail(jsonrpc.CodeInvalidParams, "unknown cursor: the list has one page")
	}
	s.cfg.Boundary(ctx)
	out := []byte{'{'}
	if x.modern {
		out = append(out, `"resultType":"complete",`...)
	}
	out = append(jsonrpc.AppendString(out, k.Member), ':', '[')
	for _, e := range s.cfg.Router.List(ctx, k) {
		if !s.shows(x, e.Server.Name()) || (k.Key == "name" && !x.profile.named(e.Name)) {
			continue
		}
		if out[len(out)-1] != '[' {
			out = append(out, ',')
		}
		if e.Name == e.Own {
			out = append(out, e.Raw.Raw()...)
		} else {
			out = e.Raw.Append(out, jsonrpc.Edit{Name: k.Key, Value: jsonrpc.AppendString(nil, e.Name)})
		}
	}
	if ctx.Err() != nil {
		return nil, errNoAnswer
	}
	out = append(out, ']')
	if x.modern {
		out = s.appendServerMeta(appendCacheHints(out))
	}
	return append(out, '}'), nil
}

// reply turns a server's answer into the result or error of a request.
func (x *exchange) reply(r relay.Reply, err error) ([]byte, error) {
	switch {
	case x.ctx != nil && x.ctx.Err() != nil:
		r.Buffer.Release()
		return nil, errNoAnswer
	case err != nil:
		return nil, err
	}
	x.buf = r.Buffer
	if r.Err != nil {
		return nil, &jsonrpc.Error{Raw: r.Err}
	}
	return x.complete(r.Result), nil
}

// complete adds the result type that the modern era requires.
func (x *exchange) complete(o jsonrpc.Object) []byte {
	if !x.modern || !o.IsObject() || o.Get("resultType") != nil {
		return o.Raw()
	}
	return o.Append(x.space(len(o.Raw())+32), jsonrpc.Edit{Name: "resultType", Value: []byte(`"complete"`)})
}

// cached adds the cache hints that the modern era requires if the server gave none.
func (x *exchange) cached(out []byte) []byte {
	if !x.modern {
		return out
	}
	obj, err := jsonrpc.ParseObject(out)
	if err != nil || obj.Get("ttlMs") != nil || string(obj.Get("resultType")) != `"complete"` {
		return out
	}
	return obj.Append(nil, jsonrpc.Edit{Name: "ttlMs", Value: []byte("0")}, jsonrpc.Edit{Name: "cacheScope", Value: []byte(`"private"`)})
}

func (s *Server) getPrompt(ctx context.Context, x *exchange) ([]byte, error) {
	name, ok := x.msg.Params.String("name")
	if !ok {
		return nil, fail(jsonrpc.CodeInvalidParams, "prompts/get needs a name")
	}
	e, err := s.cfg.Router.Find(ctx, relay.Prompts, name)
	if err != nil {
		s.cfg.Boundary(ctx)
		e, err = s.cfg.Router.Find(ctx, relay.Prompts, name)
	}
	if err != nil || !s.shows(x, e.Server.Name()) || !x.profile.named(name) {
		return nil, fail(jsonrpc.CodeInvalidParams, "unknown prompt %q", clip(name))
	}
	x.served(e.Server.Name(), e.Own, name)
	return x.reply(e.Server.Relay(ctx, x, x.msg.Method, x.msg.Params, jsonrpc.Edit{Name: "name", Value: jsonrpc.AppendString(nil, e.Own)}))
}

// noResource returns the error for an unknown resource, as the official SDKs do in both eras.
func (x *exchange) noResource(uri string) error {
	e := fail(jsonrpc.CodeInvalidParams, "resource not found: %s", clip(uri))
	e.Data = append(jsonrpc.AppendString([]byte(`{"uri":`), uri), '}')
	return e
}

const maxURI = 8 << 10

func (s *Server) resource(ctx context.Context, x *exchange) (relay.Server, string, error) {
	uri, ok := x.msg.Params.String("uri")
	if !ok || uri == "" || len(uri) > maxURI {
		return nil, "", fail(jsonrpc.CodeInvalidParams, "%s needs a uri of at most %d bytes", x.msg.Method, maxURI)
	}
	server, own, err := s.cfg.Router.Resource(ctx, uri)
	if errors.Is(err, relay.ErrUnknown) {
		s.cfg.Boundary(ctx)
		server, own, err = s.cfg.Router.Resource(ctx, uri)
	}
	if errors.Is(err, relay.ErrUnknown) || (err == nil && !s.shows(x, server.Name())) {
		return nil, "", x.noResource(uri)
	}
	return server, own, err
}

func (s *Server) readResource(ctx context.Context, x *exchange) ([]byte, error) {
	if uri, ok := x.msg.Params.String("uri"); ok {
		if rest, ok := relay.Artifact(uri); ok {
			return s.readArtifact(x, uri, rest)
		}
	}
	server, own, err := s.resource(ctx, x)
	if err != nil {
		return nil, err
	}
	uri, _ := x.msg.Params.String("uri")
	x.served(server.Name(), own, uri)
	out, err := x.reply(server.Relay(ctx, x, x.msg.Method, x.msg.Params, jsonrpc.Edit{Name: "uri", Value: jsonrpc.AppendString(nil, own)}))
	if err != nil {
		return nil, x.translated(err)
	}
	return x.cached(out), nil
}

// translated replaces the code of a server's error with that of the client's era; the rest
// stays unchanged.
func (x *exchange) translated(err error) error {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || !x.modern || jsonrpc.ParseError(e.Raw).Code != codeNoResource {
		return err
	}
	obj, perr := jsonrpc.ParseObject(e.Raw)
	if perr != nil {
		return err
	}
	return &jsonrpc.Error{Raw: obj.Append(nil, jsonrpc.Edit{Name: "code", Value: jsonrpc.AppendInt(nil, jsonrpc.CodeInvalidParams)})}
}

// follow serves resources/subscribe and resources/unsubscribe of the legacy era.
func (s *Server) follow(ctx context.Context, x *exchange, on bool) ([]byte, error) {
	uri, ok := x.msg.Params.String("uri")
	if !ok || uri == "" || len(uri) > maxURI {
		return nil, fail(jsonrpc.CodeInvalidParams, "%s needs a uri of at most %d bytes", x.msg.Method, maxURI)
	}
	var err error
	had := false
	if on {
		x.c.mu.Lock()
		full := len(x.c.subscribed) >= maxSubscribed
		had = x.c.subscribed[uri]
		x.c.subscribed[uri] = true
		x.c.mu.Unlock()
		if full && !had {
			err = fail(jsonrpc.CodeInvalidParams, "at most %d subscriptions", maxSubscribed)
		} else {
			err = s.subscribe(ctx, x, x.c, uri)
		}
	} else {
		err = s.cfg.Router.Unsubscribe(ctx, x.c, uri)
	}
	if !on || err != nil && !had {
		x.c.mu.Lock()
		delete(x.c.subscribed, uri)
		x.c.mu.Unlock()
	}
	switch {
	case ctx.Err() != nil:
		return nil, errNoAnswer
	case errors.Is(err, relay.ErrUnknown):
		return nil, x.noResource(uri)
	case err != nil:
		return nil, err
	}
	return []byte("{}"), nil
}

// completeArgument serves completion/complete.
func (s *Server) completeArgument(ctx context.Context, x *exchange) ([]byte, error) {
	raw := x.msg.Params.Get("ref")
	ref, err := jsonrpc.ParseObject(raw)
	if raw == nil || err != nil {
		return nil, fail(jsonrpc.CodeInvalidParams, "completion/complete needs a ref")
	}
	kind, _ := ref.String("type")
	var e relay.Entry
	key := "name"
	switch kind {
	case "ref/prompt":
		name, _ := ref.String(key)
		if e, err = s.cfg.Router.Find(ctx, relay.Prompts, name); err == nil && !x.profile.named(name) {
			err = relay.ErrUnknown
		}
	case "ref/resource":
		key = "uri"
		uri, _ := ref.String(key)
		if e, err = s.cfg.Router.Find(ctx, relay.Templates, uri); err != nil {
			e.Server, e.Own, err = s.cfg.Router.Resource(ctx, uri)
		}
	default:
		return nil, fail(jsonrpc.CodeInvalidParams, "ref: unknown type %q", clip(kind))
	}
	if err != nil || !s.shows(x, e.Server.Name()) {
		return nil, fail(jsonrpc.CodeInvalidParams, "ref: unknown name")
	}
	if !e.Server.Has("completions") {
		return x.complete(noCompletion), nil
	}
	own := ref.Append(nil, jsonrpc.Edit{Name: key, Value: jsonrpc.AppendString(nil, e.Own)})
	return x.reply(e.Server.Relay(ctx, x, x.msg.Method, x.msg.Params, jsonrpc.Edit{Name: "ref", Value: own}))
}

var noCompletion = mustObject(`{"completion":{"values":[],"total":0,"hasMore":false}}`)

func mustObject(s string) jsonrpc.Object {
	o, err := jsonrpc.ParseObject([]byte(s))
	if err != nil {
		panic(err)
	}
	return o
}

// setLevel serves logging/setLevel of the legacy era.
func (s *Server) setLevel(x *exchange) ([]byte, error) {
	level, _ := x.msg.Params.String("level")
	if relay.Severity(level) == 0 {
		return nil, fail(jsonrpc.CodeInvalidParams, "unknown log level %q", clip(level))
	}
	x.c.mu.Lock()
	x.c.level = level
	x.c.mu.Unlock()
	return []byte("{}"), nil
}
