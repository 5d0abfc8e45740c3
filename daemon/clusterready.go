package daemon

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/yaya-ai/yaya/gateway"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/gateway/forward"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// The paths at which nodes ask each other how they are.
const (
	nodeTakes = "/node/takes" // whether it takes new clients
	nodeLog   = "/node/log"   // see [nodeState]
)

// checkNode is whether this node of a cluster takes new clients.
const checkNode = "node"

// nodeState holds the words of a node about the log.
type nodeState struct {
	Quorum bool `json:"quorum"`
}

// tellNodes answers other nodes at the paths above.
func (c *cluster) tellNodes(mux *http.ServeMux) {
	mux.Handle("GET "+nodeTakes, forward.ForNodes(func(w http.ResponseWriter, r *http.Request) {
		if c.nodes.Drained() {
			http.NotFound(w, r)
		}
	}))
	mux.Handle("GET "+nodeLog, forward.ForNodes(func(w http.ResponseWriter, _ *http.Request) {
		api.Write(w, http.StatusOK, nodeState{c.log.State().Quorum})
	}))
}

// takers returns what serves the request of a new client while this node is drained: another node. One
// that was passed on already stays here.
func (c *cluster) takers(r *http.Request) http.Handler {
	if !c.nodes.Drained() || forward.Passed(r.Context()) {
		return nil
	}
	return c.forward.Find(r.Context(), nodeTakes, nil)
}

// nobodyBetter reports whether no change can be made on any of most nodes: then clients are no better
// off elsewhere. A node that reaches fewer may be the only one that is cut off. The answer is at most
// [probeKept] old.
func (c *cluster) nobodyBetter(ctx context.Context) bool {
	c.looking.Lock()
	defer c.looking.Unlock()
	if time.Since(c.looked) < probeKept {
		return c.noBetter
	}
	alike, better := 1, false
	c.forward.Ask(context.WithoutCancel(ctx), nodeLog, func(_ string, answer io.Reader) error {
		var s nodeState
		if err := json.NewDecoder(io.LimitReader(answer, 1<<10)).Decode(&s); err != nil {
			return err
		}
		alike, better = alike+1, better || s.Quorum
		return nil
	})
	c.noBetter, c.looked = !better && alike > len(c.nodes.Members())/2, time.Now()
	return c.noBetter
}

// asNode fits the checks of readiness to a node of a cluster.
func (c *cluster) asNode(ctx context.Context, checks []gateway.Check) []gateway.Check {
	for i := range checks {
		if l := &checks[i]; l.Name == checkLog && l.Status == string(plugin.Failing) && c.nobodyBetter(ctx) {
			l.Status, l.Reason = string(plugin.Degraded), "no node can make changes"
		}
	}
	if c.nodes.Drained() {
		return append([]gateway.Check{{Name: checkNode, Status: string(plugin.Failing), Reason: "draining"}}, checks...)
	}
	return checks
}
