// Package clients writes yaya's own entry into the files in which MCP clients keep
// their servers.
//
// An edit changes only yaya's entry: comments, order and layout of the rest stay unchanged,
// byte by byte. The package parses the result before it returns it; an edit that would change
// the meaning of anything else is an error, and so is a file that cannot be read. Adding an
// existing entry changes nothing.
//
// The package consists of pure functions. The caller reads and writes files.
package clients
