package auth

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/golang-jwt/jwt/v5"

	"github.com/yaya-ai/yaya/control"
)

// Errors of an [Authority], besides those of the control log.
var (
	ErrBadRequest = errors.New("invalid request")
	ErrConflict   = errors.New("the device id belongs to another key")
	ErrExists     = errors.New("no token was made")
	ErrRefused    = errors.New("refused")
	ErrNotFound   = errors.New("not known")
	ErrBusy       = errors.New("too many devices are waiting for approval")
	// ErrBehind is wrapped when a node of a cluster has not heard from the others for so
	// long that it cannot know whose rights they have revoked.
	ErrBehind = errors.New("this node is cut off from the others, and cannot know who was revoked")
)

// AuthorityConfig assembles an [Authority]. Keys is required.
type AuthorityConfig struct {
	Keys *os.Root // the folder of private keys, 0700; must stay open as long as the authority is in use
	// Known reports that this yaya has run before: then a missing key is an error, and
	// the authority does not create one.
	Known bool
	// Node names this yaya among those that share a log and an identity key; "" if it
	// is alone. Each node signs tokens with a key of its own, and all verify them.
	Node string
	// TokenLife is the lifetime of a token: at most, and by default, 24 hours.
	TokenLife time.Duration
	// Conceal replaces secrets in names and reasons that a caller has chosen, which the
	// control log keeps. Default: as they are.
	Conceal func(string) string
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// GenerateKey creates signing keys. Default: RSA, 3,072 bits.
	GenerateKey func() (*rsa.PrivateKey, error)
}

// Authority knows the devices of this yaya, and issues and verifies their tokens.
// It is a projection of the control log: pass it when you open the log, and then
// pass the log to [Authority.Start]. All methods are safe for concurrent use.
type Authority struct {
	cfg      AuthorityConfig
	serverID string
	codeKey  []byte
	parser   *jwt.Parser
	clock    *clock
	log      control.Log

	making sync.Mutex // held while a signing key is created

	mu       sync.RWMutex
	keys     map[string]signingKey
	signs    string          // kid of this node's key that signs, "" before there is one
	private  *rsa.PrivateKey // of signs
	devices  map[string]*device
	invites  map[string]*invite
	pending  map[string]*pending
	verified map[[32]byte]*claimsOf
	holders  map[*hold]struct{}
	lasting  map[[32]byte]*lasting // by the hash of the token
	turns    map[string]int        // how many tokens have had a name, the revoked ones included
	onWait   func()
	onScopes func(device string)

	newest time.Time // of the entries that the clock has seen

	used lastUses[int64]
	seen lastUses[string] // devices
}

