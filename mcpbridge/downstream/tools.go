package downstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/intake"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// view is a snapshot in the form for clients, rendered once.
type view struct {
	snap   *tool.Snapshot
	legacy *rendered            // result of tools/list
	modern *rendered            // with the members of the modern era
	run    atomic.Pointer[view] // with the tool that gives tasks to agents; made when it is first listed
	typed  map[string]*mcp.Tool // tools with parameters in headers, by name
	index  func() *index        // made by the first search
}

// render returns the view of a snapshot in a profile; it rebuilds the view only if the snapshot
// has changed.
func (s *Server) render(p *profile, snap *tool.Snapshot) (*view, error) {
	if v := p.view.Load(); v != nil && v.snap == snap {
		return v, nil
	}
	v := &view{snap: snap, typed: map[string]*mcp.Tool{}}
	list := []byte(`"tools":[`)
	var seen []*tool.Entry
	for e := range snap.All() {
		if p.tool(&e.Def) {
			seen = append(seen, e)
		}
	}
	// Each server's tools keep the server's order.
	slices.SortStableFunc(seen, func(a, b *tool.Entry) int {
		return cmp.Or(strings.Compare(a.Def.Identity.Provider, b.Def.Identity.Provider), cmp.Compare(a.Rank, b.Rank))
	})
	for _, e := range seen {
		if list[len(list)-1] != '[' {
			list = append(list, ',')
		}
		var err error
		if list, err = appendTool(list, e.Def); err != nil {
			return nil, err
		}
		if bytes.Contains(e.Def.InputSchema, []byte("x-mcp-header")) {
			v.typed[e.Def.Name] = &mcp.Tool{Name: e.Def.Name, RawInputSchema: e.Def.InputSchema}
		}
	}
	list = append(list, ']')
	v.index = sync.OnceValue(func() *index { return newIndex(seen) })
	if p.Search {
		list = []byte(`"tools":` + searchTools)
		clear(v.typed)
	}
	s.dress(v, list)
	p.view.Store(v)
	return v, nil
}

// dress renders a view's list for both eras.
func (s *Server) dress(v *view, list []byte) {
	v.legacy = newRendered(append(append([]byte{'{'}, list...), '}'))
	modern := append([]byte(`{"resultType":"complete",`), list...)
	v.modern = newRendered(append(s.appendServerMeta(appendCacheHints(modern)), '}'))
}

// withRun returns the view of those who are offered the tool that gives tasks to agents, too.
func (v *view) withRun(s *Server, t tool.Tool) (*view, error) {
	if run := v.run.Load(); run != nil {
		return run, nil
	}
	list, err := s.appendRun(bytes.Clone(v.legacy.plain[1:len(v.legacy.plain)-1]), t)
	if err != nil {
		return nil, err
	}
	run := new(view)
	s.dress(run, list)
	v.run.Store(run)
	return run, nil
}

// appendTool appends a tool in MCP's form. A bridged tool has its server's own definition, with
// the registered name.
func appendTool(dst []byte, def tool.Definition) ([]byte, error) {
	name := jsonrpc.AppendString(nil, def.Name)
	if def.Native != nil {
		obj, err := jsonrpc.ParseObject(def.Native)
		if err != nil {
			return nil, err
		}
		return obj.Append(dst, jsonrpc.Edit{Name: "name", Value: name}), nil
	}
	out, err := json.Marshal(struct {
		Name         json.RawMessage `json:"name"`
		Title        string          `json:"title,omitempty"`
		Description  string          `json:"description,omitempty"`
		InputSchema  json.RawMessage `json:"inputSchema"`
		OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
		Annotations  json.RawMessage `json:"annotations,omitempty"`
	}{name, def.Title, def.Description, def.InputSchema, def.OutputSchema, def.Annotations})
	if err != nil {
		return nil, err
	}
	return append(dst, out...), nil
}

func (s *Server) listTools(ctx context.Context, x *exchange) ([]byte, error) {
	if c := x.msg.Params.Get("cursor"); c != nil && string(c) != "null" {
		return nil, fail(jsonrpc.CodeInvalidParams, "unknown cursor: the list has one page")
	}
	v, err := s.render(x.profile, s.cfg.Boundary(ctx))
	if err != nil {
		return nil, err
	}
	if t := s.runTool(x); t != nil {
		v, err = v.withRun(s, t)
	}
	if err != nil {
		return nil, err
	}
	x.list = v.legacy
	if x.modern {
		x.list = v.modern
	}
	return x.list.plain, nil
}

