// Package upstream connects one MCP server and presents it as one feature
// provider.
//
// It speaks both protocol eras, the legacy one with its initialize handshake (2024-11-05 to
// 2025-11-25) and the stateless one from 2026-07-28, over stdio, streamable HTTP and HTTP+SSE.
// It negotiates the era itself: a pipe that clients share begins with initialize, a connection
// for clients of one era with that era's handshake, and if the server refuses the first, the
// other one follows. Silence decides nothing, except that a start can time out. Refusals are
// remembered across restarts.
//
// # Raw relay
//
// Arguments and results cross this package as unchanged bytes. A request is built by splicing
// the caller's params, a result is forwarded after one strict scan; unknown members, big
// integers, error codes and error data survive.
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
// Everything from a server is bounded: lines, events, pages, tools, notes and time. Messages
// that answer nothing are dropped and counted. Notifications never run code on the goroutine
// that reads.
//
// Every goroutine and child process belongs to a session, and [Provider.Stop]
// waits for them.
package upstream
