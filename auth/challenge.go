package auth

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Lifetime of a challenge.
const challengeLife = 10 * time.Second

// Contexts of the records that devices sign; a signature for one is not valid for
// another.
const (
	challengeContext = "yaya-device-auth-v1"
	registerContext  = "yaya-device-register-v1"
)

const nonceSize = 32

// record joins fields, each preceded by its length in 4 bytes, big-endian, so that
// no two lists of fields have the same bytes.
func record(fields ...[]byte) []byte {
	var b []byte
	for _, f := range fields {
		b = binary.BigEndian.AppendUint32(b, uint32(len(f))) //nolint:gosec // fields are short
		b = append(b, f...)
	}
	return b
}

// split splits a record into its fields.
func split(b []byte) ([][]byte, error) {
	var out [][]byte
	for len(b) > 0 {
		if len(b) < 4 || len(out) == 16 {
			return nil, errors.New("the challenge is not a record")
		}
		n := int64(binary.BigEndian.Uint32(b))
		if b = b[4:]; n > int64(len(b)) {
			return nil, errors.New("a field is longer than the record")
		}
		out, b = append(out, b[:n]), b[n:]
	}
	return out, nil
}

// Challenge is the record that a device signs to prove its key: context, server id,
// audience as dialled, 32 random bytes and the time in Unix seconds. It is for one
// connection, once, for 10 s. It is not safe for concurrent use.
type Challenge struct {
	bytes  []byte
	issued time.Time
	used   bool
	now    func() time.Time
}

// NewChallenge returns a challenge for a connection to that audience: the URL as
// its client dialled it.
func (a *Authority) NewChallenge(audience string) *Challenge {
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce) // crypto/rand never fails
	now := a.clock.now()    // clients compare it with theirs
	return &Challenge{
		bytes:  record([]byte(challengeContext), []byte(a.ServerID()), []byte(audience), nonce, strconv.AppendInt(nil, now.Unix(), 10)),
		issued: now, now: a.clock.now,
	}
}

// Bytes returns the bytes to sign.
func (c *Challenge) Bytes() []byte { return slices.Clone(c.bytes) }

// prove checks a signature and consumes the challenge.
func (c *Challenge) prove(key ed25519.PublicKey, sig []byte) error {
	switch {
	case c.used:
		return errors.New("the challenge has been used")
	case c.now().Sub(c.issued) > challengeLife:
		c.used = true
		return fmt.Errorf("the challenge is older than %v", challengeLife)
	}
	c.used = true
	return verify(key, c.bytes, sig)
}

// verify checks lengths first: [ed25519.Verify] panics on a key of the wrong
// length.
func verify(key ed25519.PublicKey, msg, sig []byte) error {
	if len(key) != ed25519.PublicKeySize || len(sig) != ed25519.SignatureSize || !ed25519.Verify(key, msg, sig) {
		return errors.New("the signature is wrong")
	}
	return nil
}

// ErrOtherServer reports that a challenge is not for this connection, and was not
// signed.
var ErrOtherServer = errors.New("the challenge is not for this connection")

// SignChallenge signs a challenge for the client that has dialled audience. It
// refuses a challenge that names another audience, or another server than the known
// one ("" if none is known yet), so that no server can reuse the signature at
// another. It returns the server's id.
func SignChallenge(key ed25519.PrivateKey, challenge []byte, audience, server string) (sig []byte, serverID string, err error) {
	f, err := split(challenge)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrOtherServer, err)
	}
	if len(f) != 5 || string(f[0]) != challengeContext || len(f[3]) != nonceSize {
		return nil, "", fmt.Errorf("%w: it is of another kind", ErrOtherServer)
	}
	if string(f[2]) != audience {
		return nil, "", fmt.Errorf("%w: it is for %.200q, and %.200q was dialled", ErrOtherServer, f[2], audience)
	}
	if server != "" && string(f[1]) != server {
		return nil, "", fmt.Errorf("%w: it comes from server %.80q, and the one known is %q", ErrOtherServer, f[1], server)
	}
	return ed25519.Sign(key, challenge), string(f[1]), nil
}

// registration returns the record that a device signs to fetch its token.
func registration(server, request, device string, key ed25519.PublicKey) []byte {
	return record([]byte(registerContext), []byte(server), []byte(request), []byte(device), key)
}

// SignRegistration signs the proof of key for a pending registration.
func SignRegistration(key ed25519.PrivateKey, server, request, device string) []byte {
	pub, _ := key.Public().(ed25519.PublicKey)
	return ed25519.Sign(key, registration(server, request, device, pub))
}

// Encodings of points of small order, by y: signatures under them prove nothing.
var smallOrder = [][32]byte{
	{}, // y = 0
	{1},
	{0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
	{0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05},
	{0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a},
}

// fieldPrime is 2^255-19, little-endian.
var fieldPrime = [32]byte{0xed, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}

// checkKey refuses invalid keys: of another length, not canonical, or of small
// order.
func checkKey(key []byte) error {
	if len(key) != ed25519.PublicKeySize {
		return fmt.Errorf("%w: a public key has %d bytes, not %d", ErrBadRequest, ed25519.PublicKeySize, len(key))
	}
	var y [32]byte
	copy(y[:], key)
	y[31] &= 0x7f
	if slices.Contains(smallOrder, y) {
		return fmt.Errorf("%w: the public key is of small order", ErrBadRequest)
	}
	big, prime := slices.Clone(y[:]), slices.Clone(fieldPrime[:])
	slices.Reverse(big)
	slices.Reverse(prime)
	if bytes.Compare(big, prime) >= 0 {
		return fmt.Errorf("%w: the public key is not canonical", ErrBadRequest)
	}
	return nil
}
