package admin

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/registry"
	"github.com/yaya-ai/yaya/gateway/rpc"
)

// Cluster is who works together, and how well.
type Cluster struct {
	Agents  []registry.Agent `json:"agents"`
	Kernels []rpc.KernelInfo `json:"kernels"`
	Status  rpc.Status       `json:"status"`
	Present []string         `json:"present" doc:"the devices that are connected"`
}

// Setup says how to begin with this yaya.
type Setup struct {
	Version   string    `json:"version"`
	URL       string    `json:"url" doc:"where this yaya listens"`
	MCP       string    `json:"mcp_url"`
	Remote    bool      `json:"remote" doc:"other machines can reach it"`
	Workspace string    `json:"workspace" doc:"the folder that sessions work in unless they name one"`
	Done      bool      `json:"done" doc:"somebody has been through it"`
	Snippets  []Snippet `json:"snippets"`
}

// Snippet connects a client with this yaya.
type Snippet struct {
	Client string `json:"client"`
	Where  string `json:"where" doc:"what to do with the text"`
	Text   string `json:"text"`
}

// Identity is who the caller is to this yaya.
type Identity struct {
	Kind   string       `json:"kind" enum:"owner,device"`
	ID     string       `json:"id"`
	Scopes []auth.Scope `json:"scopes"`
}

func (a *API) registryRoutes(api huma.API) {
	r := routes{a, api, "registry", a.cfg.Plane != nil, "registry of agents"}
	handle(r, "GET", "/api/cluster", "cluster", auth.AgentsRead, "Agents, kernels, and how the cluster is", http.StatusOK, func(context.Context, *none) (*struct{ Body Cluster }, error) {
		return &struct{ Body Cluster }{Cluster{a.cfg.Plane.Agents(), a.cfg.Plane.Kernels(), a.cfg.Plane.Status(), a.cfg.Plane.Present()}}, nil
	})
	r.have, r.what = a.cfg.Live != nil, "metrics"
	handle(r, "GET", "/api/metrics", "metrics", auth.MetricsRead, "How this yaya was doing, the last half hour", http.StatusOK, func(context.Context, *none) (*struct{ Body []Reading }, error) {
		return &struct{ Body []Reading }{a.cfg.Live.Readings()}, nil
	})
	r.have, r.what = a.cfg.Setup != nil, "set-up"
	handle(r, "GET", "/api/setup", "setup", auth.ConfigRead, "How to begin: what to paste into which client", http.StatusOK, func(context.Context, *none) (*struct{ Body Setup }, error) {
		return &struct{ Body Setup }{a.cfg.Setup()}, nil
	})
	r.tag, r.have = "identity", true
	handle(r, "GET", "/api/me", "me", auth.SessionsRead, "Who the caller is, and what it may do", http.StatusOK, func(ctx context.Context, _ *none) (*struct{ Body Identity }, error) {
		p := auth.FromContext(ctx)
		kind := "device"
		switch p.Kind {
		case auth.Owner:
			kind = "owner"
		case auth.Lasting:
			kind = "token"
		case auth.Anonymous, auth.Device, auth.External:
		}
		return &struct{ Body Identity }{Identity{kind, p.ID, p.Scopes()}}, nil
	})
}
