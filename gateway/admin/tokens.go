package admin

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/yaya-ai/yaya/auth"
)

// NewToken is a lasting token that was made: nobody is shown it again.
type NewToken struct {
	auth.LastingInfo
	Token string `json:"token" doc:"send it as Authorization: Bearer; it is shown this once"`
}

func (a *API) tokenRoutes(api huma.API) {
	r := routes{a, api, "tokens", a.cfg.Devices != nil, "tokens"}
	handle(r, "GET", "/api/tokens", "listTokens", auth.DevicesRead, "The lasting tokens, when they were used last, never the tokens themselves", http.StatusOK, func(ctx context.Context, _ *none) (*struct{ Body []auth.LastingInfo }, error) {
		all, err := a.cfg.Devices.LastingTokens(auth.FromContext(ctx))
		return &struct{ Body []auth.LastingInfo }{all}, err
	})
	handle(r, "POST", "/api/tokens", "createToken", auth.DevicesManage, "Make a token that is good until it is revoked or expires", http.StatusCreated, func(ctx context.Context, in *struct {
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
	handle(r, "DELETE", "/api/tokens/{name}", "revokeToken", auth.DevicesManage, "End a token, and what is under way with it, at once", http.StatusNoContent, func(ctx context.Context, in *struct {
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
			return fail(http.StatusBadRequest, "no server %q is configured", name)
		}
	}
	return nil
}
