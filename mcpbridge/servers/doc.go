// Package servers reads, merges and writes MCP server configuration.
//
// It accepts the formats of [Formats], each a dialect in one table, and turns each
// into the same [Server]. [Parse] leaves variables as they are, in one syntax
// whatever the format's own, so that importing copies references and no
// secrets; [Server.Expand] resolves them.
//
// A broken file is an error. A broken server is reported in its place and hurts
// no other. A member that is not understood is an error in yaya's own files and
// a warning in foreign ones (R31).
//
// The package consists of pure functions: it starts nothing, and reads nothing
// but what it is given. Files are the caller's.
package servers
