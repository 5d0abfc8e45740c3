package gateway

import (
	"errors"
	"net/http"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/httpbody"
	"github.com/yaya-ai/yaya/internal/control"
)

const maxRegistration = 16 << 10 // bytes of a body

// tokenAnswer is a token as devices get it (W-6, W-10).
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
	writeJSON(w, http.StatusOK, tokenAnswer{t.Token, t.ExpiresAt.UTC().Format(time.RFC3339), s.cfg.Authority.ServerID()})
}

// register is POST /auth/register.
func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var body auth.Registration
	if err := httpbody.Decode(w, r, maxRegistration, &body); err != nil {
		writeJSON(w, err.Status, detail{err.Error()})
		return
	}
	addr := Address(r)
	if wait := s.cfg.Attempts.Blocked(addr); wait > 0 {
		tooMany(w, r, wait)
		return
	}
	got, err := s.cfg.Authority.Register(r.Context(), addr.String(), body)
	switch {
	case err != nil:
		if errors.Is(err, auth.ErrRefused) {
			s.cfg.Attempts.Fail(addr)
		}
		s.authError(w, err)
	case got.RequestID != "":
		writeJSON(w, http.StatusAccepted, pendingAnswer{"pending", got.RequestID, s.cfg.Authority.ServerID()})
	default:
		s.answerToken(w, got.Token)
	}
}

// refresh is POST /auth/refresh (W-17).
func (s *Server) refresh(w http.ResponseWriter, r *http.Request) {
	addr := Address(r)
	token, ok := bearerToken(r.Header["Authorization"])
	if !ok {
		s.unauthorized(w, r, "invalid_request", "one bearer token is needed")
		return
	}
	if wait := s.cfg.Attempts.Blocked(addr); wait > 0 && !s.cfg.Authority.Knows(token) {
		tooMany(w, r, wait)
		return
	}
	t, err := s.cfg.Authority.Refresh(r.Context(), token)
	switch {
	case errors.Is(err, auth.ErrToken):
		s.cfg.Attempts.Fail(addr)
		s.cfg.Log.Debug().Err(err).Msg("a token was not refreshed")
		s.unauthorized(w, r, "invalid_token", "the token is not acceptable")
	case err != nil:
		s.authError(w, err)
	default:
		s.answerToken(w, t)
	}
}

func (s *Server) jwks(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "max-age=60")
	writeRaw(w, http.StatusOK, s.cfg.Authority.JWKS())
}

type detail struct {
	Detail string `json:"detail"`
}

// authError maps errors of the authority.
func (s *Server) authError(w http.ResponseWriter, err error) {
	status, text := http.StatusInternalServerError, "internal error; yaya's log has the details"
	for _, known := range []struct {
		err    error
		status int
	}{
		{auth.ErrBadRequest, http.StatusBadRequest},
		{auth.ErrConflict, http.StatusConflict},
		{auth.ErrRefused, http.StatusUnauthorized},
		{auth.ErrBusy, http.StatusTooManyRequests},
	} {
		if errors.Is(err, known.err) {
			status, text = known.status, err.Error()
		}
	}
	if errors.Is(err, control.ErrUnavailable) {
		status, text = http.StatusServiceUnavailable, "nothing can be changed now"
		w.Header().Set("Retry-After", "5")
	}
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "60")
	}
	if status >= http.StatusInternalServerError {
		s.cfg.Log.Error().Err(err).Msg("a device could not be served")
	}
	writeJSON(w, status, detail{text})
}
