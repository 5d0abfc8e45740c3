package admin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control/nodes"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/gateway/plane"
	"github.com/yaya-ai/yaya/gateway/plane/agents"
)

// Cluster is who works together, and how well.
type Cluster struct {
	Agents  []agents.Agent     `json:"agents"`
	Kernels []plane.KernelInfo `json:"kernels"`
	Status  plane.Status       `json:"status"`
	Behind  *int64             `json:"behind_ms,omitempty" doc:"for how long other nodes may have made changes that this one does not know of; missing if it has never heard of them"`
	Since   time.Time          `json:"quorum_since,omitzero" doc:"since when changes can be made, or cannot; missing if that has not changed since this yaya started"`
	Present []string           `json:"present" doc:"the devices that are connected"`
	Node    string             `json:"node,omitempty" doc:"this node's name; missing if this yaya is alone"`
	Members []Member           `json:"members,omitempty"`
}

// Member is a node of the cluster.
type Member struct {
	nodes.Member
	Devices []string `json:"devices,omitempty" doc:"that are connected to it"`
}

// JoinInvitation makes one yaya a node.
type JoinInvitation struct {
	Invitation string    `json:"invitation" doc:"one word, for yaya cluster join"`
	Expires    time.Time `json:"expires_at"`
}

// Setup says how to begin with this yaya.
type Setup struct {
	Version   string    `json:"version"`
	URL       string    `json:"url" doc:"where this yaya listens"`
	URLs      []string  `json:"urls" doc:"the same, and other names and addresses of it"`
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
	Kind   string       `json:"kind" enum:"owner,device,token"`
	ID     string       `json:"id"`
	Scopes []auth.Scope `json:"scopes"`
}

func (a *API) clusterRoutes() {
	r := routes{a, "cluster", a.cfg.Plane != nil, "control plane"}
	handle(r, "GET", "/api/cluster", "cluster", api.For(auth.AgentsRead), "List agents and kernels, with the state of the cluster", http.StatusOK, func(context.Context, *none) (*struct{ Body Cluster }, error) {
		all, _ := a.cfg.Plane.Agents()
		out := &struct{ Body Cluster }{Cluster{Agents: all, Kernels: a.cfg.Plane.Kernels(), Status: a.cfg.Plane.Status(), Present: a.cfg.Plane.Present()}}
		if n := a.cfg.Nodes; n != nil {
			out.Body.Node, out.Body.Since = n.Name(), a.cfg.Plane.QuorumSince()
			if behind, ok := a.cfg.Plane.Behind(); ok {
				out.Body.Behind = new(behind.Milliseconds())
			}
			at := a.cfg.Plane.PresentAt()
			for _, m := range n.Members() {
				out.Body.Members = append(out.Body.Members, Member{m, at[m.Kernel]})
			}
		}
		return out, nil
	})
	alone := api.Fail(http.StatusConflict, "this yaya is alone: yaya cluster init makes it the first node of a cluster")
	handle(r, "POST", "/api/cluster/invite", "inviteNode", api.OverSocket(), "Invite one yaya into the cluster", http.StatusCreated, func(ctx context.Context, in *struct {
		Body struct {
			URL string `json:"url" maxLength:"1024" doc:"where the other yaya reaches this one"`
		}
	},
	) (*struct{ Body JoinInvitation }, error) {
		if a.cfg.Nodes == nil {
			return nil, alone
		}
		if u, err := url.Parse(in.Body.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, api.Fail(http.StatusBadRequest, "%.200q is not the URL of a yaya, such as https://gate.example:8787", in.Body.URL)
		}
		i, err := a.cfg.Nodes.Invite(ctx, auth.FromContext(ctx).Actor(), in.Body.URL)
		return &struct{ Body JoinInvitation }{JoinInvitation{i.String(), i.Expires}}, err
	})
	handle(r, "POST", "/api/cluster/nodes/{name}/remove", "removeNode", api.OverSocket(), "Remove a node from the cluster", http.StatusNoContent, func(ctx context.Context, in *struct {
		Name string `path:"name" maxLength:"63"`
	},
	) (*none, error) {
		if a.cfg.Nodes == nil {
			return nil, alone
		}
		err := a.cfg.Nodes.Remove(ctx, auth.FromContext(ctx).Actor(), in.Name)
		if errors.Is(err, nodes.ErrUnknown) {
			return nil, api.Fail(http.StatusNotFound, "%v: %s", err, in.Name)
		}
		if errors.Is(err, nodes.ErrLast) {
			return nil, api.Fail(http.StatusConflict, "%v", err)
		}
		return nil, err
	})
	handle(r, "POST", "/api/cluster/nodes/{name}/drain", "drainNode", api.OverSocket(), "Have a node take no new MCP clients, or take them again", http.StatusNoContent, func(ctx context.Context, in *struct {
		Name string `path:"name" maxLength:"63"`
		Body struct {
			End bool `json:"end,omitempty" doc:"it takes them again"`
		}
	},
	) (*none, error) {
		if a.cfg.Nodes == nil {
			return nil, alone
		}
		err := a.cfg.Nodes.Drain(ctx, auth.FromContext(ctx).Actor(), in.Name, in.Body.End)
		if errors.Is(err, nodes.ErrUnknown) {
			return nil, api.Fail(http.StatusNotFound, "%v: %s", err, in.Name)
		}
		if errors.Is(err, nodes.ErrDrained) {
			return nil, api.Fail(http.StatusConflict, "%v", err)
		}
		return nil, err
	})
	r.have, r.what = a.cfg.Live != nil, "metrics"
	handle(r, "GET", "/api/metrics", "metrics", api.For(auth.MetricsRead), "Get metrics of the last half hour, or of a longer time with fewer readings, since yaya was started", http.StatusOK, func(_ context.Context, in *struct {
		Window string `query:"window" enum:"30m,24h,7d,30d" default:"30m"`
	},
	) (*struct{ Body []Reading }, error) {
		return &struct{ Body []Reading }{a.cfg.Live.Readings(in.Window)}, nil
	})
	r.have, r.what = a.cfg.Setup != nil, "setup"
	handle(r, "GET", "/api/setup", "setup", api.For(auth.ConfigRead), "Get first steps: the configuration to paste into each client", http.StatusOK, func(context.Context, *none) (*struct{ Body Setup }, error) {
		return &struct{ Body Setup }{a.cfg.Setup()}, nil
	})
	r.tag, r.have = "identity", true
	handle(r, "GET", "/api/me", "me", api.For(auth.SessionsRead), "Get the caller and its scopes", http.StatusOK, func(ctx context.Context, _ *none) (*struct{ Body Identity }, error) {
		p := auth.FromContext(ctx)
		return &struct{ Body Identity }{Identity{kindOf(p.Kind), p.ID, p.Scopes()}}, nil
	})
}

// kindOf returns the kind of an [Identity].
func kindOf(k auth.Kind) string {
	switch k {
	case auth.Owner:
		return "owner"
	case auth.Lasting:
		return "token"
	case auth.Anonymous, auth.Device, auth.External, auth.Server:
	}
	return "device"
}
