package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// The form of a lasting token: a prefix that scanners for secrets can look for, 52
// symbols of Crockford's base 32 (260 random bits), and a CRC-32 of what stands before
// it in 7 more, so that they can distinguish a token from similar text:
// yaya_[0-9A-HJKMNP-TV-Z]{59}.
const (
	LastingPrefix = "yaya_"
	secretLength  = 52
	sumLength     = 7
	lastingLength = len(LastingPrefix) + secretLength + sumLength
)

// Bounds of lasting tokens.
const (
	maxLasting        = 256 // that are not revoked
	maxLastingServers = 64  // that one token names
	maxServerName     = 128
	maxLastingLife    = 10 * 365 * 24 * time.Hour
)

// deviceScopes are never granted to lasting tokens: with the first two a token
// could enroll devices that remain after its end, and the others are for kernels.
var deviceScopes = []Scope{DevicesApprove, DevicesManage, KernelAttach, SkillsInvoke}

var lastingName = lazyregexp.New(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$`)

// lasting is a token that is valid until it is revoked or expires.
type lasting struct {
	name    string
	sum     [32]byte // SHA-256 of the token: 260 random bits need no slower hash
	scopes  []Scope
	servers []string  // that it is for; none means all
	expires time.Time // zero for never
	since   time.Time
	by      string
	index   int64 // of its entry in the control log, which no other token has
	turn    int   // of the tokens that had the name, from 1 on
}

// principal returns the principal id of the token's holder. The name alone is not
// enough, because a revoked token's name can be used again, and the new holder must
// not find anything that the former one left. The first token of a name has the plain
// name.
func (t *lasting) principal() string {
	if t.turn <= 1 {
		return t.name
	}
	return t.name + "#" + strconv.Itoa(t.turn) // no name has a #
}

// lastingCreated is the payload of evLastingCreated.
type lastingCreated struct {
	Sum     string    `json:"sha256"`
	Scopes  []Scope   `json:"scopes"`
	Servers []string  `json:"servers,omitempty"`
	Expires time.Time `json:"expires_at,omitzero"`
}

const (
	evLastingCreated = "token_created"
	evLastingRevoked = "token_revoked"
)

// LastingInfo describes a lasting token; the token itself is not stored.
type LastingInfo struct {
	Name      string    `json:"name"`
	Principal string    `json:"principal" doc:"principal of its holder's calls: token:<name>, and token:<name>#<n> for the nth token of that name"`
	Status    string    `json:"status" doc:"active or expired"`
	Scopes    []Scope   `json:"scopes"`
	Servers   []string  `json:"servers,omitempty" doc:"the MCP servers that it may use; empty for all"`
	Expires   time.Time `json:"expires_at,omitzero"`
	Since     time.Time `json:"since"`
	CreatedBy string    `json:"created_by"`
	LastUsed  time.Time `json:"last_used,omitzero" doc:"to the minute"`
}

// NewLasting describes a lasting token to create.
type NewLasting struct {
	Name    string
	Scopes  []Scope
	Servers []string  // that it is for; none means all
	Expires time.Time // zero for never
}

// IsLasting reports whether a token has the form of a lasting one.
func IsLasting(token string) bool { return strings.HasPrefix(token, LastingPrefix) }

func newLasting() string {
	body := LastingPrefix + newSecret(secretLength)
	return body + lastingSum(body)
}

// lastingSum returns the checksum of a token's first part.
func lastingSum(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	out := make([]byte, sumLength)
	for i := range out {
		out[i] = symbols[sum>>(5*(sumLength-1-i))&31]
	}
	return string(out)
}

// wellFormed reports whether a token could have been created here.
func wellFormed(token string) bool {
	if len(token) != lastingLength || !IsLasting(token) {
		return false
	}
	body := token[:lastingLength-sumLength]
	return lastingSum(body) == token[len(body):]
}

func (n *NewLasting) check(now time.Time) error {
	switch {
	case !lastingName().MatchString(n.Name):
		return fmt.Errorf("%w: %q cannot be the name of a token, which has 1 to 64 letters, digits, dots, dashes and underscores and begins with a letter or digit", ErrBadRequest, clean(n.Name, 80))
	case len(n.Scopes) == 0:
		return fmt.Errorf("%w: a token needs at least one scope", ErrBadRequest)
	case !n.Expires.IsZero() && !n.Expires.After(now):
		return fmt.Errorf("%w: the token would have expired already", ErrBadRequest)
	case !n.Expires.IsZero() && n.Expires.Sub(now) > maxLastingLife:
		return fmt.Errorf("%w: a token expires within ten years, or never", ErrBadRequest)
	case len(n.Servers) > maxLastingServers:
		return fmt.Errorf("%w: a token names at most %d servers", ErrBadRequest, maxLastingServers)
	case len(n.Servers) > 0 && !slices.Equal(n.Scopes, []Scope{ToolsCall}):
		// Other scopes reach servers in other ways: an agent can use all of them.
		return fmt.Errorf("%w: a token for some servers has the scope %s and no other", ErrBadRequest, ToolsCall)
	}
	for _, s := range n.Scopes {
		if slices.Contains(deviceScopes, s) {
			return fmt.Errorf("%w: a lasting token cannot have the scope %s, which is for devices, because they prove their identity with a key", ErrBadRequest, s)
		}
	}
	for _, s := range n.Servers {
		if s == "" || len(s) > maxServerName || clean(s, maxServerName) != s {
			return fmt.Errorf("%w: %q cannot be the name of a server", ErrBadRequest, clean(s, 80))
		}
	}
	slices.Sort(n.Servers)
	n.Servers = slices.Compact(n.Servers)
	return nil
}

// CreateLasting creates a token that is valid until it is revoked or expires, and
// returns it; it cannot be retrieved later. An actor can grant only scopes that it
// has, and none that is for devices only. It needs [DevicesManage].
func (a *Authority) CreateLasting(ctx context.Context, actor Principal, n NewLasting) (string, LastingInfo, error) {
	if err := errors.Join(Allow(actor, DevicesManage), within(actor, n.Scopes)); err != nil {
		return "", LastingInfo{}, err
	}
	if err := n.check(a.cfg.Now()); err != nil {
		return "", LastingInfo{}, err
	}
	if err := a.nameable(n.Name); err != nil {
		return "", LastingInfo{}, err
	}
	token := newLasting()
	sum := sha256.Sum256([]byte(token))
	_, err := a.log.Append(ctx, control.Change{
		Event: evLastingCreated, Actor: actor.Actor(), Target: n.Name, Payload: lastingCreated{hex.EncodeToString(sum[:]), n.Scopes, n.Servers, n.Expires},
	}, func() error {
		a.mu.RLock()
		defer a.mu.RUnlock()
		if a.lastingNamed(n.Name) != nil {
			return fmt.Errorf("%w: there is a token %s already: revoke it first, or choose another name", ErrExists, n.Name)
		}
		if len(a.lasting) >= maxLasting {
			return fmt.Errorf("%w: there are %d tokens, which is the limit: revoke those that nobody uses", ErrExists, maxLasting)
		}
		return nil
	})
	if err != nil {
		return "", LastingInfo{}, err
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	if t := a.lasting[sum]; t != nil {
		return token, a.lastingInfo(t), nil
	}
	return "", LastingInfo{}, fmt.Errorf("%w: the token was revoked at once", ErrRefused)
}

// RevokeLasting revokes a token and ends its open connections and calls. The
// revocation is durable when it returns. It needs [DevicesManage].
func (a *Authority) RevokeLasting(ctx context.Context, actor Principal, name string) error {
	if err := Allow(actor, DevicesManage); err != nil {
		return err
	}
	if !lastingName().MatchString(name) {
		return fmt.Errorf("token %q is %w", clean(name, 80), ErrNotFound)
	}
	_, err := a.log.Append(ctx, control.Change{Event: evLastingRevoked, Actor: actor.Actor(), Target: name}, func() error {
		a.mu.RLock()
		defer a.mu.RUnlock()
		if a.lastingNamed(name) == nil {
			return fmt.Errorf("token %q is %w", name, ErrNotFound)
		}
		return nil
	})
	return err
}

// LastingTokens lists the tokens by name, including expired ones. It needs
// [DevicesRead].
func (a *Authority) LastingTokens(actor Principal) ([]LastingInfo, error) {
	if err := Allow(actor, DevicesRead); err != nil {
		return nil, err
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	out := make([]LastingInfo, 0, len(a.lasting))
	for _, t := range a.lasting {
		out = append(out, a.lastingInfo(t))
	}
	slices.SortFunc(out, func(x, y LastingInfo) int { return strings.Compare(x.Name, y.Name) })
	return out, nil
}

// lastingInfo describes a token; mu is held.
func (a *Authority) lastingInfo(t *lasting) LastingInfo {
	i := LastingInfo{Name: t.name, Principal: Principal{Kind: Lasting, ID: t.principal()}.Name(), Status: "active", Scopes: t.scopes, Servers: t.servers, Expires: t.expires, Since: t.since, CreatedBy: t.by}
	if a.lastingHolds(t) != nil {
		i.Status = "expired"
	}
	a.used.mu.Lock()
	defer a.used.mu.Unlock()
	i.LastUsed = a.used.at[t.index]
	return i
}

// lastingNamed finds a token; mu is held.
func (a *Authority) lastingNamed(name string) *lasting {
	for _, t := range a.lasting {
		if t.name == name {
			return t
		}
	}
	return nil
}

func (a *Authority) applyLasting(e control.Entry) error {
	if e.Event == evLastingRevoked {
		if t := a.lastingNamed(e.Target); t != nil {
			delete(a.lasting, t.sum)
			a.used.forget(t.index)
		}
		return nil
	}
	var p lastingCreated
	if err := e.Decode(&p); err != nil {
		return err
	}
	t := &lasting{name: e.Target, scopes: p.Scopes, servers: p.Servers, expires: p.Expires, since: e.Time, by: e.Actor, index: e.Index}
	if n, err := hex.Decode(t.sum[:], []byte(p.Sum)); err != nil || n != len(t.sum) {
		return fmt.Errorf("control log, entry %d (%s): sha256 is not the hash of a token", e.Index, e.Event)
	}
	a.turns[t.name]++
	t.turn = a.turns[t.name]
	a.lasting[t.sum] = t
	return nil
}

// findLasting returns a known token, whether it is still valid or not. mu is held.
func (a *Authority) findLasting(token string) *lasting {
	if !wellFormed(token) {
		return nil
	}
	sum := sha256.Sum256([]byte(token))
	t := a.lasting[sum]
	if t == nil || subtle.ConstantTimeCompare(t.sum[:], sum[:]) != 1 {
		return nil
	}
	return t
}

// lastingHolds reports whether a token is valid now; mu is held.
func (a *Authority) lastingHolds(t *lasting) error {
	switch {
	case a.lasting[t.sum] != t:
		return fmt.Errorf("%w: it has been revoked", ErrToken)
	case !t.expires.IsZero() && !a.cfg.Now().Before(t.expires):
		return a.expired()
	}
	return nil
}

// VerifyLasting returns the principal of a lasting token. An error wraps
// [ErrToken] or [ErrBehind].
func (a *Authority) VerifyLasting(token string) (Principal, error) {
	if err := a.current(); err != nil {
		return Principal{}, err
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	t := a.findLasting(token)
	if t == nil {
		return Principal{}, fmt.Errorf("%w: it was not created here, or has been revoked", ErrToken)
	}
	if err := a.lastingHolds(t); err != nil {
		return Principal{}, err
	}
	a.used.note(t.index, a.cfg.Now())
	return Principal{Kind: Lasting, ID: t.principal(), authority: a, lasting: t}, nil
}

// KnowsLasting reports whether a token was created here and is still valid, so that
// its holder need not be limited as a guesser.
func (a *Authority) KnowsLasting(token string) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	t := a.findLasting(token)
	return t != nil && a.lastingHolds(t) == nil
}

// lastingScopes looks up the scopes of a token.
func (a *Authority) lastingScopes(p Principal) []Scope {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if p.lasting == nil || a.lastingHolds(p.lasting) != nil {
		return nil
	}
	return p.lasting.scopes
}

// Servers returns the MCP servers to which the principal is limited; none means
// all.
func (p Principal) Servers() []string {
	if p.lasting == nil {
		return nil
	}
	return p.lasting.servers
}
