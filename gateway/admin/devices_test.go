package admin_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/auth"
)

func (w *world) waiting(id string) {
	w.t.Helper()
	pub, _, _ := ed25519.GenerateKey(rand.Reader)
	if _, err := w.dev.Register(w.t.Context(), "p", auth.Registration{PublicKey: base64.StdEncoding.EncodeToString(pub), DeviceID: id, Label: id}); err != nil {
		w.t.Fatal(err)
	}
}

// Devices over HTTP: listed, invited, approved, rejected, revoked; and the audit
// says who did it (W-44, W-45).
func TestDevices(t *testing.T) {
	w := newWorld(t)
	w.want("GET", "/api/devices", "", 200, "[]")
	w.want("POST", "/api/devices/invite", `{"label":"Phone"}`, 201, `"code":"`)
	w.want("POST", "/api/devices/invite", `{"scopes":["all"]}`, 400, "unknown scope")
	w.waiting("phone")
	w.waiting("tablet")
	w.want("GET", "/api/devices", "", 200, `"status":"pending"`)
	w.want("POST", "/api/devices/approve", `{"request":"nobody"}`, 404, "not known")
	w.want("POST", "/api/devices/approve", `{"request":"phone"}`, 200, `"scopes":["agents:read","memory:read","sessions:read","sessions:write"]`)
	w.want("POST", "/api/devices/reject", `{"request":"tablet"}`, 204, "")
	w.want("PUT", "/api/devices/phone/scopes", `{"scopes":["audit:read"]}`, 204, "")
	if got := w.want("GET", "/api/devices", "", 200, `"scopes":["audit:read"]`); strings.Contains(got, "tablet") {
		t.Errorf("a rejected device is listed: %s", got)
	}
	w.want("POST", "/api/devices/phone/revoke", `{"reason":"lost"}`, 204, "")
	w.want("POST", "/api/devices/nobody/revoke", `{}`, 404, "not known")
	w.want("PUT", "/api/devices/phone/scopes", `{"scopes":["audit:read"]}`, 404, "not known")
	w.want("GET", "/api/devices", "", 200, `"status":"revoked"`)
	w.want("POST", "/api/devices/rotate-keys", `{"drop_earlier":true}`, 200, `"kid":"`)

	got := w.want("GET", "/api/audit?target=phone", "", 200, `"event":"device_revoked","actor":"owner","target":"phone"`)
	if strings.Count(got, `"raft_log_index"`) != 3 {
		t.Errorf("the audit: %s", got)
	}
	w.want("GET", "/api/audit?event=signing_*&limit=1", "", 200, `"signing_key_added"`)
	w.want("GET", "/api/audit?since=2100-01-01T00:00:00Z", "", 200, "[]")
	w.want("GET", "/api/audit?since=yesterday", "", 400, "query.since")
	w.want("GET", "/api/audit?limit=0", "", 400, "limit")
	w.want("GET", "/api/audit?after=-1", "", 400, "after")

	// AU-37: the same rules over HTTP; what a secret is only those see who could
	// change it.
	w.who = auth.Principal{Kind: auth.External, ID: "issuer|eve"}
	w.want("POST", "/api/devices/invite", `{}`, 403, "scope")
	w.want("POST", "/api/devices/approve", `{"request":"phone"}`, 403, "scope")
	w.want("POST", "/api/devices/phone/revoke", `{}`, 403, "scope")
	w.want("GET", "/api/llm-providers?show=1", "", 403, "config:write")
}
