package rpc

import (
	"context"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/gateway/plane"
	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// method is one method of the plane.
type method struct {
	// scope is the scope that a caller needs; "" leaves the check to the plane. It is checked
	// before the params are read, which tell a stranger nothing.
	scope auth.Scope
	call  func(s *server, ctx context.Context, who auth.Principal, raw []byte) (any, error)
}

var methods = map[string]method{
	"agent.spawn":    {auth.SessionsWrite, (*server).spawn},
	"agent.kill":     {auth.AgentsKill, (*server).kill},
	"agent.get":      {auth.AgentsRead, (*server).get},
	"cluster.status": {auth.AgentsRead, (*server).status},
	"kernel.list":    {auth.AgentsRead, (*server).kernels},
	"skill.invoke":   {"", (*server).invoke}, // also a push on kernel:{id}: the plane asks
}

func (s *server) call(ctx context.Context, who auth.Principal, name string, raw []byte) (any, error) {
	m, ok := methods[name]
	if !ok {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "there is no method " + cut.Text(name, maxName)}
	}
	if m.scope != "" {
		if err := auth.Allow(who, m.scope); err != nil {
			return nil, err
		}
	}
	return m.call(s, ctx, who, raw)
}

func params(raw []byte, v any) error {
	if raw == nil {
		raw = []byte("{}")
	}
	if err := api.Unmarshal(raw, v); err != nil {
		return &jsonrpc.Error{Code: plane.CodeParams, Message: err.Message}
	}
	return nil
}

// spawn is agent.spawn: a new session of this kernel. context.prompt, if it
// is there, is its first message.
func (s *server) spawn(ctx context.Context, who auth.Principal, raw []byte) (any, error) {
	var in struct {
		Skill   string         `json:"skill"`
		Context map[string]any `json:"context"`
	}
	if err := params(raw, &in); err != nil {
		return nil, err
	}
	prompt, _ := in.Context["prompt"].(string)
	a, err := s.plane.Spawn(ctx, who, in.Skill, prompt)
	if err != nil {
		return nil, err
	}
	out := map[string]any{"id": a.ID, "kernel_id": a.KernelID}
	if prompt != "" {
		out["turn_id"] = a.TurnID
	}
	return out, nil
}

// kill is agent.kill.
func (s *server) kill(ctx context.Context, who auth.Principal, raw []byte) (any, error) {
	var in struct {
		ID     string `json:"id"`
		Reason string `json:"reason"`
	}
	if err := params(raw, &in); err != nil {
		return nil, err
	}
	if err := s.plane.Kill(ctx, who, in.ID, in.Reason); err != nil {
		return nil, err
	}
	return map[string]any{"id": in.ID, "killed": true}, nil
}

// get is agent.get.
func (s *server) get(_ context.Context, _ auth.Principal, raw []byte) (any, error) {
	var in struct {
		ID string `json:"id"`
	}
	if err := params(raw, &in); err != nil {
		return nil, err
	}
	return s.plane.Agent(in.ID)
}

// status is cluster.status.
func (s *server) status(_ context.Context, _ auth.Principal, raw []byte) (any, error) {
	return s.plane.Status(), params(raw, &struct{}{})
}

// kernels is kernel.list.
func (s *server) kernels(_ context.Context, _ auth.Principal, raw []byte) (any, error) {
	return map[string]any{"kernels": s.plane.Kernels()}, params(raw, &struct{}{})
}

// invoke is skill.invoke.
func (s *server) invoke(ctx context.Context, who auth.Principal, raw []byte) (any, error) {
	var in plane.Invocation
	if err := params(raw, &in); err != nil {
		return nil, err
	}
	return s.plane.Invoke(ctx, who, in)
}
