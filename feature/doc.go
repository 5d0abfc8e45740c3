// Package feature is the API through which capabilities contribute to the host:
// tools, hooks, services, background tasks and providers, which discover their
// tools when they start (F-1).
//
// It is neither the plugin permission layer nor the MCP trust and sandbox
// layer: it takes no decision about who may do what (F-2…F-5, F-24). Whoever
// installs a contribution has decided that already; calls of contributed tools
// are decided on by the ordinary dispatcher.
//
// # Providers
//
// A [Provider] is declared, then starting (→ installing) → ready | degraded |
// failed → stopped. One that fetches what it starts says so, and has longer for it. A supervisor starts it, discovers its tools, registers them in the
// ordinary tool registry, and restarts it when it fails: at once the first
// time, then with back-off from 1 s to 60 s and jitter, from the beginning again
// after 5 minutes of health. Stop is called exactly once for every Start, also
// for one that failed (F-7). Each provider has its own supervisor, so a bad one
// delays nobody.
//
// A call of a tool whose provider is starting waits for it; one whose provider
// has failed makes it try again, and gets an answer that names provider, state
// and reason when that fails (F-8, F-9).
//
// # Refresh
//
// A provider that says its tools have changed is marked dirty. [Host.Boundary],
// called where a turn begins and where a client lists tools, discovers again,
// at most once in five seconds per provider, and publishes one new snapshot.
// Turns that run keep the snapshot they pinned (F-13…F-15).
//
// # Untrusted data
//
// Names, descriptions, schemas and annotations of providers are bounded,
// stripped of characters that act on a terminal or hide text, and never decide
// anything (F-16). Results reach a model only through the dispatcher's bounds.
package feature