// OnScopes makes the authority call f when a device's scopes have changed. f must
// not block. Call OnScopes once, before the authority is used.
func (a *Authority) OnScopes(f func(device string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onScopes = f
}

// OnWaiting makes the authority call f when a device starts to wait for approval,
// or was rejected: neither is in the control log. f must not block. Call OnWaiting
// once, before the authority is used.
func (a *Authority) OnWaiting(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onWait = f
}

// waited calls the function of OnWaiting; mu is held.
func (a *Authority) waited() {
	if a.onWait != nil {
		a.onWait()
	}
}

type device struct {
	key         ed25519.PublicKey
	fingerprint string
	label       string
	scopes      []Scope
	revoked     bool
	since       time.Time
	by          string
	families    map[string]*family
}

type family struct {
	current  string // jti of the token that can be refreshed
	expires  time.Time
	previous string // jti of the token that was exchanged for current, "" for the first
}

var _ control.Projection = (*Authority)(nil)

// NewAuthority reads this yaya's identity key, and creates it on the first start. It
// fails if a key file is damaged or others can read it, and if a key is missing
// although [AuthorityConfig.Known] is set.
func NewAuthority(cfg AuthorityConfig) (*Authority, error) {
	key, err := loadServerKey(cfg.Keys, cfg.Known)
	if err != nil {
		return nil, err
	}
	a := newAuthority(cfg)
	a.serverID, a.codeKey = serverID(key), key.Seed()
	a.parser = jwt.NewParser(
		jwt.WithValidMethods([]string{"RS256"}), jwt.WithIssuer(a.issuer()), jwt.WithAudience(a.issuer()), jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(), jwt.WithLeeway(leeway), jwt.WithTimeFunc(a.cfg.Now), jwt.WithStrictDecoding(),
	)
	return a, nil
}

// NewCensus returns an authority without keys. It applies the entries of a log that
// another process may be writing, and can be asked nothing but [Authority.Enrolled].
func NewCensus() *Authority { return newAuthority(AuthorityConfig{}) }

// newAuthority returns an authority that knows nobody yet.
func newAuthority(cfg AuthorityConfig) *Authority {
	cfg.TokenLife = min(cmp.Or(cfg.TokenLife, maxLifetime), maxLifetime)
	if cfg.Conceal == nil {
		cfg.Conceal = func(s string) string { return s }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.GenerateKey == nil {
		cfg.GenerateKey = func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, tokenKeyBits) }
	}
	c := newClock(cfg.Now)
	cfg.Now = c.Now
	return &Authority{
		cfg: cfg, clock: c, keys: map[string]signingKey{}, devices: map[string]*device{}, invites: map[string]*invite{},
		pending: map[string]*pending{}, verified: map[[32]byte]*claimsOf{}, holders: map[*hold]struct{}{},
		lasting: map[[32]byte]*lasting{}, turns: map[string]int{}, used: lastUses[int64]{at: map[int64]time.Time{}}, seen: lastUses[string]{at: map[string]time.Time{}},
	}
}

// Start begins to work with a log whose entries have been applied. It fails if the
// key that signs tokens is damaged; if it is missing, the next token makes another one.
func (a *Authority) Start(log control.Log) error {
	a.log = log
	return a.checkSigningKey()
}

// Now returns the time by which tokens expire: the machine's clock, unless that was
// set back behind the control log.
func (a *Authority) Now() time.Time { return a.clock.Now() }

// ClockBehind returns the reason if tokens are not dated by the machine's clock,
// else nil.
func (a *Authority) ClockBehind() error {
	if d := a.clock.behind(); d > 0 {
		return fmt.Errorf("this machine's clock is %v behind the newest entry of the audit: set it right; if that entry was written while the clock was ahead, run yaya device rotate-keys --drop-earlier, and devices get new tokens", d.Round(time.Second))
	}
	return nil
}

// Apply implements [control.Projection].
func (a *Authority) Apply(e control.Entry) error {
	a.mu.Lock()
	err := a.apply(e)
	ended, onScopes := a.ended(), a.onScopes
	a.mu.Unlock()
	for _, h := range ended {
		h.end()
	}
	if e.Event == evScopes && onScopes != nil {
		onScopes(e.Target)
	}
	return err
}

func (a *Authority) apply(e control.Entry) error {
	a.saw(e.Time)
	switch e.Event {
	case evSigningKey:
		return a.applyKey(e)
	case evInvited:
		return a.applyInvite(e)
	case evInviteWithdrawn:
		delete(a.invites, e.Target)
	case evEnrolled, evApproved:
		return a.applyDevice(e)
	case evLastingCreated, evLastingRevoked:
		return a.applyLasting(e)
	case evTokenIssued:
		return a.applyToken(e)
	case evFamilyRevoked:
		var p familyRevoked
		if err := e.Decode(&p); err != nil {
			return err
		}
		if d := a.devices[e.Target]; d != nil {
			delete(d.families, p.Family)
		}
	case evRevoked:
		if d := a.devices[e.Target]; d != nil {
			d.revoked = true
			clear(d.families)
		}
	case evScopes:
		var p scopesChanged
		if err := e.Decode(&p); err != nil {
			return err
		}
		if d := a.devices[e.Target]; d != nil {
			d.scopes = p.Scopes
		}
	}
	return nil
}

