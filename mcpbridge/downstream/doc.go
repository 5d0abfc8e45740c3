// Package downstream is yaya as an MCP server: one endpoint for both protocol
// eras over streamable HTTP, and the same over standard streams.
//
// It has its own transport, which relays bytes: a call's params reach the dispatcher unparsed,
// except for the members that routing and policy need, and a provider's result or error object
// is written unchanged (docs/MCP.md explains why the library's transport is not suitable).
//
// # Streams
//
// Messages about a running request always go to that request's own response stream, and a
// response becomes a stream only if there is a message before the result. Messages that concern
// no request go to the GET stream of their session, or to subscriptions/listen.
//
// # Sessions
//
// A legacy client gets a session with initialize; it ends with DELETE, after 30 minutes without
// a request or stream, or with the server. A modern client has no session. Both have a kernel
// session, which is the key for upstream connections per client.
//
// Goroutines run only inside requests, plus one that expires sessions;
// [Server.Close] waits for it and ends every stream.
package downstream
