// Package relay is what downstream and upstream share: how a request of a
// client reaches a server and what that server may ask and tell meanwhile, and
// which server a prompt or a resource belongs to.
//
// A [Peer] is a client during one request. A [Server] is a connected server. The
// [Router] joins the lists of all servers, gives every entry one name, finds the
// server of a name, and carries notifications to the clients that they concern.
//
// # Names
//
// Prompts are named like tools: <prefix>__<name>. A resource keeps its URI,
// because results refer to it by that; where two servers have the same one, the
// server that comes first by name has it, and the other's is listed as
// yaya://<server>/<escaped URI>, a form in which every resource of every server
// can be read.
//
// Everything from servers is raw JSON that was scanned once. No goroutine
// outlives the call that needs it.
package relay
