// Package downstream is yaya as an MCP server: one endpoint for both protocol
// eras over streamable HTTP, and the same over standard streams.
//
// It has a transport of its own. What it relays, it relays as bytes: a call's
// params reach the dispatcher unparsed but for the members that routing and
// policy need, and a provider's result, or its error object, is written as it
// came (see docs/MCP.md for why the library's transport does not serve).
//
// # Streams
//
// What happens while a request runs goes to that request's own response stream,
// always, and a response becomes a stream only when there is something to say
// before the result. Messages that concern no request go to the GET stream of
// their session, or to subscriptions/listen.
//
// # Sessions
//
// A legacy client gets a session with initialize; it ends with DELETE, after 30
// minutes without a request or stream, or with the server. A modern client has
// none. Each has a kernel session, which is what upstream connections per client
// are keyed by.
//
// Goroutines run only inside requests, plus one that expires sessions;
// [Server.Close] waits for it and ends every stream.
package downstream
