package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/yaya-ai/yaya/auth"
)

// authenticate establishes who a request with a token is from. When it reports
// false, the answer has been written: the same for every bad token (R6).
func (s *Server) authenticate(w http.ResponseWriter, r *http.Request) (principal string, ok bool) {
	refuse := func(status int, code, why string) (string, bool) {
		challenge := fmt.Sprintf("Bearer resource_metadata=%q", s.cfg.Tokens.MetadataURL())
		if code != "" {
			challenge += fmt.Sprintf(", error=%q", code)
		}
		w.Header().Set("WWW-Authenticate", challenge)
		http.Error(w, why, status)
		return "", false
	}
	h := r.Header["Authorization"]
	if len(h) == 0 {
		return refuse(http.StatusUnauthorized, "", "a token is needed")
	}
	scheme, token, found := strings.Cut(h[0], " ")
	if len(h) != 1 || !found || !strings.EqualFold(scheme, "Bearer") || strings.ContainsAny(token, ", \t") {
		return refuse(http.StatusUnauthorized, "invalid_request", "one bearer token is needed")
	}
	id, err := s.cfg.Tokens.Verify(r.Context(), token)
	if errors.Is(err, auth.ErrToken) {
		s.cfg.Log.Debug().Err(err).Msg("a token was refused")
		return refuse(http.StatusUnauthorized, "invalid_token", "the token is not acceptable")
	}
	if err != nil {
		s.cfg.Log.Warn().Err(err).Msg("tokens cannot be verified")
		http.Error(w, "tokens cannot be verified now", http.StatusServiceUnavailable)
		return "", false
	}
	return id.Issuer + "|" + id.Subject, true
}

// metadataHandler serves the metadata of the protected resource; nil without an
// issuer.
func (s *Server) metadataHandler() http.Handler {
	if s.cfg.Tokens == nil {
		return nil
	}
	body := s.cfg.Tokens.ResourceMetadata()
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(body)
	})
}
