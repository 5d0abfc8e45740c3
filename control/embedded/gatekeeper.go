package embedded

import (
	"crypto/rand"
	"crypto/subtle"

	"github.com/nats-io/nats-server/v2/server"
)

// The users of a server: one for the log, and one that changes which servers keep it.
const (
	logUser    = "log"
	systemUser = "system"
)

// gatekeeper admits this process to its server. The server's own list of users would do, but for a
// rule that admits everybody without a password, when no account is defined but that of the system.
type gatekeeper struct {
	passwords map[string]string
	system    func() *server.Account
}

// newGatekeeper makes passwords, which do not leave this process.
func newGatekeeper() *gatekeeper {
	return &gatekeeper{passwords: map[string]string{logUser: rand.Text(), systemUser: rand.Text()}}
}

// Check implements [server.Authentication].
func (g *gatekeeper) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	password, known := g.passwords[o.Username]
	if !known || subtle.ConstantTimeCompare([]byte(password), []byte(o.Password)) != 1 {
		return false
	}
	u := &server.User{Username: o.Username}
	if o.Username == systemUser {
		u.Account = g.system()
	}
	c.RegisterUser(u)
	return true
}
