package downstream

import (
	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// A server in a sandbox that may call tools of others is a client with tools alone. Each
// of its calls goes through the dispatcher, where a person is asked; all else of the
// protocol reaches servers without that, or tells of other clients.

// narrowCapabilities are declared to clients with tools alone, in both eras.
const narrowCapabilities = `"tools":{}`

// narrow keeps an exchange to tools: nobody is asked through it, no call of it becomes a
// task, and the log messages of servers are not for it.
func (x *exchange) narrow() {
	if x.caller.IsServer() {
		x.caps, x.level = jsonrpc.Object{}, ""
	}
}

// beyond says why a request of a client with tools alone is refused, nil if it is not.
func (x *exchange) beyond() error {
	switch x.msg.Method {
	case "tools/call":
		// They go on with what another request has begun, or ask for a task.
		for _, name := range []string{"requestState", "inputResponses", "task"} {
			if x.msg.Params.Get(name) != nil {
				return fail(jsonrpc.CodeInvalidParams, "params have the member %q: a server calls tools, and answers no questions", name)
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
	return fail(jsonrpc.CodeMethodNotFound, "the method %q is not for servers: they list and call tools", clip(x.msg.Method))
}
