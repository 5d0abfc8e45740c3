package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/traffic"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// passage collects facts about a call on its way, for the record of calls.
type passage struct {
	server, tool string
	name         string // the name that the client used
	args         []byte
	outcome      tool.ErrorKind
	brief        string
	failed       bool
	approved     bool
}

// served records which server a request goes to, and which of its items it names.
func (x *exchange) served(server, own, name string) {
	x.passed.server, x.passed.tool, x.passed.name = server, own, name
}

// ran records the outcome of a tool call.
func (x *exchange) ran(snap *tool.Snapshot, call *tool.Call, res *tool.Result) {
	p := &x.passed
	p.tool, p.name, p.args = call.Name, call.Name, call.Args
	if e, ok := snap.Lookup(call.Name); ok {
		p.server, p.tool = e.Def.Identity.Provider, e.Def.Identity.Tool
	}
	p.failed, p.outcome, p.approved = !res.OK, res.ErrorKind, res.Approved
	if n := res.Native; res.OK && n != nil && string(n.Result.Get("isError")) == "true" { // in the server's words
		p.failed, p.outcome, p.brief = true, tool.ErrTool, firstText(n.Result.Get("content"))
		return
	}
	if p.failed {
		p.brief = res.Brief
	}
}

// firstText returns the first text of a result that is an error.
func firstText(content []byte) string {
	var items []struct {
		Text string `json:"text"`
	}
	if len(content) > 64<<10 || json.Unmarshal(content, &items) != nil {
		return ""
	}
	for _, it := range items {
		if it.Text != "" {
			return tool.Brief(it.Text)
		}
	}
	return ""
}

// recorded wraps work so that its outcome goes into the record of calls.
func (s *Server) recorded(work func(context.Context, *exchange) ([]byte, error)) func(context.Context, *exchange) ([]byte, error) {
	if s.cfg.Traffic == nil {
		return work
	}
	return func(ctx context.Context, x *exchange) ([]byte, error) {
		start := time.Now()
		result, err := work(ctx, x)
		s.record(x, start, result, err)
		return result, err
	}
}

func (s *Server) record(x *exchange, start time.Time, result []byte, err error) {
	p := &x.passed
	parent, _ := x.traceOf()
	c := traffic.Call{
		Start: start, Took: time.Since(start), Origin: string(x.origin), Client: x.introduction(), Principal: x.caller.Principal, Session: x.c.session,
		Method: clip(x.msg.Method), Server: p.server, Tool: p.tool, Name: p.name, Outcome: traffic.OutcomeOK, Error: p.brief, Approved: p.approved,
		Trace: parent, Arguments: p.args, Result: result,
	}
	nowhere := c.Tool == ""
	if nowhere {
		c.Tool, _ = x.msg.Params.String("name")
		if c.Tool == "" {
			c.Tool, _ = x.msg.Params.String("uri")
		}
	}
	if c.Arguments == nil {
		c.Arguments = x.msg.Params.Get("arguments")
	}
	e, isError := errors.AsType[*jsonrpc.Error](err)
	switch {
	case errors.Is(err, errNoAnswer):
		c.Outcome, c.Error = string(tool.ErrCancelled), err.Error()
	case p.failed && p.outcome != "":
		c.Outcome = string(p.outcome)
	case nowhere && (isError || x.msg.Method == traffic.MethodTool && !x.profile.Search):
		c.Outcome = string(tool.ErrNotFound)
		if c.Tool == "" || x.msg.Method == traffic.MethodTool && x.known(s.cfg.Registry.Snapshot(), c.Tool) {
			c.Outcome = string(tool.ErrValidation)
		}
	case err != nil || p.failed:
		c.Outcome = traffic.OutcomeError
	}
	if isError {
		c.Error = tool.Brief(e.Message)
		if e.Raw != nil {
			c.Result, c.Error = e.Raw, tool.Brief(jsonrpc.ParseError(e.Raw).Message)
		}
	}
	s.cfg.Traffic.Add(&c)
}

// introduction returns the client's description of itself, nil if there is none.
func (x *exchange) introduction() []byte {
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	return x.c.info
}
