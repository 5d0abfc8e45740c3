// Package tunnel makes connections between the nodes of a cluster that go through their NATS servers:
// a node need not be reachable for others, and nothing has to be configured.
//
// A [Conn] is a [net.Conn]. Each direction is a subject of its own, whose messages are numbered: a
// message that NATS has lost, as core NATS may, ends the connection. At most [Window] bytes wait
// until a peer reads them. TLS has to find out who speaks at the other end.
package tunnel
