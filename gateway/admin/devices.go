package admin

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/api"
)

type (
	InDevice struct {
		ID string `path:"id" maxLength:"128"`
	}
	inRequest struct {
		Body struct {
			Request string `json:"request" maxLength:"256" doc:"its id, or that of the device"`
		}
	}
)

// scopes reads scopes, the default ones if there are none.
func scopes(words []string) ([]auth.Scope, error) {
	if words == nil {
		words = []string{"default"}
	}
	return auth.ParseScopes(words...)
}

func (a *API) deviceRoutes() {
	r := routes{a, "devices", a.cfg.Devices != nil, "devices"}
	handle(r, "GET", "/api/devices", "listDevices", api.For(auth.DevicesRead), "List devices, waiting ones first", http.StatusOK, func(ctx context.Context, _ *none) (*struct{ Body []auth.DeviceInfo }, error) {
		all, err := a.cfg.Devices.Devices(auth.FromContext(ctx))
		return &struct{ Body []auth.DeviceInfo }{all}, err
	})
	handle(r, "POST", "/api/devices/invite", "inviteDevice", api.For(auth.DevicesApprove), "Create a code that enrolls one device", http.StatusCreated, func(ctx context.Context, in *struct {
		Body struct {
			Label  string   `json:"label,omitempty" maxLength:"256"`
			Scopes []string `json:"scopes,omitempty" maxItems:"64" doc:"the default ones if there are none"`
			URL    string   `json:"url,omitempty" maxLength:"1024" doc:"where the device reaches this yaya: the answer has a QR code with it"`
		}
	},
	) (*struct{ Body Invitation }, error) {
		s, err := scopes(in.Body.Scopes)
		if err != nil {
			return nil, err
		}
		return a.invite(ctx, in.Body.Label, s, in.Body.URL)
	})
	handle(r, "POST", "/api/devices/approve", "approveDevice", api.For(auth.DevicesApprove), "Approve a waiting device", http.StatusOK, func(ctx context.Context, in *struct {
		Body struct {
			Request string   `json:"request" maxLength:"256" doc:"its id, or that of the device"`
			Scopes  []string `json:"scopes,omitempty" maxItems:"64"`
		}
	},
	) (*struct{ Body auth.DeviceInfo }, error) {
		s, err := scopes(in.Body.Scopes)
		if err != nil {
			return nil, err
		}
		d, err := a.cfg.Devices.Approve(ctx, auth.FromContext(ctx), in.Body.Request, s)
		return &struct{ Body auth.DeviceInfo }{d}, err
	})
	handle(r, "POST", "/api/devices/reject", "rejectDevice", api.For(auth.DevicesApprove), "Reject a waiting device", http.StatusNoContent, func(ctx context.Context, in *inRequest) (*none, error) {
		return nil, a.cfg.Devices.Reject(auth.FromContext(ctx), in.Body.Request)
	})
	handle(r, "POST", "/api/devices/rotate-keys", "rotateKeys", api.For(auth.DevicesManage), "Sign tokens with a new key", http.StatusOK, func(ctx context.Context, in *struct {
		Body struct {
			DropEarlier bool `json:"drop_earlier,omitempty" doc:"ends the tokens that are out"`
		}
	},
	) (*struct {
		Body struct {
			KeyID string `json:"kid"`
		}
	}, error,
	) {
		kid, err := a.cfg.Devices.RotateKeys(ctx, auth.FromContext(ctx), in.Body.DropEarlier)
		out := new(struct {
			Body struct {
				KeyID string `json:"kid"`
			}
		})
		out.Body.KeyID = kid
		return out, err
	})
	handle(r, "POST", "/api/devices/{id}/revoke", "revokeDevice", api.For(auth.DevicesManage), "Revoke a device at once", http.StatusNoContent, func(ctx context.Context, in *struct {
		InDevice
		Body struct {
			Reason string `json:"reason,omitempty" maxLength:"1024"`
		}
	},
	) (*none, error) {
		return nil, a.cfg.Devices.Revoke(ctx, auth.FromContext(ctx), in.ID, in.Body.Reason)
	})
	handle(r, "PUT", "/api/devices/{id}/scopes", "setScopes", api.For(auth.DevicesManage), "Change what a device may do", http.StatusNoContent, func(ctx context.Context, in *struct {
		InDevice
		Body struct {
			Scopes []string `json:"scopes" maxItems:"64"`
		}
	},
	) (*none, error) {
		s, err := auth.ParseScopes(in.Body.Scopes...)
		if err != nil {
			return nil, err
		}
		return nil, a.cfg.Devices.SetScopes(ctx, auth.FromContext(ctx), in.ID, s)
	})
	r.tag, r.have, r.what = "audit", a.cfg.Control != nil, "audit"
	handle(r, "GET", "/api/audit", "audit", api.For(auth.AuditRead), "List the last audit entries that match", http.StatusOK, a.audit)
}

// Invitation is a code that enrolls one device, and where to use it.
type Invitation struct {
	auth.Invitation
	// Fingerprint is that of the server's key. The client compares it, because no
	// authority has signed the certificate.
	Fingerprint string `json:"tls_fingerprint,omitempty" doc:"of the server's key, to compare; empty when an authority has signed its certificate"`
	// QR is a QR code of <url>/#code=<code>, a string of 0 and 1 for each row. The
	// code stands behind #, which browsers keep to themselves.
	QR []string `json:"qr,omitempty"`
}

// Link is the address of a page that has a code filled in, and the fingerprint of the
// server's key beside it, for clients that compare it by themselves.
func (i Invitation) Link(at string) string {
	link := strings.TrimSuffix(at, "/") + "/#code=" + i.Code
	if i.Fingerprint != "" {
		link += "&key=" + i.Fingerprint
	}
	return link
}

func (a *API) invite(ctx context.Context, label string, s []auth.Scope, at string) (*struct{ Body Invitation }, error) {
	if at != "" {
		if err := checkURL(at); err != nil {
			return nil, err
		}
	}
	inv, err := a.cfg.Devices.Invite(ctx, auth.FromContext(ctx), label, s)
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Invitation }{Invitation{Invitation: inv}}
	if a.cfg.Fingerprint != nil {
		out.Body.Fingerprint = a.cfg.Fingerprint()
	}
	if at != "" {
		out.Body.QR, err = qr(out.Body.Link(at))
	}
	return out, err
}

// inAudit is a query of the audit.
type inAudit struct {
	Actor  string    `query:"actor" maxLength:"256"`
	Target string    `query:"target" maxLength:"256"`
	Event  string    `query:"event" maxLength:"128" doc:"a name, or a pattern as in device_*"`
	Since  time.Time `query:"since" doc:"RFC 3339"`
	Until  time.Time `query:"until" doc:"RFC 3339"`
	After  int64     `query:"after" minimum:"0" doc:"index"`
	Before int64     `query:"before" minimum:"0" doc:"index; 0 for none: the last entries before it, for the page before another"`
	Limit  int       `query:"limit" minimum:"1" maximum:"10000" default:"1000"`
}

func (a *API) audit(ctx context.Context, in *inAudit) (*struct{ Body []control.Audit }, error) {
	out, err := control.AuditLog(ctx, a.cfg.Control, control.Query{Since: in.Since, Until: in.Until, Actor: in.Actor, Target: in.Target, Event: in.Event, After: in.After, Before: in.Before, Limit: in.Limit})
	return &struct{ Body []control.Audit }{out}, err
}
