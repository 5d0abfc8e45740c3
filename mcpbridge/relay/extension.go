package relay

import (
	"strings"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// Extensions of the protocol add methods, which a client and a server can use if both declare
// the extension under capabilities.extensions. yaya relays the methods without knowing them.

// core are the prefixes of the protocol's own methods, including those of [Tasks].
var core = []string{
	"initialize", "ping", "server/", "tools/", "resources/", "prompts/", "completion/", "logging/", "subscriptions/",
	"sampling/", "elicitation/", "roots/", "tasks/",
}

// Core reports whether a method or notification is the protocol's own, and so never belongs to
// an extension.
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

// Extensions returns the extensions in capabilities; zero if there are none.
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

// Shared returns the extensions that two capabilities have in common, except [Tasks], in the
// order of the second.
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
// extension's name, with or without the vendor prefix.
func Brings(extension, method string) bool {
	method = strings.TrimPrefix(method, "notifications/")
	_, own, _ := strings.Cut(extension, "/")
	return strings.HasPrefix(method, extension+"/") || (own != "" && strings.HasPrefix(method, own+"/"))
}
