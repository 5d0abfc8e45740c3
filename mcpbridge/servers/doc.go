// Package servers reads, merges and writes MCP server configuration.
//
// It accepts the formats in [Formats], each a dialect in one table, and turns each into the
// same [Server]. [Parse] keeps variables unresolved and converts them to one syntax, so that an
// import copies references instead of secrets; [Server.Expand] resolves them.
//
// A broken file is an error. A broken server is reported in its place and does not affect the
// others. An unknown member is an error in yaya's own files and a warning in foreign ones.
//
// The package consists of pure functions: it starts nothing, and reads only its arguments. The
// caller reads and writes files.
package servers
