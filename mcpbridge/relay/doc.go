// Package relay holds the interfaces between downstream and upstream: how a client's request
// reaches a server, which questions and notifications that server can send in the meantime, and
// which server a prompt or a resource belongs to.
//
// A [Peer] is a client during one request. A [Server] is a connected server. The [Router]
// merges the lists of all servers, gives every entry a unique name, finds the server for a
// name, and delivers notifications to the clients that they concern.
//
// # Names
//
// Prompts are named like tools: <prefix>__<name>. A resource keeps its URI, because results
// refer to it. If two servers have the same URI, it belongs to the server that is first by
// name, and the other's is listed as yaya://<server>/<escaped URI>, a form that works for every
// resource of every server.
//
// Everything from servers is raw JSON that was scanned once. No goroutine
// outlives the call that needs it.
package relay
