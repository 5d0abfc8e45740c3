// Package auth authenticates callers and authorizes their requests.
//
// An [Authority] knows the devices of this yaya. A device is an Ed25519 key with a name
// and [Scope]s; it enrolls with an invitation's code or by somebody's approval (never by
// itself), and gets tokens: RS256, for this instance only, for at most 24 hours. The
// client of a WebSocket also proves the key by signing a [Challenge]. All of it is state
// of the control log, durable before it is acknowledged: the authority is a projection
// and starts with nothing else but its key files. A revocation takes effect at once, even
// for calls in flight ([Authority.Hold]).
//
// A [Verifier] checks access tokens that an external authorization server has
// issued for this yaya. Its keys come from that issuer's JWKS only; it fetches no
// address that a token names.
//
// Every surface calls one function to authorize a request: [Allow]. [Attempts] is
// the one budget for failed attempts.
//
// The package starts no goroutine. Timers of holds end with their release.
package auth
