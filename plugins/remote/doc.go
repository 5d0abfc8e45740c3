// Package remote runs plugins as processes of their own.
//
// A [Plugin] is one: to the kernel it is a plugin like the bundled ones. It starts the
// program of a folder, and speaks JSON-RPC 2.0 with it over standard input and output, one
// message a line; docs/PLUGINS.md specifies the messages, which the types here are. The
// [Description] is the folder's plugin.toml.
//
// The program is hostile: everything that it sends is bounded, whatever it emits carries
// its own name, and an answer reaches only a request that it was given. A program that
// exits is started again by the next event or call. Failures count as those of
// bundled plugins do.
//
// A process has two goroutines, its reader and, while there is something to write, its
// writer; [Plugin.OnUnload] ends them. Calls that run when a plugin is loaded again end in
// the process in which they began; [Plugin.Close] waits for those.
package remote