// The events of devices.
const (
	evInvited         = "device_invited"
	evInviteWithdrawn = "device_invite_withdrawn"
	evEnrolled        = "device_enrolled" // with a code
	evApproved        = "device_approved" // by somebody
	evRevoked         = "device_revoked"
	evScopes          = "device_scopes_changed"
)

// deviceAdded is the payload of evEnrolled and evApproved.
type deviceAdded struct {
	PublicKey []byte  `json:"public_key"`
	Label     string  `json:"label"`
	Scopes    []Scope `json:"scopes"`
	Invite    string  `json:"invite,omitempty"`
	By        string  `json:"approved_by"`
}

type scopesChanged struct {
	Scopes []Scope `json:"scopes"`
}

type revoked struct {
	Reason string `json:"reason"`
}

func (a *Authority) applyDevice(e control.Entry) error {
	var p deviceAdded
	if err := e.Decode(&p); err != nil {
		return err
	}
	delete(a.invites, p.Invite)
	a.devices[e.Target] = &device{
		key: p.PublicKey, fingerprint: fingerprint(p.PublicKey), label: p.Label, scopes: p.Scopes, since: e.Time, by: p.By, families: map[string]*family{},
	}
	return nil
}

// scopesOf looks up the scopes of a device.
func (a *Authority) scopesOf(p Principal) []Scope {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if p.claims == nil || a.holds(p.claims, leeway) != nil {
		return nil
	}
	return a.devices[p.ID].scopes
}

// DeviceInfo describes a device.
type DeviceInfo struct {
	ID          string    `json:"device_id"`
	Label       string    `json:"label"`
	Status      string    `json:"status"` // active, revoked, pending
	Fingerprint string    `json:"fingerprint"`
	Scopes      []Scope   `json:"scopes"`
	Since       time.Time `json:"since"`
	ApprovedBy  string    `json:"approved_by,omitempty"`
	RequestID   string    `json:"request_id,omitempty"` // of a pending one
	Peer        string    `json:"peer,omitempty"`       // where a pending one is
	Connections int       `json:"connections"`
	LastSeen    time.Time `json:"last_seen,omitzero" doc:"to the minute; after a restart of yaya, when it was last given a token"`
}

// Enrolled returns how many devices have rights here, including those with a
// lasting token.
func (a *Authority) Enrolled() int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	n := len(a.lasting)
	for _, d := range a.devices {
		if !d.revoked {
			n++
		}
	}
	return n
}

