package auth

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/yaya-ai/yaya/control"
)

var _ control.Stateful = (*Authority)(nil)

// The saved state of an [Authority]: all that the entries have led to, and nothing of
// this process.
type (
	savedState struct {
		Newest  time.Time              `json:"newest"` // time of the entries since the last drop of all keys
		Signs   string                 `json:"signs,omitempty"`
		Keys    map[string]savedKey    `json:"keys"`
		Devices map[string]savedDevice `json:"devices"`
		Invites map[string]savedInvite `json:"invites"`
		Lasting []savedLasting         `json:"lasting"`
		Turns   map[string]int         `json:"turns"`
	}
	savedKey struct {
		Public []byte    `json:"public_key"` // PKIX
		Until  time.Time `json:"until,omitzero"`
		Node   string    `json:"node,omitempty"`
	}
	savedDevice struct {
		Key      []byte                 `json:"public_key"`
		Label    string                 `json:"label,omitempty"`
		Scopes   []Scope                `json:"scopes"`
		Revoked  bool                   `json:"revoked,omitempty"`
		Since    time.Time              `json:"since"`
		By       string                 `json:"approved_by,omitempty"`
		Families map[string]savedFamily `json:"families,omitempty"`
	}
	savedFamily struct {
		Current  string    `json:"jti"`
		Expires  time.Time `json:"expires_at"`
		Previous string    `json:"previous,omitempty"`
	}
	savedInvite struct {
		Hash    []byte    `json:"hmac"`
		Scopes  []Scope   `json:"scopes"`
		Label   string    `json:"label,omitempty"`
		By      string    `json:"by"`
		Expires time.Time `json:"expires_at"`
	}
	savedLasting struct {
		Name    string    `json:"name"`
		Sum     []byte    `json:"sha256"`
		Scopes  []Scope   `json:"scopes"`
		Servers []string  `json:"servers,omitempty"`
		Expires time.Time `json:"expires_at,omitzero"`
		Since   time.Time `json:"since"`
		By      string    `json:"by"`
		Index   int64     `json:"index"`
		Turn    int       `json:"turn"`
	}
)

// Part implements [control.Stateful].
func (a *Authority) Part() string { return "devices" }

// Save implements [control.Stateful].
func (a *Authority) Save() (json.RawMessage, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	s := savedState{
		Newest: a.newest, Signs: a.signs, Keys: map[string]savedKey{}, Devices: map[string]savedDevice{}, Invites: map[string]savedInvite{}, Lasting: []savedLasting{}, Turns: a.turns,
	}
	for kid, k := range a.keys {
		der, err := x509.MarshalPKIXPublicKey(k.public)
		if err != nil {
			return nil, err
		}
		s.Keys[kid] = savedKey{der, k.until, k.node}
	}
	for id, d := range a.devices {
		families := make(map[string]savedFamily, len(d.families))
		for name, f := range d.families {
			families[name] = savedFamily{f.current, f.expires, f.previous}
		}
		s.Devices[id] = savedDevice{d.key, d.label, d.scopes, d.revoked, d.since, d.by, families}
	}
	for id, i := range a.invites {
		s.Invites[id] = savedInvite{i.hash[:], i.scopes, i.label, i.by, i.expires}
	}
	for _, t := range a.lasting {
		s.Lasting = append(s.Lasting, savedLasting{t.name, t.sum[:], t.scopes, t.servers, t.expires, t.since, t.by, t.index, t.turn})
	}
	return json.Marshal(s)
}

// Restore implements [control.Stateful].
func (a *Authority) Restore(state json.RawMessage) error {
	var s savedState
	if err := json.Unmarshal(state, &s); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for kid, k := range s.Keys {
		public, err := rsaKey(k.Public)
		if err != nil {
			return fmt.Errorf("signing key %s: %w", kid, err)
		}
		a.keys[kid] = signingKey{public, k.Until, k.Node}
	}
	for id, d := range s.Devices {
		families := make(map[string]*family, len(d.Families))
		for name, f := range d.Families {
			families[name] = &family{f.Current, f.Expires, f.Previous}
		}
		a.devices[id] = &device{key: d.Key, fingerprint: fingerprint(d.Key), label: d.Label, scopes: d.Scopes, revoked: d.Revoked, since: d.Since, by: d.By, families: families}
	}
	for id, i := range s.Invites {
		inv := &invite{scopes: i.Scopes, label: i.Label, by: i.By, expires: i.Expires}
		if len(i.Hash) != len(inv.hash) || copy(inv.hash[:], i.Hash) != len(inv.hash) {
			return fmt.Errorf("invitation %q has no hash", id)
		}
		a.invites[id] = inv
	}
	for _, l := range s.Lasting {
		t := &lasting{name: l.Name, scopes: l.Scopes, servers: l.Servers, expires: l.Expires, since: l.Since, by: l.By, index: l.Index, turn: l.Turn}
		if len(l.Sum) != len(t.sum) || copy(t.sum[:], l.Sum) != len(t.sum) {
			return fmt.Errorf("token %q has no hash", l.Name)
		}
		a.lasting[t.sum] = t
	}
	if s.Turns != nil {
		a.turns = s.Turns
	}
	a.signs = s.Signs
	a.saw(s.Newest)
	return nil
}

// saw records the time at which an entry was written, or zero for none; mu is held.
func (a *Authority) saw(at time.Time) {
	if at.IsZero() {
		return
	}
	a.clock.saw(at)
	if at.After(a.newest) {
		a.newest = at
	}
}

// rsaKey parses a public key.
func rsaKey(der []byte) (*rsa.PublicKey, error) {
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, err
	}
	public, ok := key.(*rsa.PublicKey)
	if !ok {
		return nil, errors.New("it is not an RSA key")
	}
	return public, nil
}
