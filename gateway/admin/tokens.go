package admin

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
)

// NewToken is a lasting token that was made: nobody is shown it again.
type NewToken struct {
	auth.LastingInfo
	Token string `json:"token" doc:"send it as Authorization: Bearer; it is shown this once"`
}

func (a *API) tokenRoutes() {
	r := routes{a, "tokens", a.cfg.Devices != nil, "tokens"}
	handle(r, "GET", "/api/tokens", "listTokens", api.For(auth.DevicesRead), "List lasting tokens and their last use, never the tokens themselves", http.StatusOK, func(ctx context.Context, _ *none) (*struct{ Body []auth.LastingInfo }, error) {
		all, err := a.cfg.Devices.LastingTokens(auth.FromContext(ctx))
		return &struct{ Body []auth.LastingInfo }{all}, err
	})
	handle(r, "POST", "/api/tokens", "createToken", api.For(auth.DevicesManage), "Create a token that is valid until it is revoked or expires", http.StatusCreated, func(ctx context.Context, in *struct {
		Body struct {
			Name    string    `json:"name" minLength:"1" maxLength:"64" doc:"rules and profiles call its principal token:<name>"`
			Scopes  []string  `json:"scopes,omitempty" maxItems:"64" doc:"tools:call if there are none"`
			Servers []string  `json:"servers,omitempty" maxItems:"64" doc:"the MCP servers that it is for; all if there are none"`
			Expires time.Time `json:"expires_at,omitempty,omitzero" doc:"RFC 3339; never if it is absent"`
		}
	},
	) (*struct{ Body NewToken }, error) {
		if in.Body.Scopes == nil {
			in.Body.Scopes = []string{string(auth.ToolsCall)}
		}
		s, err := auth.ParseScopes(in.Body.Scopes...)
		if err != nil {
			return nil, err
		}
		if err := a.haveServers(in.Body.Servers); err != nil {
			return nil, err
		}
		token, info, err := a.cfg.Devices.CreateLasting(ctx, auth.FromContext(ctx), auth.NewLasting{Name: in.Body.Name, Scopes: s, Servers: in.Body.Servers, Expires: in.Body.Expires})
		if err != nil {
			return nil, err
		}
		return &struct{ Body NewToken }{NewToken{info, token}}, nil
	})
	handle(r, "DELETE", "/api/tokens/{name}", "revokeToken", api.For(auth.DevicesManage), "Revoke a token at once, and end the requests that use it", http.StatusNoContent, func(ctx context.Context, in *struct {
		Name string `path:"name" maxLength:"128"`
	},
	) (*none, error) {
		return nil, a.cfg.Devices.RevokeLasting(ctx, auth.FromContext(ctx), in.Name)
	})
}

// haveServers refuses the names of servers that nobody has configured, where that is
// known: a token for one of them would be good for nothing.
func (a *API) haveServers(names []string) error {
	if a.cfg.Servers == nil || len(names) == 0 {
		return nil
	}
	all := a.cfg.Servers.List()
	for _, name := range names {
		if !slices.ContainsFunc(all, func(s Server) bool { return s.Name == name }) {
			return api.Fail(http.StatusBadRequest, "no server %q is configured", name)
		}
	}
	return nil
}
