// Package approval decides which tool calls run: rules first ([Policy]), then a
// person ([Runtime]).
//
// An ask binds exactly what runs: the tool's identity, the hash of its
// definition, and the digest of its canonical arguments (R18). It is written to
// the asking session's tape and its root's before anybody sees it, travels on the
// kernel session (Y-37), is answered once, and ends by answer, timeout or
// shutdown, whichever comes first; the first answer is the recorded one. Nobody
// to ask means no.
//
// [Runtime.Approve] waits on its caller's goroutine, which is never a bus
// handler's, and holds no lock meanwhile. The runtime starts no goroutines.
package approval