// Devices lists the devices, those that wait for approval first. It needs
// [DevicesRead].
func (a *Authority) Devices(actor Principal) ([]DeviceInfo, error) {
	if err := Allow(actor, DevicesRead); err != nil {
		return nil, err
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	out := []DeviceInfo{}
	now := a.cfg.Now()
	for id, p := range a.pending {
		if p.approved || now.Sub(p.created) > pendingLife {
			continue
		}
		out = append(out, DeviceInfo{ID: p.device, Label: p.label, Status: "pending", Fingerprint: fingerprint(p.key), Scopes: []Scope{}, Since: p.created.UTC(), RequestID: id, Peer: p.peer})
	}
	connections := map[string]int{}
	for h := range a.holders {
		if h.p.Kind == Device {
			connections[h.p.ID]++
		}
	}
	for id, d := range a.devices {
		status := "active"
		if d.revoked {
			status = "revoked"
		}
		out = append(out, DeviceInfo{ID: id, Label: d.label, Status: status, Fingerprint: d.fingerprint, Scopes: d.scopes, Since: d.since, ApprovedBy: d.by, Connections: connections[id], LastSeen: a.lastSeen(id, d)})
	}
	rank := func(i DeviceInfo) int { return slices.Index([]string{"pending", "active", "revoked"}, i.Status) }
	slices.SortFunc(out, func(x, y DeviceInfo) int { return cmp.Or(rank(x)-rank(y), strings.Compare(x.ID, y.ID)) })
	return out, nil
}

// Revoke revokes a device: its tokens are no longer valid, and its open connections
// and calls end. The revocation is durable when Revoke returns. A device that is revoked
// already stays so, without another entry. It needs [DevicesManage].
func (a *Authority) Revoke(ctx context.Context, actor Principal, id, reason string) error {
	if err := Allow(actor, DevicesManage); err != nil {
		return err
	}
	_, err := a.log.Append(ctx, control.Change{Event: evRevoked, Actor: actor.Actor(), Target: id, Payload: revoked{a.label(reason, 200)}}, func() error {
		a.mu.RLock()
		defer a.mu.RUnlock()
		switch d := a.devices[id]; {
		case d == nil:
			return fmt.Errorf("device %q is %w", clean(id, 128), ErrNotFound)
		case d.revoked:
			return errUnchanged
		}
		return nil
	})
	return unlessUnchanged(err)
}

// errUnchanged means that a change asks for the present state, so that no entry is written.
var errUnchanged = errors.New("nothing changes")

func unlessUnchanged(err error) error {
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

// SetScopes replaces the scopes of a device at once. An actor can grant only scopes
// that it has. It needs [DevicesManage].
func (a *Authority) SetScopes(ctx context.Context, actor Principal, id string, scopes []Scope) error {
	if err := errors.Join(Allow(actor, DevicesManage), within(actor, scopes)); err != nil {
		return err
	}
	if actor.Kind == Device && actor.ID == id {
		return fmt.Errorf("%w: nobody changes its own rights", ErrForbidden)
	}
	_, err := a.log.Append(ctx, control.Change{Event: evScopes, Actor: actor.Actor(), Target: id, Payload: scopesChanged{scopes}}, func() error {
		a.mu.RLock()
		defer a.mu.RUnlock()
		d := a.devices[id]
		if d == nil || d.revoked {
			return fmt.Errorf("device %q is %w", clean(id, 128), ErrNotFound)
		}
		if slices.Equal(slices.Sorted(slices.Values(d.scopes)), slices.Sorted(slices.Values(scopes))) {
			return errUnchanged
		}
		return nil
	})
	return unlessUnchanged(err)
}

// Prove authenticates the other end of a connection: the token's device, which has
// signed the challenge. Neither is enough alone. An error wraps [ErrToken].
func (a *Authority) Prove(c *Challenge, token string, sig []byte) (Principal, error) {
	p, err := a.VerifyToken(token)
	if err != nil {
		c.used = true
		return Principal{}, err
	}
	a.mu.RLock()
	d := a.devices[p.ID]
	a.mu.RUnlock()
	if d == nil {
		return Principal{}, ErrToken
	}
	if err := c.prove(d.key, sig); err != nil {
		return Principal{}, fmt.Errorf("%w: %w", ErrToken, err)
	}
	return p, nil
}

// label is text from outside as the control log keeps it: printable characters of one line,
// without secrets.
func (a *Authority) label(s string, limit int) string { return clean(a.cfg.Conceal(s), limit) }

// nameable returns an error if the name of a device or token contains a secret: the control log
// keeps names as they are. Only a caller that may enroll something learns it.
func (a *Authority) nameable(name string) error {
	if a.cfg.Conceal(name) == name {
		return nil
	}
	return fmt.Errorf("%w: the name contains a secret that yaya knows, and the audit shows names: choose another", ErrBadRequest)
}

// clean reduces text from outside to printable characters of one line.
func clean(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '·'
		}
		return r
	}, s)
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit-1]) + "…"
	}
	return s
}

const symbols = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// newSecret returns n random symbols of Crockford's base 32: 5 bits each, none of
// them easily mistaken for another.
func newSecret(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // crypto/rand never fails
	for i := range b {
		b[i] = symbols[b[i]%32]
	}
	return string(b)
}

func shortID() string {
	b := make([]byte, 10)
	_, _ = rand.Read(b) // crypto/rand never fails
	return hex.EncodeToString(b)
}
