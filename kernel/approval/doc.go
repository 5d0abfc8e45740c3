// Package approval decides which tool calls run: rules first ([Policy]), then a
// person ([Runtime]).
//
// An ask binds exactly what runs: the tool's identity, the hash of its definition,
// and the digest of its canonical arguments. It is written to the tapes of the
// asking session and of its root before anybody sees it, travels on the kernel
// session, is answered once, and ends by answer, timeout or shutdown, whichever
// comes first; the first answer is recorded. If nobody can be asked, the call is
// refused.
//
// [Runtime.Approve] waits on its caller's goroutine, which is never a bus
// handler's, and holds no lock meanwhile. The runtime starts no goroutines.
package approval
