package admin

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/cluster"
	"github.com/yaya-ai/yaya/internal/control"
)

// deviceError maps errors of the authority; nil stays nil.
func deviceError(err error) error {
	for _, known := range []struct {
		err    error
		status int
	}{
		{control.ErrUnavailable, http.StatusServiceUnavailable},
		{auth.ErrForbidden, http.StatusForbidden},
		{auth.ErrBadRequest, http.StatusBadRequest},
		{auth.ErrNotFound, http.StatusNotFound},
		{auth.ErrConflict, http.StatusConflict},
		{auth.ErrBusy, http.StatusTooManyRequests},
	} {
		if errors.Is(err, known.err) {
			return fail(known.status, "%v", err)
		}
	}
	return err
}

func (a *API) listDevices(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	all, err := a.cfg.Devices.Devices(auth.FromContext(r.Context()))
	return http.StatusOK, all, deviceError(err)
}

// scopes reads scopes, the default ones if there are none.
func scopes(words []string) ([]auth.Scope, error) {
	if words == nil {
		words = []string{"default"}
	}
	return auth.ParseScopes(words...)
}

func (a *API) inviteDevice(w http.ResponseWriter, r *http.Request) (int, any, error) {
	var body struct {
		Label  string   `json:"label"`
		Scopes []string `json:"scopes"`
	}
	if err := decode(w, r, &body); err != nil {
		return 0, nil, err
	}
	s, err := scopes(body.Scopes)
	if err != nil {
		return 0, nil, deviceError(err)
	}
	inv, err := a.cfg.Devices.Invite(r.Context(), auth.FromContext(r.Context()), body.Label, s)
	return http.StatusCreated, inv, deviceError(err)
}

func (a *API) approveDevice(w http.ResponseWriter, r *http.Request) (int, any, error) {
	var body struct {
		Request string   `json:"request"` // its id, or that of the device
		Scopes  []string `json:"scopes"`
	}
	if err := decode(w, r, &body); err != nil {
		return 0, nil, err
	}
	s, err := scopes(body.Scopes)
	if err != nil {
		return 0, nil, deviceError(err)
	}
	d, err := a.cfg.Devices.Approve(r.Context(), auth.FromContext(r.Context()), body.Request, s)
	return http.StatusOK, d, deviceError(err)
}

func (a *API) rejectDevice(w http.ResponseWriter, r *http.Request) (int, any, error) {
	var body struct {
		Request string `json:"request"`
	}
	if err := decode(w, r, &body); err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, deviceError(a.cfg.Devices.Reject(auth.FromContext(r.Context()), body.Request))
}

func (a *API) revokeDevice(w http.ResponseWriter, r *http.Request) (int, any, error) {
	var body struct {
		Reason string `json:"reason"`
	}
	if err := decode(w, r, &body); err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, deviceError(a.cfg.Devices.Revoke(r.Context(), auth.FromContext(r.Context()), r.PathValue("id"), body.Reason))
}

func (a *API) setScopes(w http.ResponseWriter, r *http.Request) (int, any, error) {
	var body struct {
		Scopes []string `json:"scopes"`
	}
	if err := decode(w, r, &body); err != nil {
		return 0, nil, err
	}
	s, err := auth.ParseScopes(body.Scopes...)
	if err != nil {
		return 0, nil, deviceError(err)
	}
	return http.StatusNoContent, nil, deviceError(a.cfg.Devices.SetScopes(r.Context(), auth.FromContext(r.Context()), r.PathValue("id"), s))
}

func (a *API) rotateKeys(w http.ResponseWriter, r *http.Request) (int, any, error) {
	var body struct {
		DropEarlier bool `json:"drop_earlier"`
	}
	if err := decode(w, r, &body); err != nil {
		return 0, nil, err
	}
	kid, err := a.cfg.Devices.RotateKeys(r.Context(), auth.FromContext(r.Context()), body.DropEarlier)
	return http.StatusOK, map[string]string{"kid": kid}, deviceError(err)
}

// defaultAudit is how many of the last entries an audit query returns that does
// not say how many.
const defaultAudit = 1000

func (a *API) audit(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	v := r.URL.Query()
	q := cluster.Query{Actor: v.Get("actor"), Target: v.Get("target"), Event: v.Get("event"), Limit: defaultAudit}
	for name, at := range map[string]*time.Time{"since": &q.Since, "until": &q.Until} {
		if s := v.Get(name); s != "" {
			t, err := time.Parse(time.RFC3339, s)
			if err != nil {
				return 0, nil, fail(http.StatusBadRequest, "%s is no time (RFC 3339)", name)
			}
			*at = t
		}
	}
	if s := v.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 10_000 {
			return 0, nil, fail(http.StatusBadRequest, "limit is a number from 1 to 10000")
		}
		q.Limit = n
	}
	if s := v.Get("after"); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 0 {
			return 0, nil, fail(http.StatusBadRequest, "after is an index")
		}
		q.After = n
	}
	out, err := cluster.AuditLog(a.cfg.Control, q)
	return http.StatusOK, out, err
}
