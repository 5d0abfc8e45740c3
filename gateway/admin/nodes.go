package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/yaya-ai/yaya/gateway/api"
)

// Others are the other nodes of a cluster, whose calls wait for answers, too.
type Others interface {
	// Find returns what serves the requests for something that another node has at a path, nil for
	// none. Ask asks all of them for what is at a path, and returns those that have not answered.
	Find(ctx context.Context, path string) http.Handler
	Ask(ctx context.Context, path string, read func(node string, answer io.Reader) error) (missing []string)
}

// The paths at which nodes ask each other.
const (
	NodeApprovals = "/node/approvals" // which calls wait here; below it, whether one has been asked here
	NodeAudience  = "/node/audience"  // whether somebody is here who may answer
)

// maxAsks bounds the answer of another node, in bytes.
const maxAsks = 64 << 20

// ForNodes answers other nodes at the paths above.
func (a *API) ForNodes(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	switch {
	case id != "" && !a.cfg.Approvals.Knows(id), r.URL.Path == NodeAudience && !a.cfg.Live.Answers():
		http.NotFound(w, r)
	case r.URL.Path == NodeApprovals:
		api.Write(w, http.StatusOK, a.asks())
	default:
		w.WriteHeader(http.StatusOK)
	}
}

// allAsks returns the calls that wait on any node that answers.
func (a *API) allAsks(ctx context.Context) []Ask {
	all := a.asks()
	if a.cfg.Others == nil {
		return all
	}
	missing := a.cfg.Others.Ask(ctx, NodeApprovals, func(node string, answer io.Reader) error {
		var theirs []Ask
		if err := json.NewDecoder(io.LimitReader(answer, maxAsks)).Decode(&theirs); err != nil {
			return fmt.Errorf("calls that wait on node %s: %w", node, err)
		}
		for _, x := range theirs {
			x.Node = node
			all = append(all, x)
		}
		return nil
	})
	if len(missing) > 0 {
		a.cfg.Log.Debug().Strs("nodes", missing).Msg("the calls are missing that wait on nodes which have not answered")
	}
	slices.SortFunc(all, byUrgency)
	return all
}

// Routes returns the routes. An answer to a call goes to the node that has asked.
func (a *API) Routes() []api.Route {
	all := slices.Clone(a.API.Routes())
	if a.cfg.Others == nil {
		return all
	}
	for i := range all {
		if all[i].Pattern == "POST /api/approvals/{id}" {
			all[i].Handler = a.whereAsked(all[i].Handler)
		}
	}
	return all
}

func (a *API) whereAsked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id := r.PathValue("id"); !a.cfg.Approvals.Knows(id) {
			if there := a.cfg.Others.Find(r.Context(), NodeApprovals+"/"+url.PathEscape(id)); there != nil {
				there.ServeHTTP(w, r)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
