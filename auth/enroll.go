package auth

import (
	"context"
	"crypto/ed25519"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// Limits of enrollment.
const (
	inviteLife     = 10 * time.Minute
	inviteTries    = 5
	maxInvites     = 32
	maxPending     = 32
	maxPendingPeer = 8
	pendingLife    = 10 * time.Minute
	maxLabel       = 64 // runes
	codeID         = 6  // symbols that identify the invitation
	codeSecret     = 6  // symbols that are secret
)

// invite is an open invitation for one device.
type invite struct {
	hash    [32]byte
	scopes  []Scope
	label   string
	by      string
	expires time.Time
	tries   int // of this process
}

// invited is the payload of evInvited; the target is the invitation's id.
type invited struct {
	Hash    []byte    `json:"hmac"` // of the secret
	Label   string    `json:"label,omitempty"`
	Scopes  []Scope   `json:"scopes"`
	Expires time.Time `json:"expires_at"`
}

// Invitation is a code that enrolls one device.
type Invitation struct {
	Code    string    `json:"code"` // XXXX-XXXX-XXXX
	Scopes  []Scope   `json:"scopes"`
	Expires time.Time `json:"expires_at"`
}

// Invite creates a code for one device: valid once, for 10 minutes and 5 tries. The
// device gets the scopes, which must not exceed the actor's, and the label, unless
// that is "". It needs [DevicesApprove].
//
// A code has 60 random bits, and each invitation survives four wrong secrets, whoever
// sends them. So no global limit on guesses is necessary: with all 32 invitations
// open, and twelve million guesses in the ten minutes (20,000 a second from any
// number of addresses), one hits with probability 32 · 1.2e7 / 2^60 < 4e-10, and an
// attacker who knows the first half of a code still has 5 in 2^30. Using up the tries
// of an invitation takes five hits of its first half, 30 bits, without feedback about
// a hit: its probability is below 1e-11.
func (a *Authority) Invite(ctx context.Context, actor Principal, label string, scopes []Scope) (Invitation, error) {
	if err := errors.Join(Allow(actor, DevicesApprove), within(actor, scopes)); err != nil {
		return Invitation{}, err
	}
	id, secret := newSecret(codeID), newSecret(codeSecret)
	hash := a.codeHash(id, secret)
	expires := a.cfg.Now().Add(inviteLife).UTC()
	_, err := a.log.Append(ctx, control.Change{
		Event: evInvited, Actor: actor.Actor(), Target: id, Payload: invited{hash[:], a.label(label, maxLabel), scopes, expires},
	}, func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		now := a.cfg.Now()
		for id, i := range a.invites {
			if !now.Before(i.expires) {
				delete(a.invites, id)
			}
		}
		if a.invites[id] != nil || len(a.invites) >= maxInvites {
			return fmt.Errorf("%w: there are %d open invitations", ErrBusy, len(a.invites))
		}
		return nil
	})
	if err != nil {
		return Invitation{}, err
	}
	code := id + secret
	return Invitation{Code: code[:4] + "-" + code[4:8] + "-" + code[8:], Scopes: scopes, Expires: expires}, nil
}

func (a *Authority) applyInvite(e control.Entry) error {
	var p invited
	if err := e.Decode(&p); err != nil {
		return err
	}
	i := &invite{scopes: p.Scopes, label: p.Label, by: e.Actor, expires: p.Expires}
	if copy(i.hash[:], p.Hash) != len(i.hash) {
		return fmt.Errorf("invitation %q has no hash", e.Target)
	}
	a.invites[e.Target] = i
	return nil
}

// pending is a device that waits for approval. Only the approval is written to the log, so
// strangers cannot fill it.
type pending struct {
	device   string
	key      ed25519.PublicKey
	label    string
	peer     string
	party    string // the peer's network, to whose share it counts
	created  time.Time
	approved bool
}

