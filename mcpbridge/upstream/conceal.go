package upstream

import (
	"strings"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/masked"
)

// conceal implements [incoming].
func (s *session) conceal(msg []byte) []byte { return s.p.cfg.Secrets.ConcealJSON(msg) }

// concealed implements [incoming].
func (s *session) concealed(text string) string { return s.p.cfg.Secrets.ConcealString(text) }

// concealLog hides the rest of a secret that the server splits across several log messages.
func (s *session) concealLog(params []byte) []byte {
	if !s.p.cfg.Secrets.Declared() {
		return params
	}
	s.logMu.Lock()
	defer s.logMu.Unlock()
	if s.log == nil {
		s.log = s.p.cfg.Secrets.Joint()
	}
	return edited(params, "data", s.log.Next)
}

// concealProgress is concealLog for the progress of a request.
func (r *request) concealProgress(params []byte) []byte {
	s := r.s.p.cfg.Secrets
	if !s.Declared() {
		return params
	}
	if r.told == nil {
		r.told = s.Joint()
	}
	return edited(params, "message", r.told.Next)
}

// nextLine returns a line of output without secrets, even those that began in the lines before.
func nextLine(joint *masked.Joint, line string) string {
	return strings.TrimSuffix(joint.Next(line+"\n"), "\n")
}

// edited returns params with one string member changed.
func edited(params []byte, member string, next func(string) string) []byte {
	obj, err := jsonrpc.ParseObject(params)
	if err != nil {
		return params
	}
	had, ok := obj.String(member)
	if !ok {
		return params
	}
	now := next(had)
	if now == had {
		return params
	}
	return obj.Append(nil, jsonrpc.Edit{Name: member, Value: jsonrpc.AppendString(nil, now)})
}
