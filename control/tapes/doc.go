// Package tapes has the sessions of agents outlive their node: it decides which node of a cluster may
// write to a session, and keeps a copy of what that node writes, on the JetStream of NATS.
//
// # Leases
//
// A node says twice a second that it runs, in a stream that keeps the last such message of each node.
// Each message names the one before it, and the stream takes it only then. So a node can be declared
// dead by another one that has heard nothing for a while: whichever of both is first, the other one is
// refused, and knows. A node acts for [leaseTime] from when it began to say so, and is declared dead
// [silence] after it was heard for the last time at the earliest, which is later. Only how fast clocks
// run matters, and not what they show.
//
// # Sessions
//
// The files of a session are messages on a subject of its own. Each message names the one before it.
// A node that begins to write to a session claims it, with such a message, once for each of its leases;
// whoever was first is its owner, and writes of others are refused from then on. The session of a node
// that was declared dead can be claimed by another one, which makes its files from the messages.
//
// The owner writes to its own disk first, and sends that shortly after. [Tapes.Kept] waits until it is sent.
package tapes
