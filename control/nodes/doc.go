// Package nodes has the members of a cluster: gateways that share one control log, one
// identity, and so their devices and tokens.
//
// A node joins with an invitation of another one, which can be used once ([Nodes.Invite],
// [Nodes.Answer], [Ask]). It gets the identity key of the cluster with it, sealed (RFC 9180), so
// nobody on the way learns it, whatever connection it is sent over.
package nodes
