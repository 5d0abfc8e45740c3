// Package gateway is yaya's HTTP surface: one listener and one Unix socket. Every route
// declares who may use it (gateway/api); testdata/routes.golden lists all of them.
//
// An address that other machines can reach needs TLS, here or at a proxy. A
// request must name an allowed Host and must not come from a foreign web page. Its
// token says whom it is from; without one, the connection alone does: the socket, or on
// Linux a loopback peer of the user that runs yaya, which is looked up once per
// connection, and never behind a proxy.
//
// [Server.Run] blocks; when it returns nil, nothing that it started still runs.
package gateway
