// Package feature is the API through which capabilities contribute to the host:
// tools, hooks, services, background tasks and providers, which discover their
// tools when they start.
//
// It is neither the plugin permission layer nor the MCP trust and sandbox layer: it
// makes no decision about rights. The caller of [Host.Install] has made it already;
// the ordinary dispatcher decides about calls of contributed tools.
//
// # Providers
//
// A [Provider] is declared, then starting (→ installing) → ready | degraded | failed →
// stopped. A provider that downloads its program reports that, and gets more time. A
// supervisor starts it, discovers its tools, registers them in the ordinary tool registry,
// and restarts it when it fails: at once the first time, then with backoff from 1 s to 60
// s and jitter, which resets after 5 minutes of health. Stop is called exactly once for
// every Start, even for one that failed. Each provider has its own supervisor, so a bad
// one delays nobody.
//
// A call of a tool waits for a provider that is starting, and makes a failed one
// try again; if that fails, the answer names provider, state and reason.
//
// # Refresh
//
// A provider that reports changed tools is marked dirty. [Host.Boundary], called
// where a turn begins and where a client lists tools, discovers again, at most once
// in five seconds per provider, and publishes one new snapshot. Turns that run keep
// the snapshot they pinned.
//
// # Untrusted data
//
// Names, descriptions, schemas and annotations of providers are bounded,
// stripped of characters that act on a terminal or hide text, and never decide
// anything. Results reach a model only through the dispatcher's bounds.
package feature
