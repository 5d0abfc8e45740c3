package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
)

// Answers to those who are nobody, before ": " and why they are not taken for the owner,
// if they are on this machine.
const (
	TokenNeeded = "a token is needed, as Authorization: Bearer TOKEN (yaya token create NAME makes one)"
	NotYours    = "this belongs to the user that runs yaya on this machine"
)

// guard passes on the requests that a route's policy allows, with the caller's identity
// in the request's context. When a device or a lasting token loses its rights, its
// requests end.
func (s *Server) guard(a api.Access, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.Public {
			next.ServeHTTP(w, r)
			return
		}
		p, ok := s.identify(w, r)
		if !ok {
			return
		}
		if g := peerOf(r.Context()).guest; g != nil {
			s.conns.know(g, p)
		}
		switch p.Kind {
		case auth.Owner:
			if a.Owner != api.Local && (a.Owner != api.Socket || !peerOf(r.Context()).unix) {
				s.unauthorized(w, r, "", "a device token is needed, even on this machine (but not over the socket)")
				return
			}
			if !a.External && peerOf(r.Context()).who().tool { // an agent's process does not speak for its user (TW-15)
				s.deny(w, r, http.StatusForbidden, "this comes from a process that a tool or a server of yaya has started: it is not its user")
				return
			}
		case auth.Device:
			if a.Device == "" {
				s.deny(w, r, http.StatusForbidden, "this is not for devices")
				return
			}
			if err := auth.Allow(p, a.Device); err != nil {
				s.deny(w, r, http.StatusForbidden, "%v", err)
				return
			}
		case auth.Lasting:
			if a.Device == "" || a.Owner == api.Socket {
				s.deny(w, r, http.StatusForbidden, "this is not for lasting tokens: it is for devices, which prove who they are")
				return
			}
			if err := auth.Allow(p, a.Device); err != nil {
				s.deny(w, r, http.StatusForbidden, "%v", err)
				return
			}
		case auth.External:
			if !a.External {
				s.deny(w, r, http.StatusForbidden, "this is not for tokens of another issuer")
				return
			}
		case auth.Server: // these have an endpoint of their own, in their sandboxes
			s.deny(w, r, http.StatusForbidden, "this is not for servers")
			return
		case auth.Anonymous:
			if a.Device == "" && !a.External {
				s.deny(w, r, http.StatusForbidden, "%s%s", NotYours, why(r))
				return
			}
			s.unauthorized(w, r, "", TokenNeeded+why(r))
			return
		}
		ctx := auth.WithPrincipal(r.Context(), p)
		if p.Kind == auth.Device || p.Kind == auth.Lasting {
			var end context.CancelCauseFunc
			ctx, end = context.WithCancelCause(ctx)
			defer end(nil)
			defer s.cfg.Authority.Hold(p, end)()
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// why says why somebody on this machine is not taken for the owner.
func why(r *http.Request) string {
	if refused := peerOf(r.Context()).refusal(r); refused != elsewhere && refused != "" {
		return ": " + refused
	}
	return ""
}

// identify establishes who a request is from: by its token if it has one, else
// the local owner by the connection, else nobody. When it reports false, the
// answer has been written: the same for every bad token.
func (s *Server) identify(w http.ResponseWriter, r *http.Request) (auth.Principal, bool) {
	if r.URL.RawQuery != "" && strings.Contains(r.URL.RawQuery, "token=") { // URLs end up in logs and histories
		s.deny(w, r, http.StatusBadRequest, "do not send a token in the URL: send it as Authorization: Bearer")
		return auth.Principal{}, false
	}
	h := r.Header["Authorization"]
	if len(h) == 0 || (s.cfg.Authority == nil && s.cfg.Tokens == nil) {
		if peerOf(r.Context()).unknown(r) {
			s.refuse(w, r, &api.Failure{Status: http.StatusServiceUnavailable, Message: noDescriptors + ": retry, or raise the limit of open files (ulimit -n)", Wait: time.Second})
			return auth.Principal{}, false
		}
		if peerOf(r.Context()).refusal(r) == "" {
			return auth.LocalOwner, true
		}
		return auth.Principal{}, true
	}
	token, ok := bearerToken(h)
	if !ok {
		s.unauthorized(w, r, "invalid_request", "one bearer token is needed")
		return auth.Principal{}, false
	}
	p, err := s.verify(r, token)
	switch {
	case err == nil:
		return p, true
	case errors.Is(err, auth.ErrToken):
		s.cfg.Log.Debug().Err(err).Msg("a token was refused")
		s.unauthorized(w, r, "invalid_token", "the token is not acceptable")
	case errors.Is(err, errTooMany):
		s.tooMany(w, r, s.cfg.Attempts.Blocked(Address(r)))
	default:
		s.cfg.Log.Warn().Err(err).Msg("tokens cannot be verified")
		f := api.Fail(http.StatusServiceUnavailable, "tokens cannot be verified now")
		if u, ok := errors.AsType[*auth.UnavailableError](err); ok {
			f.Wait = max(u.Wait, time.Second)
		}
		s.refuse(w, r, f)
	}
	return auth.Principal{}, false
}

// bearerToken takes the one token out of Authorization (RFC 6750 §2.1). The
// scheme's case does not matter (RFC 9110 §11.1).
func bearerToken(h []string) (string, bool) {
	if len(h) != 1 {
		return "", false
	}
	scheme, token, found := strings.Cut(h[0], " ")
	return token, found && strings.EqualFold(scheme, "Bearer") && token != "" && !strings.ContainsAny(token, ", \t")
}

var errTooMany = errors.New("too many failed attempts")

// verify asks those who know tokens. A client that has failed too often may use only
// tokens that are known to be good: checking those costs and betrays nothing.
func (s *Server) verify(r *http.Request, token string) (auth.Principal, error) {
	lasting := s.cfg.Authority != nil && auth.IsLasting(token)
	known := (lasting && s.cfg.Authority.KnowsLasting(token)) || (s.cfg.Authority != nil && s.cfg.Authority.Knows(token)) || (s.cfg.Tokens != nil && s.cfg.Tokens.Knows(token))
	if !known && s.cfg.Attempts.Blocked(Address(r)) > 0 {
		return auth.Principal{}, errTooMany
	}
	err := auth.ErrToken
	switch {
	case lasting:
		var p auth.Principal
		if p, err = s.cfg.Authority.VerifyLasting(token); err == nil {
			return p, nil
		}
	case s.cfg.Authority != nil:
		var p auth.Principal
		if p, err = s.cfg.Authority.VerifyToken(token); err == nil {
			return p, nil
		}
	}
	if s.cfg.Tokens != nil && !lasting {
		id, xerr := s.cfg.Tokens.Verify(r.Context(), token)
		if xerr == nil {
			return auth.Principal{Kind: auth.External, ID: id.Issuer + "|" + id.Subject}, nil
		}
		err = xerr
	}
	if errors.Is(err, auth.ErrToken) {
		s.cfg.Attempts.Fail(Address(r))
	}
	return auth.Principal{}, err
}

// unauthorized answers 401 and says how to do better (RFC 6750 §3, RFC 9728 §5.1).
func (s *Server) unauthorized(w http.ResponseWriter, r *http.Request, code, why string) {
	var params []string
	if s.cfg.Tokens != nil {
		params = append(params, fmt.Sprintf("resource_metadata=%q", s.cfg.Tokens.MetadataURL()))
	} else {
		params = append(params, `realm="yaya"`)
	}
	if code != "" {
		params = append(params, fmt.Sprintf("error=%q", code))
	}
	w.Header().Set("WWW-Authenticate", "Bearer "+strings.Join(params, ", "))
	s.deny(w, r, http.StatusUnauthorized, "%s", why)
}

func (s *Server) tooMany(w http.ResponseWriter, r *http.Request, wait time.Duration) {
	s.refuse(w, r, &api.Failure{Status: http.StatusTooManyRequests, Message: "too many failed attempts", Wait: max(wait, time.Second)})
}

// metadataHandler serves the metadata of the protected resource; nil without an
// issuer.
func (s *Server) metadataHandler() http.Handler {
	if s.cfg.Tokens == nil {
		return nil
	}
	body := s.cfg.Tokens.ResourceMetadata()
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		api.WriteRaw(w, http.StatusOK, body)
	})
}
