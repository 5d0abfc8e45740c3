// Package auth establishes who is calling, and decides what they may do.
//
// An [Authority] knows the devices of this yaya. A device is an Ed25519 key with a
// name and [Scope]s; it gets in by an invitation's code or by somebody's approval
// (never by itself), and is given tokens: RS256, for this instance alone, for at
// most 24 hours. Whoever holds a WebSocket open has proved the key by signing a
// [Challenge] as well. All of it is state of the control log, durable before it
// is acknowledged: the authority is a projection and starts with nothing else but
// its key files. What is revoked ends at once, also what is under way ([Authority.Hold]).
//
// A [Verifier] checks access tokens that an external authorization server has
// issued for this yaya. Its keys come from that issuer's JWKS alone; nothing that
// a token says is fetched (R1).
//
// Every surface asks one function whether somebody may do something: [Allow]
// (R7). [Attempts] is the one budget for guessing (R6).
//
// The package starts no goroutine. Timers of holds end with their release.
package auth
