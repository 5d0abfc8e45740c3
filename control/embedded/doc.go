// Package embedded runs a NATS server inside yaya: the servers of all nodes keep the control log of
// the cluster, so that a team needs none of its own.
//
// Servers reach each other over routes, on the address that the user has chosen, with TLS 1.3 alone.
// Both sides present a certificate of the cluster's authority, whose key follows from the identity of
// the cluster ([crypto/hkdf]): every node can make one for itself, and nobody else can. A node that
// was removed is refused by its name.
//
// Clients connect in-process ([Server.Options]). The server has a listener for them nevertheless, on
// the loopback interface, because it makes no routes without one; nobody knows its passwords, which
// are made at each start.
//
// A server never elects itself out of ignorance. The one that founds a cluster begins with itself as
// the only voter; each other one begins without a say, until a server that knows the cluster has told
// it who votes. [Server.Close] waits for everything that [Start] has started.
package embedded
