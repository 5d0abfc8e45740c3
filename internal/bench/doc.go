//go:build unix

// Command bench measures yaya's relay beside a direct connection, in one
// alternating run, with the real binary: `make bench`.
//
// The upstream is a minimal MCP server of its own, over HTTP and over stdio; the
// client keeps connections open and does no more than it must. Every figure of
// yaya stands beside one of the direct connection from the same moment, because
// absolute figures of a shared machine mean little. A relay that is written by hand
// for this comparison and has no rules shows what is left to save, and a profile
// where the time of a small call goes.
//
// baseline.json has the figures of a run on a quiet machine. -compare prints what
// has changed since, -json writes a file like it.
package main
