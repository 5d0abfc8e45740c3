package gateway

import (
	"errors"
	"net/http"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/api"
)

const maxRegistration = 16 << 10 // bytes of a body

// tokenAnswer is a token as devices get it.
type tokenAnswer struct {
	Token     string `json:"device_token"`
	ExpiresAt string `json:"expires_at"`
	ServerID  string `json:"server_id"`
}

// pendingAnswer says that somebody has to approve the device first.
type pendingAnswer struct {
	Status    string `json:"status"` // "pending"
	RequestID string `json:"request_id"`
	ServerID  string `json:"server_id"`
}

func (s *Server) answerToken(w http.ResponseWriter, t auth.Token) {
	w.Header().Set("Cache-Control", "no-store")
	api.Write(w, http.StatusOK, tokenAnswer{t.Token, t.ExpiresAt.UTC().Format(time.RFC3339), s.cfg.Authority.ServerID()})
}

// register is POST /auth/register.
func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var body auth.Registration
	if err := api.Decode(r, maxRegistration, &body); err != nil {
		s.refuse(w, r, err)
		return
	}
	addr := Address(r)
	if wait := s.cfg.Attempts.Blocked(addr); wait > 0 {
		s.tooMany(w, r, wait)
		return
	}
	got, err := s.cfg.Authority.Register(r.Context(), addr.String(), body)
	switch {
	case err != nil:
		if errors.Is(err, auth.ErrRefused) {
			s.cfg.Attempts.Fail(addr)
		}
		s.authError(w, r, err)
	case got.RequestID != "":
		api.Write(w, http.StatusAccepted, pendingAnswer{"pending", got.RequestID, s.cfg.Authority.ServerID()})
	default:
		s.answerToken(w, got.Token)
	}
}

// refresh is POST /auth/refresh.
func (s *Server) refresh(w http.ResponseWriter, r *http.Request) {
	addr := Address(r)
	token, ok := bearerToken(r.Header["Authorization"])
	if !ok {
		s.unauthorized(w, r, "invalid_request", "one bearer token is needed")
		return
	}
	if wait := s.cfg.Attempts.Blocked(addr); wait > 0 && !s.cfg.Authority.Knows(token) {
		s.tooMany(w, r, wait)
		return
	}
	t, err := s.cfg.Authority.Refresh(r.Context(), token)
	switch {
	case errors.Is(err, auth.ErrToken):
		s.cfg.Attempts.Fail(addr)
		s.cfg.Log.Debug().Err(err).Msg("a token was not refreshed")
		s.unauthorized(w, r, "invalid_token", "the token is not acceptable")
	case err != nil:
		s.authError(w, r, err)
	default:
		s.answerToken(w, t)
	}
}

func (s *Server) jwks(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "max-age=60")
	api.WriteRaw(w, http.StatusOK, s.cfg.Authority.JWKS())
}

// authError answers with an error of the authority.
func (s *Server) authError(w http.ResponseWriter, r *http.Request, err error) {
	f := api.Explain(s.cfg.Log, api.Identified(w, r), err)
	if errors.Is(err, control.ErrUnavailable) { // why is not for strangers
		s.cfg.Log.Error().Err(err).Msg("a device could not be served")
		f.Message = "nothing can be changed now"
	}
	s.refuse(w, r, f)
}
