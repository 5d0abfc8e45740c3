package admin

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// callSession is the session of calls that the owner makes through the API; each other
// principal has a session of its own.
const callSession = event.BridgePrefix + "web-api-tools"

// Tool is a tool as the API shows it. Its texts and schemas are its provider's, and
// untrusted.
type Tool struct {
	Name             string          `json:"name"`
	Provider         string          `json:"provider" doc:"the server that has it; empty for yaya's own"`
	Tool             string          `json:"tool" doc:"its name there"`
	Title            string          `json:"title,omitempty"`
	Description      string          `json:"description"`
	Kind             string          `json:"kind"`
	RequiresApproval bool            `json:"requires_approval"`
	ForAgents        bool            `json:"for_agents" doc:"it cannot be called from here: it makes no sense without a conversation"`
	InputSchema      json.RawMessage `json:"input_schema"`
	Annotations      json.RawMessage `json:"annotations,omitempty"`
}

// Called is the result of a tool call.
type Called struct {
	tool.Envelope
	TookMS float64 `json:"took_ms"`
}

func (a *API) toolRoutes() {
	r := routes{a, "tools", a.cfg.Registry != nil && a.cfg.Dispatch != nil, "tools"}
	handle(r, "GET", "/api/tools", "listTools", api.For(auth.ConfigRead), "List the tools that are offered now", http.StatusOK, func(context.Context, *none) (*struct{ Body []Tool }, error) {
		out := []Tool{}
		for e := range a.cfg.Registry.Snapshot().All() {
			if e.Hidden {
				continue
			}
			d := e.Def
			out = append(out, Tool{
				Name: d.Name, Provider: d.Identity.Provider, Tool: d.Identity.Tool, Title: d.Title, Description: d.Description, Kind: string(d.Kind),
				RequiresApproval: d.RequiresApproval, ForAgents: d.ForAgents, InputSchema: d.InputSchema, Annotations: d.Annotations,
			})
		}
		return &struct{ Body []Tool }{out}, nil
	})
	handle(r, "GET", "/api/tools/search", "searchTools", api.For(auth.ConfigRead), "Find the offered tools that fit a few words, best first", http.StatusOK, func(ctx context.Context, in *struct {
		Query string `query:"q" required:"true" minLength:"1" maxLength:"1024" doc:"what somebody wants to do"`
		Limit int    `query:"limit" default:"50" minimum:"1" maximum:"200"`
	},
	) (*struct{ Body []string }, error) {
		return &struct{ Body []string }{a.found.search(ctx, a.cfg.Embeddings, a.cfg.Registry.Snapshot(), in.Query, in.Limit)}, nil
	})
	noted(r, "also needs `approvals:answer`", "POST", "/api/tools/{name}/call", "callTool", api.For(auth.ToolsCall), "Call a tool; the call counts as approved by its caller, who also needs approvals:answer", http.StatusOK, func(ctx context.Context, in *struct {
		Name string `path:"name" maxLength:"128"`
		Body struct {
			Arguments json.RawMessage `json:"arguments" doc:"an object, as the tool's input_schema says"`
		}
	},
	) (*struct{ Body Called }, error) {
		who := auth.FromContext(ctx)
		if err := auth.Allow(who, auth.ApprovalsAnswer); err != nil {
			return nil, err
		}
		id := "call_" + rand.Text()
		if _, known := a.cfg.Registry.Snapshot().Lookup(in.Name); known { // a call of another fails, and its name can be anything
			if err := a.audited(ctx, "tool_called", in.Name, map[string]string{"call": id}); err != nil {
				return nil, err
			}
		}
		start := time.Now()
		by := callerOf(who)
		res := a.cfg.Dispatch.Call(ctx, a.cfg.Registry.Snapshot(), tool.Call{ID: id, Name: in.Name, Args: in.Body.Arguments, SessionID: by.Session(callSession), Origin: tool.OriginAPI, Caller: by})
		return &struct{ Body Called }{Called{res.Envelope(), float64(time.Since(start).Microseconds()) / 1000}}, nil
	})
	r.have, r.what = a.cfg.Artifacts != nil, "artifacts"
	handle(r, "GET", "/api/tools/artifacts/{id}", "readCallArtifact", api.For(auth.ToolsCall), "Read stored output of a call, 64 KiB at a time", http.StatusOK, func(ctx context.Context, in *struct {
		ID     string `path:"id" maxLength:"128"`
		Offset int64  `query:"offset" minimum:"0"`
	},
	) (*struct{ Body artifactPart }, error) {
		buf := make([]byte, 64<<10)
		n, size, err := a.cfg.Artifacts.ReadAt(callerOf(auth.FromContext(ctx)).Session(callSession), in.ID, buf, in.Offset)
		if err != nil {
			return nil, api.Fail(http.StatusNotFound, "artifact not found")
		}
		return &struct{ Body artifactPart }{artifactPart{buf[:n], in.Offset, size}}, nil
	})
}

type artifactPart struct {
	Data   []byte `json:"data" doc:"base64"`
	Offset int64  `json:"offset"`
	Size   int64  `json:"size" doc:"bytes in all"`
}

func callerOf(p auth.Principal) tool.Caller {
	return tool.Caller{Principal: p.Name(), Has: p.Has, Servers: p.Servers()}
}
