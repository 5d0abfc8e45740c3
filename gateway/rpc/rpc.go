package rpc

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/httpbody"
	"github.com/yaya-ai/yaya/gateway/registry"
	"github.com/yaya-ai/yaya/gateway/wire"
	"github.com/yaya-ai/yaya/internal/control"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/loop"
)

// Codes besides those of JSON-RPC 2.0 (W-58).
const (
	codeParams      = jsonrpc.CodeInvalidParams
	codeUnavailable = -32001 // bridge_unavailable (W-70)
	codeNotFound    = -32002
	codeForbidden   = -32003
	codeTimeout     = -32004
	codeLimited     = -32005
	codeFailed      = -32006 // the skill has failed
)

const (
	maxBody  = 1 << 20 // bytes
	maxBatch = 50
)

// AgentsHandler is GET /agents and GET /agents/{id} (W-50, W-51).
func (p *Plane) AgentsHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		if id == "" {
			answer(w, http.StatusOK, map[string]any{"agents": p.agents.List(), "raft_log_index": p.run.Log.State().Last})
			return
		}
		a, ok := p.agents.Get(id)
		if !ok {
			answer(w, http.StatusNotFound, map[string]string{"detail": "there is no such agent"})
			return
		}
		answer(w, http.StatusOK, a)
	})
}

func answer(w http.ResponseWriter, status int, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	send(w, status, raw)
}

func send(w http.ResponseWriter, status int, raw []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n')) // a client that went away gets nothing
}

// Handler is POST /rpc: JSON-RPC 2.0, single calls and batches of at most 50
// (W-52…W-58).
func (p *Plane) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, herr := httpbody.Read(w, r, maxBody)
		if herr != nil && herr.Status != http.StatusBadRequest {
			answer(w, herr.Status, map[string]string{"detail": herr.Detail})
			return
		}
		if herr != nil {
			send(w, http.StatusOK, jsonrpc.AppendError(nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeParse, Message: "the body is no JSON"}))
			return
		}
		data = bytes.TrimSpace(data)
		if data[0] != '[' {
			reply(w, p.one(r.Context(), data))
			return
		}
		var batch []json.RawMessage
		if err := json.Unmarshal(data, &batch); err != nil || len(batch) == 0 || len(batch) > maxBatch {
			send(w, http.StatusOK, jsonrpc.AppendError(nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "a batch has 1 to 50 requests"}))
			return
		}
		var out []byte
		for _, raw := range batch {
			if res := p.one(r.Context(), raw); res != nil {
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
	send(w, http.StatusOK, raw)
}

// one handles one request and returns its response, nil for a notification.
func (p *Plane) one(ctx context.Context, raw []byte) []byte {
	var m jsonrpc.Message
	if err := m.Parse(raw); err != nil || m.Method == "" {
		return jsonrpc.AppendError(nil, m.ID, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "not a JSON-RPC 2.0 request whose params are an object"})
	}
	result, err := p.call(ctx, auth.FromContext(ctx), m.Method, m.Params.Raw())
	if m.IsNotification() {
		return nil
	}
	if err != nil {
		return jsonrpc.AppendError(nil, m.ID, p.rpcError(err))
	}
	out, err := json.Marshal(result)
	if err != nil {
		return jsonrpc.AppendError(nil, m.ID, p.rpcError(err))
	}
	return jsonrpc.AppendResult(nil, m.ID, out)
}

// rpcError says what a caller is told of an error.
func (p *Plane) rpcError(err error) *jsonrpc.Error {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*invokeError](err); ok {
		return &jsonrpc.Error{Code: e.code, Message: e.text}
	}
	if e, ok := errors.AsType[*wire.Problem](err); ok {
		code := e.Code
		if code == 0 {
			code = codeParams
		}
		return &jsonrpc.Error{Code: code, Message: e.Reason}
	}
	switch {
	case errors.Is(err, auth.ErrForbidden):
		return &jsonrpc.Error{Code: codeForbidden, Message: err.Error()}
	case errors.Is(err, control.ErrUnavailable):
		p.cfg.Log.Error().Err(err).Msg("a change could not be written")
		return &jsonrpc.Error{Code: codeUnavailable, Message: "bridge_unavailable"}
	}
	p.cfg.Log.Error().Err(err).Msg("a call failed")
	return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "internal error; yaya's log has the details"}
}

func params(raw []byte, v any) error {
	if raw == nil {
		raw = []byte("{}")
	}
	if err := httpbody.Unmarshal(raw, v); err != nil {
		return &jsonrpc.Error{Code: codeParams, Message: err.Detail}
	}
	return nil
}

