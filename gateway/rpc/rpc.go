// Package rpc serves the control plane over HTTP: JSON-RPC 2.0 at POST /rpc, and the
// agents at GET /agents.
package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/gateway/plane"
	"github.com/yaya-ai/yaya/gateway/wire"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

const (
	maxBody  = 1 << 20 // bytes
	maxBatch = 50
	maxName  = 500 // bytes of a method's name in an error
)

// Routes are those of the control plane. log gets the errors that callers are not told.
func Routes(p *plane.Plane, log zerolog.Logger) []api.Route {
	access := api.Access{Owner: api.Socket, Device: auth.AgentsRead}
	return []api.Route{
		{Pattern: "POST /rpc", Access: access, Note: "each method asks for its own scope", Style: refusal, Handler: handler(p, log)},
		{Pattern: "GET /agents", Access: access, Style: api.Detail, Handler: agents(p)},
		{Pattern: "GET /agents/{id}", Access: access, Style: api.Detail, Handler: agents(p)},
	}
}

// refusal words what is refused before a call is read, as JSON-RPC does: without an id.
func refusal(f *api.Failure) any {
	code := jsonrpc.CodeInvalidRequest
	switch f.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		code = plane.CodeForbidden
	case http.StatusTooManyRequests:
		code = plane.CodeLimited
	case http.StatusServiceUnavailable:
		code = plane.CodeUnavailable
	case http.StatusInternalServerError:
		code = jsonrpc.CodeInternal
	}
	return json.RawMessage(jsonrpc.AppendError(nil, nil, &jsonrpc.Error{Code: code, Message: f.Message}))
}

// agents is GET /agents and GET /agents/{id}.
func agents(p *plane.Plane) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		if id == "" {
			all, index := p.Agents()
			api.Write(w, http.StatusOK, map[string]any{"agents": all, "raft_log_index": index})
			return
		}
		a, err := p.Agent(id)
		if err != nil {
			api.Refuse(w, r, api.Detail, api.Fail(http.StatusNotFound, "agent not found"))
			return
		}
		api.Write(w, http.StatusOK, a)
	})
}

func send(w http.ResponseWriter, raw []byte) { api.WriteRaw(w, http.StatusOK, append(raw, '\n')) }

// server calls the methods.
type server struct {
	plane *plane.Plane
	log   zerolog.Logger
}

// handler is POST /rpc: JSON-RPC 2.0, single calls and batches of at most 50.
func handler(p *plane.Plane, log zerolog.Logger) http.Handler {
	s := &server{p, log}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, refused := api.Read(r, maxBody)
		if refused != nil && refused.Status != http.StatusBadRequest {
			api.Refuse(w, r, refusal, refused)
			return
		}
		if refused != nil {
			send(w, jsonrpc.AppendError(nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeParse, Message: "the body is not JSON"}))
			return
		}
		data = bytes.TrimSpace(data)
		if data[0] != '[' {
			reply(w, s.one(r.Context(), data))
			return
		}
		var batch []json.RawMessage
		if err := json.Unmarshal(data, &batch); err != nil || len(batch) == 0 || len(batch) > maxBatch {
			send(w, jsonrpc.AppendError(nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "a batch has 1 to 50 requests"}))
			return
		}
		var out []byte
		for _, raw := range batch {
			if res := s.one(r.Context(), raw); res != nil {
				out = append(append(out, ','), res...)
			}
		}
		if out != nil {
			out[0] = '['
			out = append(out, ']')
		}
		reply(w, out)
	})
}

// reply writes a response; there is none to notifications.
func reply(w http.ResponseWriter, raw []byte) {
	if raw == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	send(w, raw)
}

// one handles one request and returns its response, nil for a notification.
func (s *server) one(ctx context.Context, raw []byte) []byte {
	var m jsonrpc.Message
	if err := m.Parse(raw); err != nil || m.Method == "" {
		return jsonrpc.AppendError(nil, m.ID, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "not a JSON-RPC 2.0 request whose params are an object"})
	}
	result, err := s.call(ctx, auth.FromContext(ctx), m.Method, m.Params.Raw())
	if m.IsNotification() {
		return nil
	}
	if err != nil {
		return jsonrpc.AppendError(nil, m.ID, s.rpcError(err))
	}
	out, err := json.Marshal(result)
	if err != nil {
		return jsonrpc.AppendError(nil, m.ID, s.rpcError(err))
	}
	return jsonrpc.AppendResult(nil, m.ID, out)
}

// rpcError returns the error that a caller gets.
func (s *server) rpcError(err error) *jsonrpc.Error {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*plane.Error](err); ok {
		return &jsonrpc.Error{Code: e.Code, Message: e.Text}
	}
	if e, ok := errors.AsType[*wire.Problem](err); ok {
		code := e.Code
		if code == 0 {
			code = plane.CodeParams
		}
		return &jsonrpc.Error{Code: code, Message: e.Reason}
	}
	switch {
	case errors.Is(err, auth.ErrForbidden):
		return &jsonrpc.Error{Code: plane.CodeForbidden, Message: err.Error()}
	case errors.Is(err, control.ErrUnavailable):
		s.log.Error().Err(err).Msg("a change could not be written")
		return &jsonrpc.Error{Code: plane.CodeUnavailable, Message: "bridge_unavailable"}
	}
	s.log.Error().Err(err).Msg("a call failed")
	return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "internal error; yaya's log has the details"}
}
