package downstream

import (
	"bytes"
	"context"

	"github.com/yaya-ai/yaya/kernel/tool"
)

// runScope is the scope that giving tasks to agents needs: the same as on every other surface.
const runScope = "sessions:write"

// OfferRun offers clients the tool that gives tasks to agents, [tool.RunTool]. The tool is in no
// registry, so that agents do not see it. Call it before the first client comes.
func (s *Server) OfferRun(t tool.Tool) { s.agents.Store(&t) }

// runTool returns the tool that gives tasks to agents if the client of a request is offered it. A
// caller that is limited to some servers, or is one, has none of yaya's own.
func (s *Server) runTool(x *exchange) tool.Tool {
	t := s.agents.Load()
	if t == nil || len(x.caller.Servers) > 0 || x.caller.But != "" || x.caller.Via != "" || !x.caller.May(runScope) || !x.profile.named(tool.RunTool) {
		return nil
	}
	return *t
}

// appendRun adds the tool to a list of tools, which ends with a bracket.
func (s *Server) appendRun(list []byte, t tool.Tool) ([]byte, error) {
	list = bytes.TrimSuffix(list, []byte{']'})
	if list[len(list)-1] != '[' {
		list = append(list, ',')
	}
	list, err := appendTool(list, t.Definition())
	return append(list, ']'), err
}

// callRun calls the tool, which is governed like those in the registry.
func (s *Server) callRun(ctx context.Context, x *exchange, t tool.Tool) ([]byte, error) {
	call := x.call(tool.RunTool, x.msg.Params)
	res := s.cfg.Dispatcher.Run(ctx, t, call)
	x.ran(s.cfg.Registry.Snapshot(), &call, &res)
	if ctx.Err() != nil && res.ErrorKind == tool.ErrCancelled {
		return nil, errNoAnswer
	}
	return renderResult(res, x.modern)
}

// scope returns the scope that a server of yaya's own needs, "" for other servers.
func (s *Server) scope(server string) string {
	if s.cfg.Scope == nil {
		return ""
	}
	return s.cfg.Scope(server)
}

// may reports whether a caller has the scope that a server of yaya's own needs.
func (s *Server) may(who tool.Caller, server string) bool {
	scope := s.scope(server)
	return scope == "" || who.May(scope)
}

// shows reports whether the client of a request sees a server.
func (s *Server) shows(x *exchange, server string) bool {
	return x.profile.server(server) && s.may(x.caller, server)
}

// Profile returns the name of the profile that the client has come through.
func (x *exchange) Profile() string { return x.profile.path }

// Sees returns which tools a caller may use through a profile, by the present configuration. Those
// that only agents have count by their names.
func (s *Server) Sees(profile string, who tool.Caller) (func(*tool.Definition) bool, error) {
	p, err := s.profile(profile, who)
	if err != nil {
		return nil, err
	}
	return func(def *tool.Definition) bool { return p.server(def.Identity.Provider) && p.named(def.Name) }, nil
}
