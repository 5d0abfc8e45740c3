// Package folder decides whether a session may run or change anything in the folder
// that it works in.
//
// A folder that nobody has trusted is restricted: its files can be read and searched,
// and nothing in it runs, configures yaya or instructs an agent. The first call that
// needs more asks a person one question, which shows the folder and, literally,
// everything in it that could then run. The answer is stored
// with the digest of the shown content; when that content changes, the folder is
// restricted again and the question shows the difference.
//
// [Store] keeps the answers in a private file, written whole, and reads it again for
// every query, so an answer from another process counts at once. With an unreadable
// file, nothing is trusted. [Gate] asks, once for all calls of a session that need the
// same answer. The package starts no goroutine.
package folder
