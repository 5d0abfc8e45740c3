package mcpbridge

import (
	"net/http"
	"strings"

	"github.com/yaya-ai/yaya/mcpbridge/oauth"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// authorize returns the transport that adds a server's authorization to its requests; nil if
// none is needed, or if the configuration adds it.
func (b *Bridge) authorize(s servers.Server) (wrap func(http.RoundTripper) http.RoundTripper, renewed func() bool) {
	if b.cfg.Grants == nil || s.Transport == servers.Stdio || s.NoOAuth {
		return nil, nil
	}
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return nil, nil
		}
	}
	t := Authorization(s, b.cfg.Grants)
	return func(next http.RoundTripper) http.RoundTripper {
		t.Next = next
		return t
	}, t.Renewed
}

// Authorization returns the transport that adds authorization to requests to a server.
func Authorization(s servers.Server, grants *oauth.Store) *oauth.Transport {
	t := &oauth.Transport{Server: s.URL, Name: s.Name, Store: grants}
	if s.OAuth != nil {
		t.Config = oauth.Config{OAuth: *s.OAuth}
	}
	return t
}
