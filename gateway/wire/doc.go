// Package wire is the wire protocol: WebSockets of authenticated devices, on
// which they join topics and get events, in MessagePack or JSON, framed as
// Phoenix channels. docs/WIRE.md is the protocol in words.
//
// # The way of a message
//
// In: a frame is read with limits, MessagePack is turned into JSON ([Server] knows
// but one meaning), the envelope is opened strictly, and the topic's [Topic]
// handles it. Out: an event is marshalled once, encoded once for each encoding and
// framing that a subscriber has, and the bytes are shared by all queues.
//
// # Ownership
//
// A connection has one goroutine that reads, and another that writes while there
// is something to write. Its queue is bounded: who does not keep up is closed with
// 4408 and resumes with the cursor it has. Publishing never waits. A goroutine of
// the connection reads the events that a join still has to catch up with, at the
// pace of its client. [Server.Close] waits for all of them.
package wire
