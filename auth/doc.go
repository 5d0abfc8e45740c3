// Package auth establishes who is calling.
//
// A [Verifier] checks access tokens that an external authorization server has
// issued for this yaya: signature, issuer, audience, lifetime. Its keys come from
// that issuer's JWKS alone; nothing that a token says is fetched (R1).
//
// The package decides about nothing but identity, and starts no goroutine.
package auth
