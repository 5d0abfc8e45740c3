// Package manage manages the configured MCP servers: it loads their configuration files,
// changes yaya's own file, starts changed servers, asks a person for approvals, and imports
// servers of other clients.
//
// [Load] reads the configuration, and [Loaded.Project] what a folder brings. A server of a
// folder starts only while the folder is trusted with exactly this server: [Digests] are
// what the question about the folder shows, and [Digests.MayStart] compares again at every
// start. [Permits] keep what the user allows such a server, whose file is not the user's.
//
// A [Manager] works on yaya's own file, and on the [Bridge] that runs what is in it; where none
// runs, as in a command without a daemon, on the file alone. A change is prepared first:
// [Prepared] shows what would run, and its Apply does exactly that, or fails with [ErrStale].
// An entry that was edited by hand, and not reloaded, is never overwritten. Reload loads such
// edits: all files or none.
//
// The package does not know the API or the daemon. The code that serves a manager translates
// its types and its errors.
package manage
