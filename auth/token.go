package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/yaya-ai/yaya/control"
)

// Device tokens.
const (
	tokenType      = "yaya-device+jwt" //nolint:gosec // no credential
	maxDeviceToken = 4 << 10
	maxFamilies    = 8 // of a device; the least recently used one is dropped
	maxCached      = 4096

	refreshGrace = 30 * time.Second // from the first exchange
)

// Token is a device token and when it expires.
type Token struct {
	Token     string
	ExpiresAt time.Time
}

// claimsOf are the claims of a device token.
type claimsOf struct {
	jwt.RegisteredClaims
	Fingerprint string `json:"fpr"` // of the device's key: SHA-256, hexadecimal
	Family      string `json:"fam"` // tokens that were refreshed one from the other
	Scope       string `json:"scope"`

	keyID string
}

// tokenIssued is the payload of evTokenIssued.
type tokenIssued struct {
	Family  string    `json:"family"`
	ID      string    `json:"jti"`
	Expires time.Time `json:"expires_at"`
	// Previous is the token that was refreshed.
	Previous string `json:"previous,omitempty"`
}

const (
	evTokenIssued   = "device_token_issued"
	evFamilyRevoked = "device_family_revoked"
)

type familyRevoked struct {
	Family string `json:"family"`
	Reason string `json:"reason"`
}

func randomID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // crypto/rand never fails
	return hex.EncodeToString(b)
}

func fingerprint(key []byte) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:])
}

// issue creates a token for a device: the first of a new family, or the next in the
// family of previous. check runs in the step that makes it durable.
func (a *Authority) issue(ctx context.Context, device, family, previous string, check func() error) (Token, error) {
	id, issued := randomID(), a.cfg.Now().UTC().Truncate(time.Second)
	t, err := a.sign(ctx, device, family, id, issued)
	if err != nil {
		return Token{}, err
	}
	_, err = a.log.Append(ctx, control.Change{
		Event: evTokenIssued, Actor: device, Target: device, Payload: tokenIssued{family, id, t.ExpiresAt, previous},
	}, check)
	return t, err
}

// sign returns the token with that id. The same arguments yield the same token, as
// long as the device's rights and the key stay the same.
func (a *Authority) sign(ctx context.Context, device, family, id string, issued time.Time) (Token, error) {
	kid, key, err := a.signer(ctx)
	if err != nil {
		return Token{}, err
	}
	a.mu.RLock()
	d := a.devices[device]
	if d == nil {
		a.mu.RUnlock()
		return Token{}, ErrRefused
	}
	fpr, scopes := d.fingerprint, joinScopes(d.scopes, " ")
	a.mu.RUnlock()
	c := claimsOf{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: a.issuer(), Audience: jwt.ClaimStrings{a.issuer()}, Subject: device, ID: id,
			IssuedAt: jwt.NewNumericDate(issued), NotBefore: jwt.NewNumericDate(issued), ExpiresAt: jwt.NewNumericDate(issued.Add(a.cfg.TokenLife)),
		},
		Fingerprint: fpr, Family: family, Scope: scopes,
	}
	t := jwt.NewWithClaims(jwt.SigningMethodRS256, c)
	t.Header["kid"], t.Header["typ"] = kid, tokenType
	signed, err := t.SignedString(key)
	return Token{signed, c.ExpiresAt.Time}, err
}

// issuer returns the name of this instance, which is also the audience.
func (a *Authority) issuer() string { return "urn:yaya:" + a.serverID }

// VerifyToken returns the device of a token. An error wraps [ErrToken] or [ErrBehind].
func (a *Authority) VerifyToken(token string) (Principal, error) {
	c, err := a.claims(token)
	if err == nil {
		err = a.current()
	}
	if err != nil {
		return Principal{}, err
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	if err := a.holds(c, leeway); err != nil {
		return Principal{}, err
	}
	a.seen.note(c.Subject, a.cfg.Now())
	return Principal{Kind: Device, ID: c.Subject, authority: a, claims: c}, nil
}

// claims checks the immutable properties of a token, once.
func (a *Authority) claims(token string) (*claimsOf, error) {
	if token == "" || len(token) > maxDeviceToken || strings.Count(token, ".") != 2 {
		return nil, fmt.Errorf("%w: it is not a JWT", ErrToken)
	}
	sum := sha256.Sum256([]byte(token))
	a.mu.RLock()
	known := a.verified[sum]
	a.mu.RUnlock()
	if known != nil {
		return known, nil
	}
	c := new(claimsOf)
	_, err := a.parser.ParseWithClaims(token, c, func(t *jwt.Token) (any, error) {
		if t.Header["typ"] != tokenType || t.Header["crit"] != nil {
			return nil, errors.New("the token has another type")
		}
		kid, _ := t.Header["kid"].(string)
		a.mu.RLock()
		defer a.mu.RUnlock()
		k, ok := a.keys[kid]
		if !ok {
			return nil, errors.New("the token's key is unknown")
		}
		c.keyID = kid
		return k.public, nil
	})
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return nil, a.expired()
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrToken, err)
	case c.Subject == "" || c.ID == "" || c.Family == "" || c.IssuedAt == nil || c.NotBefore == nil || len(c.Audience) != 1:
		return nil, fmt.Errorf("%w: claims are missing", ErrToken)
	case c.ExpiresAt.Sub(c.IssuedAt.Time) > maxLifetime:
		return nil, fmt.Errorf("%w: it lives for longer than %v", ErrToken, maxLifetime)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.verified) >= maxCached {
		clear(a.verified)
	}
	a.verified[sum] = c
	return c, nil
}

