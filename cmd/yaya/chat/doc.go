// Package chat is the terminal client of the session API (yaya chat): a program of
// its own that speaks HTTP and knows nothing of the kernel.
//
// [Client] is the API as far as it is needed, [Run] the program. Whatever comes from a
// session is untrusted and cannot control the terminal: control characters and those
// that change the direction of text are shown as what they are (R15, UI-10). A question
// is answered by keys of its own, half a second after it has appeared at the earliest,
// so that what somebody was typing is no answer (UI-07).
//
// Run starts one goroutine that follows the session that is looked at, which ends when
// another is or when the program does; Run waits for it.
package chat
