// Package chat is the terminal client of the session API (yaya chat): a separate program that
// uses HTTP and does not know the kernel.
//
// [Client] covers the required part of the API, [Run] is the program. All content of a session
// is untrusted and cannot control the terminal: control characters and those that change the
// direction of text are made visible. Separate keys answer a question, at the earliest half a
// second after it appeared, so that ordinary typing cannot answer it.
//
// Run starts one goroutine that follows the shown session. The goroutine ends when another
// session is shown or when the program ends; Run waits for it.
package chat
