// Package upstream connects one MCP server and presents it as one feature
// provider.
//
// It speaks both protocol eras, the legacy one with its initialize handshake
// (2024-11-05 to 2025-11-25) and the stateless one from 2026-07-28, over stdio,
// streamable HTTP and HTTP+SSE. It negotiates by itself: a pipe that clients share
// begins with initialize, a connection for clients of one era with that era's
// handshake, and the other one follows when the first is refused. Silence decides
// nothing but a start that takes too long. What a server refuses is remembered
// across restarts.
//
// # Raw relay
//
// Arguments and results cross this package as the bytes they came in. A request
// is built by splicing the caller's params, a result is handed on after one
// strict scan; unknown members, big integers, error codes and error data survive.
//
// # Sessions
//
// A session is one connection to the server: a child process or a session over
// HTTP, in one era. The main session discovers tools and serves callers that share; other
// policies open sessions per client, per call, or a pool, and recycle idle ones.
// The loss of the main session fails the provider, whose supervisor restarts
// it; other sessions are replaced by the next call that needs them.
//
// # Hostile servers
//
// Everything from a server is bounded: lines, events, pages, tools, notes and
// time (R22). What it sends that answers nothing is dropped and counted.
// Notifications never run code on the goroutine that reads.
//
// Every goroutine and child process belongs to a session, and [Provider.Stop]
// waits for them.
package upstream
