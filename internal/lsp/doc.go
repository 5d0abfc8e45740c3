// Package lsp asks a language server what is wrong in files. It speaks the Language Server
// Protocol 3.17 to a process that its caller has started, and ends: nothing here waits for a
// process, and a server that does not read holds its caller up until the process is gone.
//
// The server is not trusted: messages, findings and their texts are bounded, what it names
// outside the folder is left out, and its requests change nothing. A [Server] is safe for
// concurrent use; calls of Check wait for each other.
package lsp