// known reports whether a client can call a tool with that name.
func (x *exchange) known(snap *tool.Snapshot, name string) bool {
	e, ok := snap.Lookup(name)
	return ok && x.profile.tool(&e.Def)
}

// withheld returns the reason why a tool that the client would see cannot be called, "" for
// other names.
func (x *exchange) withheld(snap *tool.Snapshot, name string) string {
	if w, ok := snap.Withheld(name); ok && x.profile.tool(&w.Def) {
		return w.Why
	}
	return ""
}

// absent returns the server of a tool whose server does not run, and the reason; "" if the
// client would not see the tool, or for other names.
func (s *Server) absent(x *exchange, name string) (server, why string) {
	if s.cfg.Absent == nil || !x.profile.named(name) {
		return "", ""
	}
	server, why = s.cfg.Absent(name, x.caller)
	if server == "" || !x.profile.server(server) {
		return "", ""
	}
	return server, why
}

// unavailable answers a call of a tool whose server does not run, and records that.
func (x *exchange) unavailable(server, name, why string) ([]byte, error) {
	x.served(server, name, name)
	x.passed.failed, x.passed.outcome, x.passed.brief = true, tool.ErrUnavailable, tool.Brief(why)
	return x.textResult(why, nil, true)
}

// unknownTool answers like the official SDKs: with a result for the model in the legacy era,
// with a protocol error in the modern one.
func (x *exchange) unknownTool(name string) ([]byte, error) {
	e := fail(jsonrpc.CodeInvalidParams, "unknown tool %q", clip(name))
	if x.modern {
		return nil, e
	}
	return x.textResult(e.Message, nil, true)
}

// callTool serves tools/call.
func (s *Server) callTool(ctx context.Context, x *exchange) ([]byte, error) {
	snap := s.cfg.Registry.Snapshot()
	name, ok := toolName(snap, x.msg.Params.Get("name"))
	if !ok {
		return nil, fail(jsonrpc.CodeInvalidParams, "tools/call needs a name")
	}
	args := x.msg.Params.Get("arguments")
	if args != nil && args[0] != '{' {
		return nil, fail(jsonrpc.CodeInvalidParams, "arguments must be an object")
	}
	if name == tool.RunTool {
		if t := s.runTool(x); t != nil {
			return s.callRun(ctx, x, t)
		}
	}
	if x.profile.Search {
		return s.bySearch(ctx, x, name, args)
	}
	if !x.known(snap, name) {
		// Its server may be in its first start, or the client may have its list from before a
		// restart of yaya.
		if snap = s.cfg.Boundary(ctx); ctx.Err() != nil {
			return nil, errNoAnswer
		}
		if !x.known(snap, name) {
			if why := x.withheld(snap, name); why != "" {
				return x.textResult(why, nil, true)
			}
			if server, why := s.absent(x, name); server != "" {
				return x.unavailable(server, name, why)
			}
			return x.unknownTool(name)
		}
	}
	if err := s.checkParamHeaders(snap, name, x); err != nil {
		return nil, err
	}
	return s.relayCall(ctx, x, snap, name, x.msg.Params)
}

// toolName returns the name in a raw string; most need no memory.
func toolName(snap *tool.Snapshot, raw []byte) (string, bool) {
	if len(raw) > 2 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		return snap.Name(raw[1 : len(raw)-1]), true
	}
	return jsonrpc.AsString(raw)
}

// call returns the request as a call of a tool.
func (x *exchange) call(name string, params jsonrpc.Object) tool.Call {
	x.native = tool.NativeCall{Protocol: "mcp", Params: params, Peer: x}
	var id [24]byte
	call := tool.Call{
		ID:   string(strconv.AppendUint(append(id[:0], "call_"...), x.c.calls.Add(1), 36)),
		Name: name, Args: params.Get("arguments"), SessionID: x.c.session, Origin: x.origin, Caller: x.caller,
		Native: &x.native,
	}
	if token := progressToken(params); token != nil {
		call.Progress = func(p tool.Progress) {
			if msg, err := progressNote(token, p); err == nil {
				_ = x.tell(msg) // ctx ends if the client goes away
			}
		}
	}
	return call
}

