package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
)

const (
	maxTitle       = 200      // bytes
	maxDescribed   = 16 << 10 // bytes of a tool's description
	maxBlocksTaken = 1024

	// servers stands between a server and its tool in the name that both have together. A plugin
	// with such a name would get the calls of a server that starts later.
	servers = "__"
)

// remoteTool is a tool of a plugin. It calls the plugin of its name that is loaded at the
// time: a turn that began before a reload goes on with the new one.
type remoteTool struct {
	current *Current
	def     tool.Definition
}

// checkTool returns an error about a tool that no kernel offers, whatever other tools there are.
func checkTool(t Tool) error {
	switch {
	case len(t.Title) > maxTitle:
		return fmt.Errorf("tool %.80q: its title has %d bytes, and a title has at most %d", t.Name, len(t.Title), maxTitle)
	case len(t.Description) > maxDescribed:
		return fmt.Errorf("tool %.80q: its description has %d bytes, and a description has at most %d", t.Name, len(t.Description), maxDescribed)
	case strings.Contains(t.Name, servers):
		return fmt.Errorf("tool %.80q: names with %s are those of the tools of MCP servers", t.Name, servers)
	case t.TimeoutMS < 0 || t.TimeoutMS > maxTimeout.Milliseconds():
		return fmt.Errorf("tool %.80q: timeout_ms is not between 0 and %d", t.Name, maxTimeout.Milliseconds())
	}
	return tool.CheckDefinition(t.definition())
}

// definition is the tool as yaya offers it.
func (t *Tool) definition() tool.Definition {
	return tool.Definition{
		Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema,
		Kind: tool.Kind(t.Kind), RequiresApproval: t.RequiresApproval, Timeout: time.Duration(t.TimeoutMS) * time.Millisecond,
	}
}

// Definition implements [tool.Tool].
func (t *remoteTool) Definition() tool.Definition { return t.def }

// ObeysContext implements [tool.Obedient].
func (*remoteTool) ObeysContext() {}

// Invoke implements [tool.Tool].
func (t *remoteTool) Invoke(ctx context.Context, call tool.Call) (tool.Result, error) {
	return t.current.p.Load().invoke(ctx, call)
}

func (p *Plugin) invoke(ctx context.Context, call tool.Call) (tool.Result, error) {
	name := p.cfg.Description.Name
	select {
	case p.calls <- struct{}{}:
		defer func() { <-p.calls }()
	default:
		return tool.Fail(tool.ErrUnavailable, "plugin %s: %d calls are running; try again later", name, MaxCalls), nil
	}
	cn, err := p.connected(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return tool.Result{}, ctx.Err()
		}
		return tool.Fail(tool.ErrUnavailable, "plugin %s: %v", name, err), nil
	}
	var began int64
	defer func() { cn.ended(began) }()
	deadline, _ := ctx.Deadline()
	raw, err := cn.call(ctx, MethodToolCall, CallParams{
		CallID: call.ID, Name: call.Name, Args: call.Args, SessionID: call.SessionID, TurnID: call.Turn, DeadlineMS: max(time.Until(deadline).Milliseconds(), 0),
	}, func(id int64) {
		began = id
		cn.begin(id, reporter(call))
	})
	if lost, ok := errors.AsType[*lostError](err); ok {
		return tool.Fail(tool.ErrCrashed, "plugin %s: %v; the call may or may not have taken effect", name, lost), nil
	}
	if failed, ok := errors.AsType[*jsonrpc.Error](err); ok {
		p.succeeded()
		return tool.Fail(tool.ErrTool, "%s", failed.Message), nil
	}
	if err != nil {
		if ctx.Err() != nil {
			return tool.Result{}, ctx.Err()
		}
		return tool.Fail(tool.ErrUnavailable, "plugin %s: %v", name, err), nil
	}
	p.succeeded()
	res, err := taken(raw)
	if err != nil {
		return tool.Fail(tool.ErrTool, "plugin %s: the result of %s: %v", name, call.Name, err), nil
	}
	return res, nil
}

// reporter passes the progress of a call on.
func reporter(call tool.Call) func(ProgressParams) {
	if call.Progress == nil {
		return nil
	}
	return func(g ProgressParams) {
		call.Progress(tool.Progress{Progress: g.Progress, Total: g.Total, Message: oneLine(g.Message)})
	}
}

// failures are the kinds of failure that a plugin may name.
var failures = []tool.ErrorKind{tool.ErrTool, tool.ErrValidation, tool.ErrNotFound, tool.ErrRejected, tool.ErrTimeout, tool.ErrUnavailable, tool.ErrInternal}

// taken reads the result of a call.
func taken(raw json.RawMessage) (tool.Result, error) {
	var r CallResult
	if err := json.Unmarshal(raw, &r); err != nil {
		return tool.Result{}, err
	}
	if len(r.Display) > maxBlocksTaken {
		return tool.Result{}, fmt.Errorf("more than %d blocks", maxBlocksTaken)
	}
	res := tool.Result{OK: r.OK, Brief: tool.Brief(r.Brief), Structured: present(r.Structured)}
	if !r.OK {
		res.Detail = present(r.Detail)
		if res.ErrorKind = tool.ErrorKind(r.ErrorKind); !slices.Contains(failures, res.ErrorKind) {
			res.ErrorKind = tool.ErrTool
		}
	}
	for _, b := range r.Display {
		switch tool.BlockKind(b.Kind) {
		case tool.BlockMarkdown:
			res.Display = append(res.Display, tool.Markdown(b.Markdown))
		case tool.BlockJSON:
			res.Display = append(res.Display, tool.JSON(b.Data))
		case tool.BlockText:
			res.Display = append(res.Display, tool.Text(b.Text))
		default:
			return tool.Result{}, fmt.Errorf("a block of the unknown kind %.40q", b.Kind)
		}
	}
	if res.Display == nil && res.Structured != nil {
		res.Display = []tool.Block{tool.JSON(res.Structured)}
	}
	if res.Brief == "" && len(res.Display) > 0 {
		res.Brief = tool.Brief(res.Display[0].Content())
	}
	return res, nil
}

// present returns nil for a value that is null.
func present(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}
