// Package llm is the contract of model providers: a stream of parts, a count of
// tokens, and errors of few kinds (Y-145…Y-153).
//
// A provider plugin implements [Provider] and hands each llm.call.request to a
// [Runner], which streams it on a goroutine of its own: every part becomes an
// llm.call.delta, and every request ends in exactly one llm.call.response or
// llm.call.error, whatever the provider does. The runner retries what is worth
// retrying, as long as nothing has been streamed yet, and cancels a session's
// calls when its user interrupts. [Runner.Close] waits for them.
package llm
