// Package llm defines the interface of model providers: a stream of parts, a count
// of tokens, and a few kinds of errors.
//
// A provider plugin implements [Provider] and hands each llm.call.request to a
// [Runner], which streams it on its own goroutine: every part becomes an
// llm.call.delta, and every request ends in exactly one llm.call.response or
// llm.call.error, whatever the provider does. The runner retries transient
// failures, as long as nothing has been streamed yet, and cancels a session's calls
// when its user interrupts. [Runner.Close] waits for them.
package llm
