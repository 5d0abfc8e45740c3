// Command bench measures yaya's relay beside a direct connection, in one
// alternating run, with the real binary: `make bench`.
//
// The upstream is a minimal MCP server of its own, over HTTP and over stdio; the
// client keeps connections open and does no more than it must. Every figure of
// yaya stands beside one of the direct connection from the same moment, because
// absolute figures of a shared machine mean little.
package main
