// Package gateway is yaya's HTTP surface: one listener and one Unix socket, with
// every route and its policy on one screen (routes.go).
//
// An address that other machines can reach needs TLS, here or at a proxy (R11). A
// request must name an allowed Host and must not come from a foreign web page
// (R16). Who it is from is told by its token; without one, by the connection alone:
// the socket, or on Linux a loopback peer of the user that runs yaya, which is
// looked up once per connection, and never behind a proxy (R6).
//
// [Server.Run] blocks; when it returns nil, nothing that it started still runs.
package gateway
