package nodes

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"

	"github.com/yaya-ai/yaya/control"
)

// Key returns the key that the name and the certificates of the cluster follow from. Nodes of an earlier
// incarnation have another one, and connect to nobody of this one.
func (n Node) Key(identity ed25519.PrivateKey) (ed25519.PrivateKey, error) {
	if n.Incarnation == "" {
		return identity, nil
	}
	seed, err := hkdf.Key(sha256.New, identity.Seed(), nil, "yaya-cluster-incarnation-v1\n"+n.Incarnation, ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// FoundedAgain returns the changes by which a member goes on as the only node of another incarnation.
func FoundedAgain(n Node, members []Member) (all []control.Change) {
	for _, m := range members {
		if m.Name != n.Name {
			all = append(all, control.Change{Event: evRemoved, Actor: control.Owner, Target: m.Name})
		}
	}
	return append(all, Founded(n))
}