// relayCall relays one call through the dispatcher.
func (s *Server) relayCall(ctx context.Context, x *exchange, snap *tool.Snapshot, name string, params jsonrpc.Object) ([]byte, error) {
	call := x.call(name, params)
	res := s.cfg.Dispatcher.Call(ctx, snap, call)
	x.ran(snap, &call, &res)
	if ctx.Err() != nil && res.ErrorKind == tool.ErrCancelled {
		return nil, errNoAnswer
	}
	if n := res.Native; n != nil {
		x.buf = n.Buffer
		if n.Error != nil {
			return nil, &jsonrpc.Error{Raw: n.Error}
		}
		if x.modern && string(n.Result.Get("resultType")) == `"task"` {
			e, _ := snap.Lookup(name)
			s.hasMade(x, e.Def.Identity.Provider, n.Result)
			return s.renameTask(e.Def.Identity.Provider, n.Result), nil
		}
		result := x.complete(n.Result)
		x.copied(result)
		return result, nil
	}
	if res.ErrorKind == tool.ErrNotFound {
		return x.unknownTool(name)
	}
	return renderResult(res, x.modern)
}

// space returns memory for n bytes of a result that derives from another one: from the budget,
// if it is large.
func (x *exchange) space(n int) []byte {
	if n <= intake.Small {
		return make([]byte, 0, n)
	}
	x.spare = bufpool.Get(n)
	return x.spare.B
}

// copied records that a result may have been copied into memory from [exchange.space]: then the
// copy counts, and the server's original is released.
func (x *exchange) copied(result []byte) {
	spare := x.spare
	if x.spare = nil; spare == nil || x.buf == nil || len(result) == 0 || cap(spare.B) == 0 || &result[0] != &spare.B[:1][0] {
		return
	}
	spare.B = result
	x.buf.HandOver(spare)
	x.buf = spare
}

// checkParamHeaders compares Mcp-Param-* headers with the arguments that they mirror
// (SEP-2243).
func (s *Server) checkParamHeaders(snap *tool.Snapshot, name string, x *exchange) error {
	if !x.modern || x.header == nil {
		return nil
	}
	v, err := s.render(x.profile, snap)
	if err != nil {
		return err
	}
	t := v.typed[name]
	if t == nil {
		return nil
	}
	if err := mcp.ValidateParamHeadersLookup(x.header, t, x.msg.Params.Raw()); err != nil {
		return fail(mcp.HEADER_MISMATCH, "%v", err)
	}
	return nil
}

func progressToken(params jsonrpc.Object) []byte {
	raw := params.Get("_meta")
	if raw == nil || raw[0] != '{' {
		return nil
	}
	meta, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return nil
	}
	token := meta.Get("progressToken")
	if token == nil || (token[0] != '"' && token[0] != '-' && (token[0] < '0' || token[0] > '9')) {
		return nil
	}
	return token
}

// progressNote returns a progress notification for the client: the server's own, with the
// client's token, or one built from the progress of a built-in tool.
func progressNote(token []byte, p tool.Progress) ([]byte, error) {
	params := p.Native
	if params == nil {
		var err error
		params, err = json.Marshal(struct {
			Progress float64  `json:"progress"`
			Total    *float64 `json:"total,omitempty"`
			Message  string   `json:"message,omitempty"`
		}{p.Progress, p.Total, p.Message})
		if err != nil {
			return nil, err
		}
	}
	obj, err := jsonrpc.ParseObject(params)
	if err != nil {
		return nil, err
	}
	out := obj.Append(nil, jsonrpc.Edit{Name: "progressToken", Value: token})
	return jsonrpc.AppendRequest(nil, nil, noteProgress, out), nil
}

// renderResult converts a result of the host to a tool result. Failures become tool errors,
// which a model can read and act upon.
func renderResult(res tool.Result, modern bool) ([]byte, error) {
	type text struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	content := make([]text, 0, len(res.Display))
	for _, b := range res.Display {
		content = append(content, text{"text", b.Content()})
	}
	resultType := ""
	if modern {
		resultType = "complete"
	}
	structured := res.Structured
	if !bytes.HasPrefix(structured, []byte("{")) && !modern {
		structured = nil // legacy clients accept only objects
	}
	out, err := json.Marshal(struct {
		ResultType        string          `json:"resultType,omitempty"`
		Content           []text          `json:"content"`
		StructuredContent json.RawMessage `json:"structuredContent,omitempty"`
		IsError           bool            `json:"isError,omitempty"`
	}{resultType, content, structured, !res.OK})
	if err != nil {
		return nil, errors.New("a tool's structured result is malformed")
	}
	return out, nil
}