// Registration is the body of POST /auth/register.
type Registration struct {
	PublicKey string `json:"public_key"` // base64
	DeviceID  string `json:"device_id"`
	Label     string `json:"label"`
	Code      string `json:"code,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	Proof     string `json:"proof,omitempty"` // base64, see [SignRegistration]
}

// Registered is the result of a registration: a token, or the id of a waiting
// request.
type Registered struct {
	Token
	RequestID string
}

var deviceID = lazyregexp.New(`^[A-Za-z0-9_.:-]{1,128}$`)

// Register enrolls a device that has a code, or whose request was approved and that
// proves its key; for others it records a waiting request. An error wraps
// [ErrBadRequest], [ErrConflict], [ErrRefused] (for a wrong code or proof, whatever
// the mistake), [ErrBusy], or is one of the control log.
func (a *Authority) Register(ctx context.Context, peer string, r Registration) (Registered, error) {
	key, err := decode64(r.PublicKey)
	if err != nil {
		return Registered{}, fmt.Errorf("%w: public_key is not base64 (RFC 4648 §4, padded)", ErrBadRequest)
	}
	if err := checkKey(key); err != nil {
		return Registered{}, err
	}
	if !deviceID().MatchString(r.DeviceID) || r.DeviceID == control.Owner || r.DeviceID == "anonymous" {
		return Registered{}, fmt.Errorf("%w: a device_id is 1 to 128 letters, digits, and . _ : -", ErrBadRequest)
	}
	if err := a.sameKey(r.DeviceID, key); err != nil {
		return Registered{}, err
	}
	label := a.label(r.Label, maxLabel)
	switch {
	case r.Code != "":
		return a.enroll(ctx, r, key, label)
	case r.Proof != "":
		return a.fetch(ctx, r, key)
	}
	return a.wait(peer, r.DeviceID, key, label)
}

// decode64 accepts base64 of RFC 4648 §4 without line breaks, which the library
// would skip.
func decode64(s string) ([]byte, error) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, base64.CorruptInputError(0)
	}
	return base64.StdEncoding.Strict().DecodeString(s)
}

// sameKey refuses an id that belongs to another key: an id keeps its key
// permanently.
func (a *Authority) sameKey(id string, key []byte) error {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if d := a.devices[id]; d != nil && !d.key.Equal(ed25519.PublicKey(key)) {
		return ErrConflict
	}
	return nil
}

// enroll enrolls a device with a code.
func (a *Authority) enroll(ctx context.Context, r Registration, key []byte, label string) (Registered, error) {
	code := strings.NewReplacer("-", "", " ", "", "O", "0", "I", "1", "L", "1").Replace(strings.ToUpper(r.Code))
	if len(code) != codeID+codeSecret {
		return Registered{}, fmt.Errorf("%w: the code is wrong, or has expired", ErrRefused)
	}
	id := code[:codeID]
	secret := a.codeHash(id, code[codeID:])
	a.mu.Lock()
	i := a.invites[id]
	good := i != nil && a.cfg.Now().Before(i.expires)
	var known invite
	exhausted := false
	if good {
		known = *i
		if subtle.ConstantTimeCompare(known.hash[:], secret[:]) != 1 {
			i.tries++
			good, exhausted = false, i.tries == inviteTries
		}
	}
	a.mu.Unlock()
	if exhausted {
		_, err := a.log.Append(ctx, control.Change{Event: evInviteWithdrawn, Actor: control.Owner, Target: id, Payload: revoked{"5 wrong codes"}}, nil)
		return Registered{}, errors.Join(fmt.Errorf("%w: the code is wrong, or has expired", ErrRefused), err)
	}
	if !good {
		return Registered{}, fmt.Errorf("%w: the code is wrong, or has expired", ErrRefused)
	}
	if err := a.nameable(r.DeviceID); err != nil {
		return Registered{}, err
	}
	if known.label != "" {
		label = known.label
	}
	_, err := a.log.Append(ctx, control.Change{
		Event: evEnrolled, Actor: r.DeviceID, Target: r.DeviceID, Payload: deviceAdded{key, label, known.scopes, id, known.by},
	}, func() error { // the code is consumed in the same step
		if err := a.sameKey(r.DeviceID, key); err != nil {
			return err
		}
		a.mu.RLock()
		defer a.mu.RUnlock()
		if now := a.invites[id]; now == nil || now.hash != known.hash || now.tries >= inviteTries {
			return fmt.Errorf("%w: the code is wrong, or has expired", ErrRefused)
		}
		return nil
	})
	if err != nil {
		return Registered{}, err
	}
	t, err := a.issue(ctx, r.DeviceID, randomID(), "", nil)
	return Registered{Token: t}, err
}

// wait records a request that somebody has to approve. A device that is already
// enrolled waits only for its own proof, and looks the same from outside.
func (a *Authority) wait(peer, id string, key []byte, label string) (Registered, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.cfg.Now()
	party := partyOf(peer)
	waiting := map[string]int{}
	for rid, p := range a.pending {
		switch {
		case now.Sub(p.created) > pendingLife:
			delete(a.pending, rid)
		case p.device == id && p.key.Equal(ed25519.PublicKey(key)):
			return Registered{RequestID: rid}, nil
		default:
			waiting[p.party]++
		}
	}
	if waiting[party] >= maxPendingPeer || (len(a.pending) >= maxPending && !a.evict(waiting, party)) {
		return Registered{}, fmt.Errorf("%w: %d requests wait for an approval: come back later, or use a code", ErrBusy, len(a.pending))
	}
	d := a.devices[id]
	rid := "req_" + shortID()
	a.pending[rid] = &pending{device: id, key: key, label: label, peer: peer, party: party, created: now, approved: d != nil && !d.revoked}
	a.waited()
	return Registered{RequestID: rid}, nil
}

// partyOf returns the party to whose share a peer's requests count.
func partyOf(peer string) string {
	if addr, err := netip.ParseAddr(peer); err == nil {
		return Network(addr).String()
	}
	return peer
}

// evict makes room for a party's request: it drops the oldest request of the party
// that has most, so that a stranger's requests do not keep others from asking. It
// reports false when no party has more than the newcomer; approved requests stay. mu
// is held.
func (a *Authority) evict(waiting map[string]int, newcomer string) bool {
	var found string
	for rid, p := range a.pending {
		if p.approved || waiting[p.party] <= waiting[newcomer] {
			continue
		}
		if f := a.pending[found]; f == nil || waiting[p.party] > waiting[f.party] || (waiting[p.party] == waiting[f.party] && p.created.Before(f.created)) {
			found = rid
		}
	}
	if found == "" {
		return false
	}
	delete(a.pending, found)
	return true
}

// fetch returns the token of an approved request to the device that proves its key,
// once.
func (a *Authority) fetch(ctx context.Context, r Registration, key []byte) (Registered, error) {
	sig, err := decode64(r.Proof)
	if err != nil {
		return Registered{}, fmt.Errorf("%w: proof is not base64", ErrBadRequest)
	}
	refused := fmt.Errorf("%w: unknown request, or wrong proof", ErrRefused)
	a.mu.Lock()
	p := a.pending[r.RequestID]
	if p == nil || p.device != r.DeviceID || !p.key.Equal(ed25519.PublicKey(key)) || a.cfg.Now().Sub(p.created) > pendingLife ||
		verify(key, registration(a.serverID, r.RequestID, r.DeviceID, key), sig) != nil {
		a.mu.Unlock()
		return Registered{}, refused
	}
	if !p.approved {
		a.mu.Unlock()
		return Registered{RequestID: r.RequestID}, nil
	}
	delete(a.pending, r.RequestID)
	a.mu.Unlock()
	t, err := a.issue(ctx, r.DeviceID, randomID(), "", func() error {
		a.mu.RLock()
		defer a.mu.RUnlock()
		if d := a.devices[r.DeviceID]; d == nil || d.revoked || !d.key.Equal(ed25519.PublicKey(key)) {
			return refused
		}
		return nil
	})
	return Registered{Token: t}, err
}

// Approve approves a waiting device: request is its request's id, or its device id
// if that is unique. An actor can grant only scopes that it has, and cannot approve
// itself. It needs [DevicesApprove].
func (a *Authority) Approve(ctx context.Context, actor Principal, request string, scopes []Scope) (DeviceInfo, error) {
	if err := errors.Join(Allow(actor, DevicesApprove), within(actor, scopes)); err != nil {
		return DeviceInfo{}, err
	}
	rid, p, err := a.waiting(request)
	if err != nil {
		return DeviceInfo{}, err
	}
	if actor.Kind == Device && actor.ID == p.device {
		return DeviceInfo{}, fmt.Errorf("%w: a device cannot approve itself", ErrForbidden)
	}
	if err := a.nameable(p.device); err != nil {
		return DeviceInfo{}, err
	}
	e, err := a.log.Append(ctx, control.Change{
		Event: evApproved, Actor: actor.Actor(), Target: p.device, Payload: deviceAdded{p.key, p.label, scopes, "", actor.Actor()},
	}, func() error { return a.sameKey(p.device, p.key) })
	if err != nil {
		return DeviceInfo{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.pending[rid]; p != nil {
		p.approved = true
	}
	return DeviceInfo{ID: p.device, Label: p.label, Status: "active", Fingerprint: fingerprint(p.key), Scopes: scopes, Since: e.Time, ApprovedBy: actor.Actor()}, nil
}

// Reject rejects a waiting device. It needs [DevicesApprove].
func (a *Authority) Reject(actor Principal, request string) error {
	if err := Allow(actor, DevicesApprove); err != nil {
		return err
	}
	rid, _, err := a.waiting(request)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.pending, rid)
	a.waited()
	return nil
}

// waiting finds a request by its id or that of its device.
func (a *Authority) waiting(request string) (string, pending, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	var ids []string
	for rid, p := range a.pending {
		if !p.approved && (rid == request || p.device == request) && a.cfg.Now().Sub(p.created) <= pendingLife {
			ids = append(ids, rid)
		}
	}
	switch {
	case len(ids) == 0:
		return "", pending{}, fmt.Errorf("request %q is %w", clean(request, 128), ErrNotFound)
	case len(ids) > 1:
		slices.Sort(ids)
		return "", pending{}, fmt.Errorf("%w: several devices with that id wait: approve one by its request: %s", ErrBadRequest, strings.Join(ids, ", "))
	}
	return ids[0], *a.pending[ids[0]], nil
}
