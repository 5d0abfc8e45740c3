package relay

import (
	"strings"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// Extensions of the protocol bring methods of their own, which a client and a server
// use with each other when both have declared the extension under
// capabilities.extensions. yaya relays them without knowing them.

// core starts the methods that are the protocol's own, and [Tasks]'.
var core = []string{
	"initialize", "ping", "server/", "tools/", "resources/", "prompts/", "completion/", "logging/", "subscriptions/",
	"sampling/", "elicitation/", "roots/", "tasks/",
}

// Core reports whether a method or notification is the protocol's own, and so never an
// extension's.
func Core(method string) bool {
	method, note := strings.CutPrefix(method, "notifications/")
	for _, c := range core {
		if method == c || strings.HasSuffix(c, "/") && strings.HasPrefix(method, c) {
			return true
		}
	}
	if note {
		switch method {
		case "initialized", "cancelled", "progress", "message":
			return true
		}
	}
	return false
}

// Extensions opens the extensions of capabilities; zero when they have none.
func Extensions(capabilities jsonrpc.Object) jsonrpc.Object {
	raw := capabilities.Get("extensions")
	if len(raw) == 0 || raw[0] != '{' {
		return jsonrpc.Object{}
	}
	obj, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return jsonrpc.Object{}
	}
	return obj
}

// Shared returns the extensions that both of two capabilities declare, but for [Tasks],
// in the order of the second.
func Shared(a, b jsonrpc.Object) []string {
	x, y := Extensions(a), Extensions(b)
	var out []string
	for i := range y.Len() {
		if name, _ := y.At(i); name != Tasks && x.Get(name) != nil {
			out = append(out, name)
		}
	}
	return out
}

// Brings reports whether a method looks like one of an extension: its first part is the
// extension's name, with or without whose it is.
func Brings(extension, method string) bool {
	method = strings.TrimPrefix(method, "notifications/")
	_, own, _ := strings.Cut(extension, "/")
	return strings.HasPrefix(method, extension+"/") || (own != "" && strings.HasPrefix(method, own+"/"))
}