// Knows reports whether a token was verified recently, so that verifying it again
// costs nothing.
func (a *Authority) Knows(token string) bool {
	if len(token) > maxDeviceToken {
		return false
	}
	sum := sha256.Sum256([]byte(token))
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.verified[sum] != nil
}

// holds checks the properties of a token that can change: time, keys, revocations.
// mu is held.
func (a *Authority) holds(c *claimsOf, grace time.Duration) error {
	now := a.cfg.Now()
	if !now.Before(c.ExpiresAt.Add(grace)) {
		return a.expired()
	}
	if k, ok := a.keys[c.keyID]; !ok || (!k.until.IsZero() && !now.Before(k.until)) {
		return fmt.Errorf("%w: its key is no longer in use", ErrToken)
	}
	d := a.devices[c.Subject]
	if d == nil || d.revoked || d.fingerprint != c.Fingerprint {
		return fmt.Errorf("%w: the device is not known, or has been revoked", ErrToken)
	}
	if _, ok := d.families[c.Family]; !ok {
		return fmt.Errorf("%w: it has been revoked", ErrToken)
	}
	return nil
}

var errExpired = errors.New("has expired")

// expired returns the error of an expired token, which names the clock if that
// could surprise.
func (a *Authority) expired() error {
	if err := a.ClockBehind(); err != nil {
		return fmt.Errorf("%w: it %w: %w", ErrToken, errExpired, err)
	}
	return fmt.Errorf("%w: it %w", ErrToken, errExpired)
}

// Refresh exchanges the current token of a device for the next, with the device's
// present grants. For refreshGrace the same token gets the same successor again,
// because requests cross, and replies are lost, even in a restart. If a token comes
// back after that, or after its successor was exchanged, one of the two is stolen:
// Refresh revokes the whole family.
func (a *Authority) Refresh(ctx context.Context, token string) (Token, error) {
	p, err := a.VerifyToken(token)
	if err != nil {
		return Token{}, err
	}
	c := p.claims
	if !a.cfg.Now().Before(c.ExpiresAt.Time) {
		return Token{}, a.expired()
	}
	reused := false
	var successor string
	var issued time.Time
	t, err := a.issue(ctx, p.ID, c.Family, c.ID, func() error {
		a.mu.RLock()
		defer a.mu.RUnlock()
		if err := a.holds(c, 0); err != nil {
			return err
		}
		f := a.devices[p.ID].families[c.Family]
		if f.current == c.ID {
			return nil
		}
		if issued = f.expires.Add(-a.cfg.TokenLife); f.previous == c.ID && a.cfg.Now().Sub(issued) < refreshGrace {
			successor = f.current
			return errNothing
		}
		reused = true
		return fmt.Errorf("%w: it has been refreshed before", ErrToken)
	})
	switch {
	case reused:
		return Token{}, errors.Join(err, a.revokeFamily(ctx, p.ID, p.ID, c.Family, "a token was refreshed twice"))
	case successor != "":
		return a.sign(ctx, p.ID, c.Family, successor, issued)
	}
	return t, err
}

func (a *Authority) revokeFamily(ctx context.Context, actor, device, family, reason string) error {
	_, err := a.log.Append(ctx, control.Change{Event: evFamilyRevoked, Actor: actor, Target: device, Payload: familyRevoked{family, reason}}, func() error {
		a.mu.RLock()
		defer a.mu.RUnlock()
		if d := a.devices[device]; d == nil || d.families[family] == nil {
			return errNothing
		}
		return nil
	})
	if errors.Is(err, errNothing) {
		return nil
	}
	return err
}

var errNothing = errors.New("there is nothing to do")

// applyToken applies evTokenIssued; mu is held.
func (a *Authority) applyToken(e control.Entry) error {
	var p tokenIssued
	if err := e.Decode(&p); err != nil {
		return err
	}
	d := a.devices[e.Target]
	if d == nil {
		return fmt.Errorf("a token for the unknown device %q", e.Target)
	}
	for id, f := range d.families {
		if e.Time.After(f.expires.Add(leeway)) {
			delete(d.families, id)
		}
	}
	f := d.families[p.Family]
	if f == nil {
		if len(d.families) >= maxFamilies {
			oldest := ""
			for id, f := range d.families {
				if oldest == "" || f.expires.Before(d.families[oldest].expires) {
					oldest = id
				}
			}
			delete(d.families, oldest)
		}
		f = new(family)
		d.families[p.Family] = f
	}
	f.current, f.expires, f.previous = p.ID, p.Expires, p.Previous
	return nil
}
