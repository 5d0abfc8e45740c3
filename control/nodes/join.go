package nodes

import (
	"context"
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/hpke"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/control"
)

// MaxJoin is how many bytes a request or an answer of a join has at most.
const MaxJoin = 64 << 10

// A sealed message says which of the two it is: neither passes for the other.
const (
	askContext    = "yaya-node-join-v1"
	answerContext = "yaya-node-joined-v1"
)

// tokenPrefix begins an invitation, so that it is recognized.
const tokenPrefix = "yaya-join-"

// Invitation makes one node a member, once.
type Invitation struct {
	URL     string    `json:"url"` // of a node that answers
	ID      string    `json:"id"`
	Secret  []byte    `json:"secret"`
	Key     []byte    `json:"key"`             // X25519, that the request is sealed for
	Route   bool      `json:"route,omitempty"` // the node has to have an address for the others
	Expires time.Time `json:"expires_at"`
}

// String returns the invitation as one word.
func (i Invitation) String() string {
	raw, err := json.Marshal(i) //nolint:gosec // whoever gets it is to have the secret
	if err != nil {             // strings, bytes and a time can always be marshalled
		return ""
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(raw)
}

// ParseInvitation reads the word that [Invitation.String] has made.
func ParseInvitation(s string) (i Invitation, err error) {
	bad := fmt.Errorf("this is not an invitation: it is one word that begins with %s, as yaya cluster invite prints it", tokenPrefix)
	text, ok := strings.CutPrefix(strings.TrimSpace(s), tokenPrefix)
	if !ok || len(text) > MaxJoin {
		return i, bad
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(raw, &i) != nil || i.ID == "" || len(i.Secret) == 0 {
		return i, bad
	}
	if _, err := ecdh.X25519().NewPublicKey(i.Key); err != nil {
		return i, bad
	}
	if u, err := url.Parse(i.URL); err != nil || u.Host == "" {
		return i, bad
	}
	return i, nil
}

// joinKey returns the key that requests to join are sealed for: it follows from the identity of
// the cluster, so that every node can answer.
func joinKey(identity ed25519.PrivateKey) (*ecdh.PrivateKey, error) {
	seed, err := hkdf.Key(sha256.New, identity.Seed(), nil, "yaya-node-join-key-v1", 32)
	if err != nil {
		return nil, err
	}
	return ecdh.X25519().NewPrivateKey(seed)
}

// Invite makes an invitation, for half an hour and one node, that the node at a URL answers.
func (n *Nodes) Invite(ctx context.Context, actor, at string) (Invitation, error) {
	key, err := joinKey(n.cfg.Identity)
	if err != nil {
		return Invitation{}, err
	}
	secret := make([]byte, 16)
	_, _ = rand.Read(secret) // crypto/rand never fails
	i := Invitation{URL: at, ID: rand.Text()[:12], Secret: secret, Key: key.PublicKey().Bytes(), Route: n.cfg.Node.Route != "", Expires: n.cfg.Now().Add(inviteLife).UTC().Truncate(time.Second)}
	_, err = n.log.Append(ctx, control.Change{Event: evInvited, Actor: actor, Target: i.ID, Payload: invited{n.hash(i.ID, secret), i.Expires}}, func() error {
		n.mu.Lock()
		defer n.mu.Unlock()
		open := 0
		for _, i := range n.invites {
			if n.cfg.Now().Before(i.Expires) {
				open++
			}
		}
		if open >= maxInvites {
			return fmt.Errorf("%d invitations are open: use one, or wait until they expire", open)
		}
		return nil
	})
	return i, err
}

// asked is a request to join.
type asked struct {
	ID     string `json:"id"`
	Secret []byte `json:"secret"`
	Node   string `json:"node"`
	Route  string `json:"route,omitempty"`
	Key    []byte `json:"key"` // X25519, that the answer is sealed for
}

// Welcome holds everything that makes a yaya a node.
type Welcome struct {
	Node     Node   `json:"node"`
	Identity []byte `json:"identity"` // the seed of the identity key
}

// Asking is a pending request to join.
type Asking struct {
	Request []byte // to be sent
	key     *ecdh.PrivateKey
	node    string
	route   string
}

// Ask makes the request by which a node joins. The invitation says whether it has a route: where the
// other nodes reach the server in it.
func Ask(i Invitation, node, route string) (*Asking, error) {
	if !ValidName(node) {
		return nil, badName(node)
	}
	if err := i.CheckRoute(route); err != nil {
		return nil, err
	}
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(asked{i.ID, i.Secret, node, route, key.PublicKey().Bytes()}) //nolint:gosec // it is sealed
	if err != nil {
		return nil, err
	}
	sealed, err := seal(i.Key, askContext, raw)
	return &Asking{sealed, key, node, route}, err
}

// CheckRoute checks the address of a node that wants to join.
func (i Invitation) CheckRoute(route string) error { return checkRoute(i.Route, route) }

// checkRoute checks the address of a node that asks, which has one if those of the cluster do.
func checkRoute(needed bool, route string) error {
	switch {
	case !needed && route != "":
		return fmt.Errorf("%w: NATS servers keep the log of this cluster: join without --listen", ErrRoute)
	case needed && route == "":
		return fmt.Errorf("%w: the nodes keep the log of this cluster: join with --listen HOST:PORT, where the others reach this machine", ErrRoute)
	case !needed:
		return nil
	}
	if _, _, err := SplitRoute(route); err != nil {
		return fmt.Errorf("%w: %w", ErrRoute, err)
	}
	return nil
}

func badName(node string) error {
	return fmt.Errorf("%.100q cannot be the name of a node: it has 1 to 63 lower-case letters, digits and hyphens, such as north-1", node)
}

// Welcome reads the answer.
func (a *Asking) Welcome(answer []byte) (w Welcome, err error) {
	raw, err := unseal(a.key, answerContext, answer)
	if err != nil || json.Unmarshal(raw, &w) != nil || w.Node.Name != a.node || w.Node.Route != a.route || !w.Node.valid() || len(w.Identity) != ed25519.SeedSize {
		return w, errors.New("the answer is not one of a node of this cluster")
	}
	return w, nil
}

// Answer makes a node a member that has asked for it, and returns the answer for it. An error
// wraps [ErrRefused], [ErrTaken], or is one of the control log.
func (n *Nodes) Answer(ctx context.Context, request []byte) ([]byte, error) {
	key, err := joinKey(n.cfg.Identity)
	if err != nil {
		return nil, err
	}
	raw, err := unseal(key, askContext, request)
	var q asked
	if err != nil || json.Unmarshal(raw, &q) != nil {
		return nil, ErrRefused
	}
	if !ValidName(q.Node) {
		return nil, badName(q.Node)
	}
	there := n.cfg.Node
	there.Name, there.Kernel, there.Route, there.Routes = q.Node, "", q.Route, nil
	if there.Route != "" {
		for _, m := range n.Members() {
			there.Routes = append(there.Routes, m.Route)
		}
	}
	raw, err = json.Marshal(Welcome{there, n.cfg.Identity.Seed()})
	if err != nil {
		return nil, err
	}
	answer, err := seal(q.Key, answerContext, raw)
	if err != nil {
		return nil, ErrRefused
	}
	hash := n.hash(q.ID, q.Secret)
	_, err = n.log.Append(ctx, control.Change{Event: evJoined, Actor: q.Node, Target: q.Node, Payload: joined{Invite: q.ID, Route: q.Route}}, func() error {
		n.mu.Lock()
		defer n.mu.Unlock()
		switch i, ok := n.invites[q.ID]; {
		case !ok || !n.cfg.Now().Before(i.Expires) || !hmac.Equal(i.Hash, hash):
			return ErrRefused
		case n.members[q.Node] != nil:
			return fmt.Errorf("%w: choose another one with --name, or remove that node first (yaya cluster remove %s)", ErrTaken, q.Node)
		}
		if err := n.freeRoute(q.Node, q.Route); err != nil {
			return err
		}
		return checkRoute(n.cfg.Node.Route != "", q.Route)
	})
	return answer, err
}

// seal encrypts for the owner of an X25519 key (RFC 9180, base mode).
func seal(to []byte, context string, plain []byte) ([]byte, error) {
	public, err := ecdh.X25519().NewPublicKey(to)
	if err != nil {
		return nil, err
	}
	key, err := hpke.NewDHKEMPublicKey(public)
	if err != nil {
		return nil, err
	}
	return hpke.Seal(key, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte(context), plain)
}

func unseal(own *ecdh.PrivateKey, context string, sealed []byte) ([]byte, error) {
	if len(sealed) > MaxJoin {
		return nil, ErrRefused
	}
	key, err := hpke.NewDHKEMPrivateKey(own)
	if err != nil {
		return nil, err
	}
	return hpke.Open(key, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte(context), sealed)
}
