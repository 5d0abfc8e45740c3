package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Nodes are the other nodes of a cluster.
type Nodes interface {
	// Find returns what serves the requests for something that another node has at a path, nil if no
	// node that answers has it. failed answers a request that does not reach that node; nil leaves it
	// a line of text.
	Find(ctx context.Context, path string, failed func(w http.ResponseWriter, r *http.Request, node string)) http.Handler
	// Ask asks all of them at once for what is at a path, and has read read each answer, one at a
	// time. It returns those that have not answered.
	Ask(ctx context.Context, path string, read func(node string, answer io.Reader) error) (missing []string)
}

// maxTold bounds what one node answers, in bytes.
const maxTold = 64 << 20

// AskNodes asks all other nodes for what is at a path, and has take take each answer, one at a time.
// It returns those that have not answered.
func AskNodes[T any](ctx context.Context, n Nodes, path string, take func(node string, told T)) (missing []string) {
	return n.Ask(ctx, path, func(node string, answer io.Reader) error {
		var told T
		if err := json.NewDecoder(io.LimitReader(answer, maxTold)).Decode(&told); err != nil {
			return fmt.Errorf("the answer of node %s to %s: %w", node, path, err)
		}
		take(node, told)
		return nil
	})
}

// Anywhere serves requests on the node that has what they are about. elsewhere returns the path at
// which nodes ask each other for it, "" if this node has it; what nobody has, this node refuses.
func (a *API) Anywhere(n Nodes, elsewhere func(*http.Request) (path string), next http.Handler) http.Handler {
	failed := func(w http.ResponseWriter, r *http.Request, node string) {
		a.Refuse(w, r, &Failure{Status: http.StatusServiceUnavailable, Code: "node_unavailable", Message: fmt.Sprintf("the node %s cannot be reached now", node), Wait: time.Second})
	}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := elsewhere(r); path != "" {
			if there := n.Find(r.Context(), path, failed); there != nil {
				there.ServeHTTP(w, r)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
