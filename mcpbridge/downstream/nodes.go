package downstream

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

// Nodes of a cluster: sessions, parked calls, tasks and artifacts live on the node that has made
// them. Their ids name it, and requests that bring back the id of another node go there.

// nodeMark stands before the name of the node in an id.
const nodeMark = "@"

// marked appends the node to an id that is made here.
func (s *Server) marked(id string) string {
	if s.cfg.Node == "" {
		return id
	}
	return id + nodeMark + s.cfg.Node
}

// elsewhere returns what serves the requests about an id of another node, nil for one of this node.
func (s *Server) elsewhere(id string) http.Handler {
	at := strings.LastIndex(id, nodeMark)
	if s.cfg.Forward == nil || at < 0 || id[at+1:] == s.cfg.Node {
		return nil
	}
	return s.cfg.Forward(id[at+1:])
}

// sessionElsewhere returns what serves a request of a session of another node.
func (s *Server) sessionElsewhere(r *http.Request) http.Handler {
	if s.cfg.Forward == nil {
		return nil
	}
	return s.elsewhere(r.Header.Get(mcp.HeaderSessionID))
}

// messageElsewhere returns what serves a message about something that another node has made.
func (s *Server) messageElsewhere(msg *jsonrpc.Message) http.Handler {
	if s.cfg.Forward == nil || !msg.IsRequest() {
		return nil
	}
	return s.elsewhere(broughtBack(msg))
}

// broughtBack returns the id of what a request is about that a node has made, "" for none.
func broughtBack(msg *jsonrpc.Message) string {
	if state, ok := msg.Params.String("requestState"); ok && strings.HasPrefix(state, statePrefix) {
		return state
	}
	switch msg.Method {
	case "tasks/get", "tasks/update", "tasks/cancel":
		id, _ := msg.Params.String("taskId")
		where, _, _ := strings.Cut(id, taskSeparator)
		return where
	case "resources/read":
		uri, _ := msg.Params.String("uri")
		if id, ok := relay.Artifact(uri); ok {
			id, _, _ = strings.Cut(id, "?")
			return id
		}
	}
	return ""
}

// drainedTo returns what serves a new client's request while this node takes no new clients: a
// handshake, or a request of the modern era about nothing that is here.
func (s *Server) drainedTo(r *http.Request, msg *jsonrpc.Message, who tool.Caller, origin tool.Origin) http.Handler {
	if s.cfg.Drained == nil || origin != tool.OriginMCP || who.IsServer() || !msg.IsRequest() || r.Header.Get(mcp.HeaderSessionID) != "" {
		return nil
	}
	if msg.Method != "initialize" && broughtBack(msg) != "" {
		return nil
	}
	return s.cfg.Drained(r)
}

// again has a handler serve a request whose body was read.
func again(next http.Handler, w http.ResponseWriter, r *http.Request, body []byte) {
	r = r.Clone(r.Context())
	r.ContentLength = int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, _ = r.GetBody()
	next.ServeHTTP(w, r)
}
