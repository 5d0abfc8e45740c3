package admin

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/internal/traffic"
)

// InDays says which totals of calls are wanted.
type InDays struct {
	From   string `query:"from" pattern:"^\\d{4}-\\d{2}-\\d{2}$" doc:"a day"`
	To     string `query:"to" pattern:"^\\d{4}-\\d{2}-\\d{2}$" doc:"a day"`
	Server string `query:"server" maxLength:"256"`
	Tool   string `query:"tool" maxLength:"256"`
	Client string `query:"client" maxLength:"256"`
	By     string `query:"by" enum:"total,server,tool,client" default:"server"`
}

func (in *InDays) query() traffic.DayQuery {
	return traffic.DayQuery{From: in.From, To: in.To, Server: in.Server, Tool: in.Tool, Client: in.Client, By: traffic.By(in.By)}
}

func (t *Traffic) daily(q traffic.DayQuery) ([]traffic.Day, error) {
	return traffic.Daily(t.Data, t.Log, q)
}

// NodeTotals are totals of calls of all nodes.
type NodeTotals struct {
	Days    []NodeDay `json:"days" doc:"by day, and then by node"`
	Missing []string  `json:"missing_nodes,omitempty" doc:"nodes that have not answered: their calls are not counted"`
}

// NodeDay are the totals of one day on one node.
type NodeDay struct {
	Node string `json:"node,omitempty" doc:"missing if this yaya is alone"`
	traffic.Day
}

// allDays returns the totals of all nodes that answer.
func (a *API) allDays(ctx context.Context, q traffic.DayQuery) (NodeTotals, error) {
	own, err := a.cfg.Traffic.daily(q)
	if err != nil {
		return NodeTotals{}, err
	}
	out := NodeTotals{Days: []NodeDay{}}
	add := func(node string, days []traffic.Day) {
		for _, d := range days {
			out.Days = append(out.Days, NodeDay{node, d})
		}
	}
	name := ""
	if a.cfg.Nodes != nil {
		name = a.cfg.Nodes.Name()
	}
	add(name, own)
	if a.cfg.Others != nil {
		query := url.Values{"from": {q.From}, "to": {q.To}, "server": {q.Server}, "tool": {q.Tool}, "client": {q.Client}, "by": {string(q.By)}}
		out.Missing = api.AskNodes(ctx, a.cfg.Others, NodeDays+"?"+query.Encode(), add)
	}
	slices.SortFunc(out.Days, func(x, y NodeDay) int { return cmp.Or(cmp.Compare(x.Day.Day, y.Day.Day), cmp.Compare(x.Node, y.Node)) })
	return out, nil
}

// tellDays answers another node with the totals of this one.
func (a *API) tellDays(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	days, err := a.cfg.Traffic.daily(traffic.DayQuery{From: q.Get("from"), To: q.Get("to"), Server: q.Get("server"), Tool: q.Get("tool"), Client: q.Get("client"), By: traffic.By(q.Get("by"))})
	if err != nil {
		a.cfg.Log.Warn().Err(err).Msg("another node gets no totals of calls")
		http.Error(w, "the totals of calls cannot be read", http.StatusInternalServerError)
		return
	}
	api.Write(w, http.StatusOK, days)
}
