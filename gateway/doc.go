// Package gateway is yaya's HTTP surface: one listener on the loopback
// interface and one Unix socket, with every route and its policy on one screen.
//
// Nothing here is reachable from another machine: a listen address that is not
// loopback is refused. A request must name an allowed Host and must not come from
// a foreign web page (R16); on Linux a TCP peer must belong to the user that runs
// yaya, which is looked up once per connection (R6).
//
// [Server.Run] blocks; when it returns nil, nothing that it started still runs.
package gateway
