package main

import (
	"context"
	"net/http"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// maxServerRequests bounds what one process of a server asks at a time.
const maxServerRequests = 32

// serverKey is under which a request of a server in its sandbox has its caller.
type serverKey struct{}

// endpointOf returns the MCP endpoint for the process of one server: whoever comes through
// the listener in its sandbox is that server. It calls tools, which people are asked
// about, and none of its own.
func (a *app) endpointOf(server string) http.Handler {
	who := tool.Caller{Principal: tool.ServerPrefix + server, Has: func(scope string) bool { return scope == string(auth.ToolsCall) }, But: server}
	slots := make(chan struct{}, maxServerRequests)
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			http.Error(w, "this server has too many requests under way", http.StatusTooManyRequests)
			return
		}
		a.mcp.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), serverKey{}, who)))
	})
	return mux
}
