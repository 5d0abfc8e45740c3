package daemon

import (
	"net/http"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// maxServerRequests bounds what one process of a server asks at a time.
const maxServerRequests = 32

// caller is who the gateway has established an MCP request to be from.
func caller(r *http.Request) (tool.Caller, bool) {
	p := auth.FromContext(r.Context())
	switch p.Kind {
	case auth.Owner:
		return tool.LocalOwner, true
	case auth.Device, auth.External, auth.Lasting:
		return tool.Caller{Principal: p.Name(), Has: p.Has, Servers: p.Servers()}, true
	case auth.Server:
		return tool.Caller{Principal: p.Name(), Has: p.Has, But: p.ID}, true
	case auth.Anonymous:
	}
	return tool.Caller{}, false
}

// endpointsOf returns what makes the MCP endpoint for the process of one server: whoever
// comes through the listener in its sandbox is that server. It calls tools, which people
// are asked about, and none of its own.
func endpointsOf(mcp http.Handler) func(server string) http.Handler {
	return func(server string) http.Handler {
		who := auth.ServerNamed(server)
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
			mcp.ServeHTTP(w, r.WithContext(auth.WithPrincipal(r.Context(), who)))
		})
		return mux
	}
}
