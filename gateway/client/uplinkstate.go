package client

import (
	"errors"
	"io/fs"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/internal/keypin"
)

// sayAgain is how often a gateway that stays away is logged for the same reason, and
// sayMost how many reasons are logged meanwhile.
const (
	sayAgain = 10 * time.Minute
	sayMost  = 5
)

// errNotTaken says that the gateway admits the device, but not its kernel.
var errNotTaken = errors.New("the gateway does not take this kernel: its device needs the scope kernel:attach, and the kernel's id must be its own")

// offer has the kernel's topic joined on a new connection, if the gateway had refused it
// on the last one.
func (u *Uplink) offer() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.client.keepJoined(u.kernel)
}

// retake connects again when the gateway does not take this kernel: its device may have
// got the scope meanwhile.
func (u *Uplink) retake() {
	u.mu.Lock()
	due := !u.connected && errors.Is(u.reason, errNotTaken) && time.Since(u.asked) >= lastRetry
	if due {
		u.again, u.asked = true, time.Now()
	}
	u.mu.Unlock()
	if due {
		u.client.Reconnect()
	}
}

// lost is called when the gateway cannot be reached, or refuses this kernel. It is called
// at each attempt that fails, and logs the first, each other reason, and all of them from
// time to time.
func (u *Uplink) lost(why error) {
	now := time.Now()
	u.mu.Lock()
	if u.again {
		u.again = false
		u.mu.Unlock()
		return
	}
	was := u.connected
	u.connected = false
	if was {
		u.contact = now
	}
	if was || u.reason == nil {
		u.since = now
	}
	u.reason, u.asked = why, now
	say := why.Error() != u.said || now.Sub(u.saidAt) >= sayAgain
	if say {
		u.said, u.saidAt = why.Error(), now
	}
	u.mu.Unlock()
	if say {
		u.few.Warn().Err(why).Str("gateway", u.cfg.Options.Credentials.URL).Str("remedy", remedy(why, u.cfg.Options.Credentials.URL)).Msg("the gateway cannot be reached: local-only mode")
	}
	if was {
		u.bridge("bridge_disconnected", now)
	}
}

// UplinkState is how a kernel's connection with its gateway is.
type UplinkState struct {
	Connected bool
	Since     time.Time // zero before the first attempt has ended
	Reason    error     // why not; nil when connected
	Refused   bool      // no attempt succeeds until somebody does what Remedy says
	Remedy    string    // of a refusal; else ""
}

// State returns how the connection is, and why it is not there.
func (u *Uplink) State() UplinkState {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := UplinkState{Connected: u.connected, Since: u.since, Reason: u.reason}
	if s.Reason != nil {
		s.Remedy = remedy(s.Reason, u.cfg.Options.Credentials.URL)
		s.Refused = s.Remedy != ""
	}
	return s
}

// remedy says what to do about a gateway that no further attempt reaches, "" when to wait
// is enough. The credentials are read again at each attempt.
func remedy(why error, url string) string {
	const code = " --code CODE, with a code of \"yaya device invite\" there"
	switch {
	case errors.Is(why, keypin.ErrOther):
		return "compare both fingerprints on the gateway's machine; if its key was replaced there: yaya connect " + url + code + ", and with --fingerprint and the new key's; this yaya takes it over at its next attempt"
	case errors.Is(why, ErrUnsigned):
		return "yaya connect " + url + code + ", and with --fingerprint; this yaya takes it over at its next attempt"
	case errors.Is(why, auth.ErrOtherServer):
		return "if the gateway was set up again there: yaya connect " + url + " --forget, then yaya connect " + url + code
	case errors.Is(why, errNotTaken):
		return "yaya connect " + url + " --code CODE, with a code of \"yaya device invite --scopes default,kernel:attach\" there; this yaya asks again within two minutes"
	case errors.Is(why, ErrRefused), errors.Is(why, fs.ErrNotExist):
		return "yaya connect " + url + code + "; this yaya takes it over at its next attempt"
	}
	return ""
}
