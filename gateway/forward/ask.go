package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/auth"
)

// askTime is how long other nodes have to answer a question of this one.
const askTime = 2 * time.Second

// atOnce is the key of contexts in which nobody waits for a node that is not there.
type atOnce struct{}

// Ask asks all other nodes at once for what is at a path, for this node itself, and has read read
// each answer, one at a time. It returns the nodes that have not answered, by name.
func (f *Forwarder) Ask(ctx context.Context, path string, read func(node string, answer io.Reader) error) (missing []string) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, atOnce{}, true), askTime)
	defer cancel()
	var mu sync.Mutex // of read and missing
	var all sync.WaitGroup
	for _, node := range f.members.Others() {
		all.Go(func() {
			resp, err := f.ask(ctx, node, path)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				err = errors.Join(read(node, resp.Body), resp.Body.Close())
			}
			if err != nil && !errors.Is(err, context.Canceled) {
				f.log.Debug().Err(err).Str("node", node).Str("path", path).Msg("a node has not answered")
				missing = append(missing, node)
			}
		})
	}
	all.Wait()
	slices.Sort(missing)
	return missing
}

func (f *Forwarder) ask(ctx context.Context, node, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+node+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set(callerHeader, fromOwner)
	resp, err := f.proxy.Transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("it answers %s", resp.Status), resp.Body.Close())
	}
	return resp, nil
}

// failedKey is the key of what answers for a node that a request does not reach.
type failedKey struct{}

// Find returns what serves the requests for something that another node has at a path, nil if none
// that answers has it. failed answers a request that does not reach that node; nil leaves it a line of
// text.
func (f *Forwarder) Find(ctx context.Context, path string, failed func(w http.ResponseWriter, r *http.Request, node string)) http.Handler {
	node := f.Locate(ctx, path)
	if node == "" {
		return nil
	}
	next := f.To(node)
	if next == nil || failed == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), failedKey{}, failed)))
	})
}

// Locate returns the first other node that has an answer at a path, "" for none.
func (f *Forwarder) Locate(ctx context.Context, path string) string {
	f.mu.Lock()
	node, known := f.found[path]
	f.mu.Unlock()
	if known { // it may have gone since, or be somewhere else
		if resp, err := f.ask(context.WithValue(ctx, atOnce{}, true), node, path); err == nil {
			_ = resp.Body.Close()
			return node
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	has := ""
	f.Ask(ctx, path, func(node string, _ io.Reader) error {
		has = node
		cancel() // nobody else has it
		return nil
	})
	if has == "" {
		return ""
	}
	f.mu.Lock()
	if len(f.found) >= maxFound {
		clear(f.found)
	}
	f.found[path] = has
	f.mu.Unlock()
	return has
}

// maxFound is how many things are remembered that other nodes have.
const maxFound = 10_000

// ForNodes serves what nodes ask each other, and nobody else.
func ForNodes(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if auth.FromContext(r.Context()).Kind != auth.Owner {
			http.Error(w, "this is for nodes", http.StatusForbidden)
			return
		}
		next(w, r)
	})
}
