package downstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/toolsearch"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// The tools of a profile with search: five tools stand for hundreds. There are three tools for
// calls, so that a host's questions to its user keep their meaning.
const (
	searchTool      = "search_tools"
	describeTool    = "describe_tool"
	callRead        = "call_read_tool"
	callWrite       = "call_write_tool"
	callDestructive = "call_destructive_tool"
)

const searchTools = `[` +
	`{"name":"` + searchTool + `","title":"Search tools","description":"Finds the tools that fit what you want to do. Returns their names, what they do, and which of the three call tools each is called with.","inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"What you want to do, in a few words"},"limit":{"type":"integer","minimum":1,"maximum":50,"description":"How many tools to return, 10 by default"}},"required":["query"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}},` +
	`{"name":"` + describeTool + `","title":"Describe tool","description":"Returns the definition of a tool, with the schema of its arguments.","inputSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}},` +
	`{"name":"` + callRead + `","title":"Call a tool that reads","description":"Calls a tool that changes nothing.",` + callSchema + `,"annotations":{"readOnlyHint":true}},` +
	`{"name":"` + callWrite + `","title":"Call a tool that writes","description":"Calls a tool that adds something and destroys nothing.",` + callSchema + `,"annotations":{"readOnlyHint":false,"destructiveHint":false}},` +
	`{"name":"` + callDestructive + `","title":"Call a tool that may destroy","description":"Calls a tool that may change or destroy something.",` + callSchema + `,"annotations":{"readOnlyHint":false,"destructiveHint":true}}]`

const callSchema = `"inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"The tool's name, as found by ` + searchTool + `"},"arguments":{"type":"object","description":"The tool's arguments, as ` + describeTool + ` says"}},"required":["name"]}`

// caller returns the call tool for a tool, by the tool's annotations. These are claims of its
// server: they affect what a host asks its user, but not yaya's own rules.
func caller(def *tool.Definition) string {
	var a struct {
		ReadOnly    bool  `json:"readOnlyHint"`
		Destructive *bool `json:"destructiveHint"`
	}
	if len(def.Annotations) > 0 && json.Unmarshal(def.Annotations, &a) != nil {
		return callDestructive
	}
	switch {
	case a.ReadOnly:
		return callRead
	case a.Destructive != nil && !*a.Destructive:
		return callWrite
	}
	return callDestructive
}

// index finds the tools of a view by what they do.
type index struct {
	entries []*tool.Entry
	tools   *toolsearch.Index
}

func newIndex(entries []*tool.Entry) *index {
	tools := make([]toolsearch.Tool, 0, len(entries))
	for _, e := range entries {
		tools = append(tools, toolsearch.Tool{
			Server: e.Def.Identity.Provider, Name: cmp.Or(e.Def.Identity.Tool, e.Def.Name),
			Title: e.Def.Title, Description: e.Def.Description, Arguments: toolsearch.Arguments(e.Def.InputSchema),
		})
	}
	return &index{entries, toolsearch.New(tools)}
}

const (
	defaultHits = 10
	maxHits     = 50
	maxQuery    = 1 << 10
	briefLength = 300
)

// bySearch serves a call in a profile with search.
func (s *Server) bySearch(ctx context.Context, x *exchange, name string, args []byte) ([]byte, error) {
	switch name {
	case searchTool, describeTool, callRead, callWrite, callDestructive:
	default:
		return x.unknownTool(name)
	}
	var a struct {
		Query     string          `json:"query"`
		Limit     int             `json:"limit"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if len(args) > 0 {
		if err := json.Unmarshal(args, &a); err != nil {
			return x.textResult(fmt.Sprintf("the arguments are malformed: %v", err), nil, true)
		}
	}
	snap := s.cfg.Boundary(ctx)
	if ctx.Err() != nil {
		return nil, errNoAnswer
	}
	if name == searchTool {
		return s.search(ctx, x, snap, a.Query, a.Limit)
	}
	e, ok := snap.Lookup(a.Name)
	if !ok || !x.profile.tool(&e.Def) {
		if why := x.withheld(snap, a.Name); why != "" {
			return x.textResult(why, nil, true)
		}
		if server, why := s.absent(x, a.Name); server != "" {
			return x.unavailable(server, a.Name, why)
		}
		return x.textResult(fmt.Sprintf("there is no tool %q; use %s to find tools", clip(a.Name), searchTool), nil, true)
	}
	with := caller(&e.Def)
	if name == describeTool {
		def, err := appendTool(nil, e.Def)
		if err != nil {
			return nil, err
		}
		return x.textResult(string(def), append(append([]byte(`{"call_with":"`+with+`","definition":`), def...), '}'), false)
	}
	if name != with {
		return x.textResult(fmt.Sprintf("call %s with %s", e.Def.Name, with), nil, true)
	}
	if len(a.Arguments) == 0 || bytes.Equal(a.Arguments, []byte("null")) {
		a.Arguments = json.RawMessage("{}")
	}
	if a.Arguments[0] != '{' {
		return x.textResult("arguments must be an object", nil, true)
	}
	params, err := jsonrpc.ParseObject(x.msg.Params.Append(nil,
		jsonrpc.Edit{Name: "name", Value: jsonrpc.AppendString(nil, a.Name)}, jsonrpc.Edit{Name: "arguments", Value: a.Arguments}))
	if err != nil {
		return nil, err
	}
	return s.relayCall(ctx, x, snap, a.Name, params)
}

func (s *Server) search(ctx context.Context, x *exchange, snap *tool.Snapshot, query string, limit int) ([]byte, error) {
	if query == "" || len(query) > maxQuery {
		return x.textResult(fmt.Sprintf("%s needs a query of at most %d bytes", searchTool, maxQuery), nil, true)
	}
	v, err := s.render(x.profile, snap)
	if err != nil {
		return nil, err
	}
	type found struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		CallWith    string `json:"call_with"`
	}
	list := []found{}
	ix := v.index()
	for _, place := range s.cfg.Embeddings.Search(ctx, ix.tools, query, cmp.Or(min(max(limit, 0), maxHits), defaultHits)) {
		e := ix.entries[place]
		text := strings.Join(strings.Fields(cmp.Or(e.Def.Description, e.Def.Title)), " ")
		if r := []rune(text); len(r) > briefLength {
			text = string(r[:briefLength]) + "…"
		}
		list = append(list, found{e.Def.Name, text, caller(&e.Def)})
	}
	out, err := json.Marshal(struct {
		Tools []found `json:"tools"`
		Total int     `json:"total"`
	}{list, len(ix.entries)})
	if err != nil {
		return nil, err
	}
	return x.textResult(string(out), out, false)
}

// textResult returns a result with one text, and with structured content if there is any.
func (x *exchange) textResult(text string, structured json.RawMessage, failed bool) ([]byte, error) {
	res := tool.Result{OK: !failed, Display: []tool.Block{tool.Text(text)}, Structured: structured}
	return renderResult(res, x.modern)
}
