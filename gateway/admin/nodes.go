package admin

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/yaya-ai/yaya/gateway/api"
)

// The paths at which nodes ask each other.
const (
	NodeApprovals = "/node/approvals" // which calls wait here; below it, whether one has been asked here
	NodeAudience  = "/node/audience"  // whether somebody is here who may answer
	NodeDays      = "/node/days"      // totals of calls by day
)

// ForNodes answers other nodes at the paths above.
func (a *API) ForNodes(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	switch {
	case id != "" && !a.cfg.Approvals.Knows(id), r.URL.Path == NodeAudience && !a.cfg.Live.Answers():
		http.NotFound(w, r)
	case r.URL.Path == NodeApprovals:
		api.Write(w, http.StatusOK, a.asks())
	case r.URL.Path == NodeDays:
		a.tellDays(w, r)
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
	missing := api.AskNodes(ctx, a.cfg.Others, NodeApprovals, func(node string, theirs []Ask) {
		for _, x := range theirs {
			x.Node = node
			all = append(all, x)
		}
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
			all[i].Handler = a.Anywhere(a.cfg.Others, a.askedElsewhere, all[i].Handler)
		}
	}
	return all
}

// askedElsewhere returns where nodes ask each other for the call of a request, "" if it is here.
func (a *API) askedElsewhere(r *http.Request) string {
	id := r.PathValue("id")
	if a.cfg.Approvals.Knows(id) {
		return ""
	}
	return NodeApprovals + "/" + url.PathEscape(id)
}
