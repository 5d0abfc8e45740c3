// Package chat is the terminal client of the session API (yaya chat): a separate program that
// uses HTTP and does not know the kernel.
//
// [Client] covers the required part of the API, [Run] is the program. All content of a session
// is untrusted and cannot control the terminal: control characters and those that change the
// direction of text are made visible. Separate keys answer a question, at the earliest half a
// second after it appeared, so that ordinary typing cannot answer it.
//
// Run starts goroutines that follow the shown session, write the history and watch for signals. It
// waits for all of them. The terminal is as it was whenever the program ends or is stopped, even
// by a panic of theirs.
package chat
