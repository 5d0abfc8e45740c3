// Package fastpath serves simple HTTP/1.1 requests in front of net/http's server.
//
// A client that keeps its connection sends the same head with each request, but for the
// digits of Content-Length. The fast path checks such a head strictly once, has
// [http.ReadRequest] parse it, and recognizes it from then on by comparing bytes. Reading,
// handling and writing happen on one goroutine, with one read and one write of the system.
//
// Only what cannot be understood in two ways is served here: a POST with Content-Length for
// a path of [Config.Takes], with plain fields, each of them once. If anything else arrives on a
// connection, net/http gets that connection, with the bytes that were read, for the rest of
// its life. So net/http alone decides about everything that is unusual, broken or hostile. With
// TLS the fast path makes the handshake, and keeps the connection if that leads to HTTP/1.1.
//
// The handler is an ordinary [http.Handler], and its requests are the same as those of
// net/http, except that
//   - the context of a request ends with its connection;
//   - its Header has no Content-Length (ContentLength has it), and belongs to all requests of
//     the connection with that head, so nobody may change it;
//   - connections cannot be hijacked, and an answer has no trailers and no Transfer-Encoding but
//     the one that the fast path chooses.
package fastpath
