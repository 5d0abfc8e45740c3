// Package folder decides whether a session may run or change anything in the folder
// that it works in.
//
// A folder that nobody has trusted is restricted: its files can be read and searched,
// and nothing in it runs, configures yaya or instructs an agent. The first call that
// needs more asks a person one question: the folder, and literally everything in it
// that trusting it would let run without another question. The answer is kept with the
// digest of what was shown; when the folder brings something else, it is restricted
// again and the question shows the difference.
//
// [Store] keeps the answers in a private file, written whole, and reads it again at
// every look, so an answer from another process counts at once. A file that cannot be
// read trusts nothing. [Gate] asks, once for all calls of a session that need the same
// answer. The package starts no goroutine.
package folder
