// Package stdioproxy stands in front of a running daemon for a client that speaks MCP
// over stdin and stdout: "yaya mcp serve" beside "yaya serve", so that no server is
// started twice.
//
// Each line of the client becomes one request to the daemon's MCP endpoint, and each
// message of an answer or of the daemon's stream becomes one line. Requests run beside
// each other; only initialize holds back what follows it. Messages pass unchanged, but
// for breaks of lines between their tokens.
//
// A daemon that restarts does not know the client's session. The proxy then introduces
// the client again, with the initialize request that the client has sent, and sends the
// message once more, so that the client notices nothing. While no daemon answers, each
// request has an error of its own; the proxy goes on. A line that is not a message is
// answered here, under its id where one can be read.
//
// Memory is bounded: large messages pass while they come, or wait for their share (see
// internal/intake). When the input ends, answers that are under way have a second.
package stdioproxy
