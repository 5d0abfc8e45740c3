package downstream

import (
	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// A sandboxed server that may call tools of other servers is a client limited to tools. Each of
// its calls goes through the dispatcher, which asks a person. The rest of the protocol would
// reach servers without asking, or reveal other clients.

// narrowCapabilities are declared to clients limited to tools, in both eras.
const narrowCapabilities = `"tools":{}`

// narrow limits an exchange to tools: it relays no questions, its calls do not become tasks,
// and it gets no log messages of servers.
func (x *exchange) narrow() {
	if x.caller.IsServer() {
		x.caps, x.level = jsonrpc.Object{}, ""
	}
}

// beyond returns the error for a request that a client limited to tools may not make.
func (x *exchange) beyond() error {
	switch x.msg.Method {
	case "tools/call":
		// They continue another request, or ask for a task.
		for _, name := range []string{"requestState", "inputResponses", "task"} {
			if x.msg.Params.Get(name) != nil {
				return fail(jsonrpc.CodeInvalidParams, "params have the member %q: servers can call tools but not answer questions", name)
			}
		}
		return nil
	case "tools/list", "server/discover":
		return nil
	case "initialize", "ping":
		if !x.modern {
			return nil
		}
	}
	return fail(jsonrpc.CodeMethodNotFound, "the method %q is not allowed for servers, which can only list and call tools", clip(x.msg.Method))
}
