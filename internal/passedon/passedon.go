// Package passedon marks connections that a process makes on behalf of a program that is
// not its user's: those of a sandbox. A server at the other end, such as another gateway
// of the same user, sees the process of a user that it trusts; the mark says that the
// request is not that user's.
//
// The mark is a type of service of the block for local use (RFC 2474 section 6, pool 2),
// which Linux shows of both ends of a connection on the same machine (sock_diag(7)). It is
// for loopback connections alone. It is not a secret and proves nothing: it only removes a
// right.
package passedon

// TOS is the type of service, or traffic class, of marked connections.
const TOS = 0xdc
