package downstream_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
	peer "github.com/yaya-ai/yaya/mcpbridge/relay"
)

// node is a node of a cluster of two.
type node struct {
	*rig
	artifacts *tool.Store
	passed    atomic.Int32 // requests that this node has passed on
	step      chan struct{}
}

// newNodes returns the nodes north and south, which pass requests on to each other.
func newNodes(t *testing.T) (north, south *node) {
	t.Helper()
	all := map[string]*node{}
	for _, name := range []string{"north", "south"} {
		root, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = root.Close() })
		n := &node{artifacts: tool.NewStore(root), step: make(chan struct{})}
		n.artifacts.Mark = "@" + name
		reg := new(tool.Registry)
		reg.Replace("srv", []tool.Provided{{Tool: relay("srv__ask", func(ctx context.Context, c tool.Call) (tool.Result, error) {
			r, err := c.Native.Peer.(peer.Peer).Ask(ctx, peer.Elicitation, []byte(`{"message":"q"}`))
			if err != nil {
				return tool.Result{}, err
			}
			return ok(`{"content":[],"heard":` + string(r.Result.Raw()) + `}`)
		})}, {Tool: relay("srv__slow", func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			select {
			case <-n.step:
			case <-ctx.Done():
			}
			return ok(`{"content":[],"from":"` + name + `"}`)
		})}, {Tool: relay("srv__large", func(_ context.Context, c tool.Call) (tool.Result, error) {
			a, err := n.artifacts.Put(c, "text/plain", []byte("kept on "+name))
			if err != nil {
				return tool.Result{}, err
			}
			return ok(`{"content":[],"uri":"` + peer.ArtifactURI(a.ID) + `"}`)
		})}})
		srv := downstream.New(downstream.Config{
			Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg}), Registry: reg, Caller: owner, TaskAfter: 50 * time.Millisecond, Artifacts: n.artifacts,
			Node: name, Forward: func(other string) http.Handler {
				to := all[other]
				if to == nil {
					return nil
				}
				u, err := url.Parse(to.url)
				if err != nil {
					t.Error(err)
				}
				n.passed.Add(1)
				return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }, FlushInterval: -1}
			},
		})
		hs := httptest.NewServer(srv)
		t.Cleanup(func() {
			srv.Close()
			hs.Close()
		})
		n.rig = &rig{t: t, srv: srv, url: hs.URL}
		all[name] = n
	}
	return all["north"], all["south"]
}

// sends sends a modern request, and returns its result.
func (n *node) sends(method, name, params string) map[string]any {
	n.t.Helper()
	a := n.send("POST", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`, modern(method, name))
	var m struct {
		Result map[string]any
	}
	if err := json.Unmarshal([]byte(a.body), &m); err != nil || m.Result == nil {
		n.t.Fatalf("%s = %d %s, want a result", method, a.status, a.body)
	}
	return m.Result
}

// A node serves requests about sessions, calls, tasks and artifacts that another one has made.
func TestNodesServeWhatOthersHaveMade(t *testing.T) {
	north, south := newNodes(t)

	h := north.session()
	if a := south.send("POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, h); a.status != 200 || !strings.Contains(a.body, `"result":{}`) {
		t.Errorf("a session of another node: %+v, want a result", a)
	}
	events, stop := south.stream("GET", "", h)
	north.srv.Close() // ends the streams
	for range events {
	}
	stop()

	north, south = newNodes(t)
	first := north.sends("tools/call", "srv__ask", `"name":"srv__ask","arguments":{}`)
	state, _ := first["requestState"].(string)
	if !strings.HasSuffix(state, "@north") {
		t.Fatalf("the state is %q, want that it names its node", state)
	}
	got := south.sends("tools/call", "srv__ask", `"name":"srv__ask","arguments":{},"requestState":"`+state+`","inputResponses":{"q1":{"action":"accept"}}`)
	if heard, _ := got["heard"].(map[string]any); heard["action"] != "accept" {
		t.Errorf("the answer on another node has the result %v, want that the server has heard it", got)
	}

	task, _ := north.sends("tools/call", "srv__slow", `"name":"srv__slow","arguments":{}`)["taskId"].(string)
	if s := south.sends("tasks/get", "", `"taskId":"`+task+`"`)["status"]; s != "working" {
		t.Errorf("the task %s is %v on another node, want working", task, s)
	}
	north.step <- struct{}{}
	eventually.True(t, "another node has the result of the task", func() bool {
		end, _ := south.sends("tasks/get", "", `"taskId":"`+task+`"`)["result"].(map[string]any)
		return end["from"] == "north"
	})

	uri, _ := north.sends("tools/call", "srv__large", `"name":"srv__large","arguments":{}`)["uri"].(string)
	for _, from := range []*node{north, south} {
		all, _ := from.sends("resources/read", uri, `"uri":"`+uri+`"`)["contents"].([]any)
		if len(all) != 1 || all[0].(map[string]any)["text"] != "kept on north" {
			t.Errorf("%s has the contents %v, want those of its node", uri, all)
		}
	}
	if p := north.passed.Load(); p != 0 {
		t.Errorf("a node has passed on %d requests about what is its own, want none", p)
	}
}

// An id that names no node, such as one of a client that makes it up, is this node's.
func TestIDsOfNoNode(t *testing.T) {
	north, _ := newNodes(t)
	for _, id := range []string{"x@nowhere", "x@", "@", "x@north"} {
		if a := north.send("POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, map[string]string{"Mcp-Session-Id": id}); a.status != 404 {
			t.Errorf("the session %q: %+v, want 404", id, a)
		}
	}
}
