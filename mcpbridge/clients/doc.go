// Package clients writes yaya's own entry into the files in which MCP clients keep
// their servers.
//
// An edit changes yaya's entry and nothing else: comments, order and layout of the
// rest stay as they are, byte by byte. What is written is read again before it is
// returned; an edit that would change the meaning of anything else is an error, and so
// is a file that cannot be read. Adding what is there changes nothing.
//
// The package consists of pure functions. Files are the caller's.
package clients
