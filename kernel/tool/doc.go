// Package tool defines, registers and calls all tools: built-in, MCP, plugin and
// sub-agent tools. There is no other path to a tool.
//
// # Registry
//
// The [Registry] publishes immutable [Snapshot] values with a generation. A turn
// pins one and sees no change before the next turn; readers never lock. A tool's
// identity is the pair (provider, tool); its Name is only the name that models and
// clients use.
//
// # Dispatcher
//
// [Dispatcher.Call] runs the fixed sequence: look up, validate, prepare, PreToolCall hooks,
// policy, approval, run, bound, observe. A [Preparer] fixes a call's inputs before anybody
// decides about it, so that the call that runs is the one that was shown. Denial at any
// stage means that the tool is not invoked. It always returns a [Result]; a panic, an error
// or a timeout of a tool becomes one. [Dispatcher.Serve] offers the same sequence on the
// bus, where every tool.call.request of schema v1 ends in exactly one tool.call.result or
// tool.error.
//
// # Two views of a result
//
// A model gets a bounded Display (64 KiB of text, the rest as an artifact). A
// caller that speaks the provider's own protocol sets [Call.Native] and gets the
// provider's bytes in [Result.Native], untouched.
//
// All types are safe for concurrent use unless they say otherwise. The
// dispatcher runs a tool on the caller's goroutine when the tool promises to
// obey its context ([Obedient]), else on one of its own, which
// [Dispatcher.Close] waits for.
package tool
