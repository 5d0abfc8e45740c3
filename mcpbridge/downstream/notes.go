package downstream

import (
	"bytes"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// oneWay handles notifications, and responses to questions.
func (s *Server) oneWay(c *client, p *profile, who tool.Caller, msg *jsonrpc.Message) {
	if who.IsServer() && msg.Method != noteCancelled && msg.Method != noteInitialized {
		return // it has no pending questions, and its notifications go to no other server
	}
	if msg.IsResponse() {
		c.answered(msg)
		return
	}
	switch msg.Method {
	case noteCancelled:
	case noteProgress:
		c.progressed(msg.Params)
		return
	case noteInitialized:
		c.settle()
		return
	case noteRootsChanged:
		params := bytes.Clone(msg.Params.Raw())
		for _, server := range s.cfg.Router.Servers() {
			if p.server(server.Name()) && !server.Notify(c.session, noteRootsChanged, params) {
				s.lost(c, server.Name(), msg.Method)
			}
		}
		return
	default:
		s.extensionNote(c, p, who, msg)
		return
	}
	c.cancel(msg.Params.Get("requestId"))
}

// lost counts a client's dropped notification. It logs the first one, and then each time that
// the count doubles.
func (s *Server) lost(c *client, server, method string) {
	n := c.dropped.Add(1)
	if n&(n-1) == 0 {
		s.cfg.Log.Warn().Str("principal", c.owner).Str("session", c.session).Str("server", server).Str("method", clip(method)).Uint64("dropped", n).
			Msg("dropped notifications of an MCP client: it sends more than the server accepts")
	}
}