// call is one method.
func (p *Plane) call(ctx context.Context, who auth.Principal, method string, raw []byte) (any, error) {
	switch method {
	case "agent.spawn":
		return p.spawn(ctx, who, raw)
	case "agent.kill":
		return p.kill(ctx, who, raw)
	case "agent.get":
		return p.get(who, raw)
	case "cluster.status":
		if err := auth.Allow(who, auth.AgentsRead); err != nil {
			return nil, err
		}
		return p.Status(), params(raw, &struct{}{})
	case "kernel.list":
		if err := auth.Allow(who, auth.AgentsRead); err != nil {
			return nil, err
		}
		return map[string]any{"kernels": p.list(time.Now())}, params(raw, &struct{}{})
	case "skill.invoke":
		var in Invocation
		if err := params(raw, &in); err != nil {
			return nil, err
		}
		return p.Invoke(ctx, who, in)
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "there is no method " + cut(method)}
}

// spawn is agent.spawn (W-53): a new session of this kernel. context.prompt, if it
// is there, is its first message.
func (p *Plane) spawn(ctx context.Context, who auth.Principal, raw []byte) (any, error) {
	if err := auth.Allow(who, auth.SessionsWrite); err != nil {
		return nil, err
	}
	var in struct {
		Skill   string         `json:"skill"`
		Context map[string]any `json:"context"`
	}
	if err := params(raw, &in); err != nil {
		return nil, err
	}
	if in.Skill == "" {
		in.Skill = chatSkill
	}
	prompt, _ := in.Context["prompt"].(string)
	if len(in.Skill) > maxSkill {
		return nil, &jsonrpc.Error{Code: codeParams, Message: "the skill's name is too long"}
	}
	id := "sess_" + rand.Text()
	if err := p.run.begin(who, id); err != nil {
		return nil, err
	}
	meta := map[string]any{"spawned_by": who.Actor()}
	if err := p.enrol(ctx, who.Actor(), id, in.Skill, meta); err != nil {
		return nil, err
	}
	out := map[string]any{"id": id, "kernel_id": p.cfg.KernelID}
	if prompt != "" {
		a, err := p.run.Loop.Submit(ctx, loop.Prompt{SessionID: id, Text: prompt})
		if err != nil {
			return nil, err
		}
		out["turn_id"] = a.TurnID
	}
	return out, nil
}

func noAgent(id string) error {
	return &jsonrpc.Error{Code: codeNotFound, Message: "there is no agent " + cut(id)}
}

// kill is agent.kill (W-54): its turn ends, and it is no agent any more. Its
// history stays.
func (p *Plane) kill(ctx context.Context, who auth.Principal, raw []byte) (any, error) {
	if err := auth.Allow(who, auth.AgentsKill); err != nil {
		return nil, err
	}
	var in struct {
		ID     string `json:"id"`
		Reason string `json:"reason"`
	}
	if err := params(raw, &in); err != nil {
		return nil, err
	}
	a, ok := p.agents.Get(in.ID)
	if !ok {
		return nil, noAgent(in.ID)
	}
	_, err := p.append(ctx, evKilled, who.Actor(), in.ID, killed{cut(in.Reason)}, func() error {
		if _, ok := p.agents.Get(in.ID); !ok {
			return noAgent(in.ID)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if a.KernelID == p.cfg.KernelID {
		p.run.Loop.Cancel(in.ID)
	} else {
		p.tell(a.KernelID, wire.Event{Name: "kill_agent", Payload: registry.KillAgent{Type: "kill_agent", ID: in.ID, Reason: in.Reason, Time: stamp(time.Now())}})
	}
	return map[string]any{"id": in.ID, "killed": true}, nil
}

// tell sends an event to an attached kernel, if it is there.
func (p *Plane) tell(kernel string, e wire.Event) {
	p.mu.Lock()
	var send func(wire.Event)
	if k := p.kernels[kernel]; k != nil {
		send = k.send
	}
	p.mu.Unlock()
	if send != nil {
		send(e)
	}
}

// get is agent.get (W-55).
func (p *Plane) get(who auth.Principal, raw []byte) (any, error) {
	if err := auth.Allow(who, auth.AgentsRead); err != nil {
		return nil, err
	}
	var in struct {
		ID string `json:"id"`
	}
	if err := params(raw, &in); err != nil {
		return nil, err
	}
	a, ok := p.agents.Get(in.ID)
	if !ok {
		return nil, noAgent(in.ID)
	}
	return a, nil
}
