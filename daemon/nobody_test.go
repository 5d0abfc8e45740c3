package daemon

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/admin"
)

// COD-5: requests of yaya's own commands are the owner's: a request that the socket's
// door has not established to be that, or has established to be another's, is refused.
func TestNobodyCommands(t *testing.T) {
	cli := newCLI(t.Context(), &bridge{core: &core{st: new(stores)}}, nil, nil)
	for name, c := range map[string]struct {
		who  *auth.Principal
		want int
	}{
		"nobody said":  {nil, http.StatusForbidden},
		"nobody":       {&auth.Principal{}, http.StatusForbidden},
		"a device":     {&auth.Principal{Kind: auth.Device, ID: "phone"}, http.StatusForbidden},
		"an issuer's":  {&auth.Principal{Kind: auth.External, ID: "x|y"}, http.StatusForbidden},
		"a server":     {new(auth.ServerNamed("files")), http.StatusForbidden},
		"its own user": {&auth.LocalOwner, http.StatusBadRequest}, // who sends half a body
	} {
		for _, path := range []string{"/cli/run", "/cli/mcp", "/cli/sessions/s/cancel", "/cli/none"} {
			if c.who != nil && c.who.Kind == auth.Owner && path != "/cli/run" {
				continue
			}
			t.Run(name+", "+path, func(t *testing.T) {
				r := httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader("{"))
				r.Header.Set("Content-Type", "application/json")
				if c.who != nil {
					r = r.WithContext(auth.WithPrincipal(r.Context(), *c.who))
				}
				rec := httptest.NewRecorder()
				cli.ServeHTTP(rec, r)
				if rec.Code != c.want {
					t.Errorf("POST %s: got %d %s, want %d", path, rec.Code, rec.Body, c.want)
				}
			})
		}
	}
}

// COD-5: an API in this process is nobody's, too, unless the command says that it is its
// user's.
func TestNobodyInProcess(t *testing.T) {
	api := admin.New(admin.Config{Log: zerolog.Nop()})
	for name, c := range map[string]struct {
		h    http.Handler
		want int
	}{
		"nobody":   {api, http.StatusForbidden},
		"its user": {AsOwner(api), http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), "GET", "http://yaya/api/me", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := inProcess{c.h}.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			if resp.StatusCode != c.want {
				t.Errorf("GET /api/me: got %d, want %d", resp.StatusCode, c.want)
			}
		})
	}
}
