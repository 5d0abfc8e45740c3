// Package trust remembers what the user has agreed to: which tools a server may
// offer.
//
// A server's tools are pinned by the hash of their whole definitions when they
// are seen for the first time. A tool that appears or changes later waits: it is
// neither listed nor called until it is approved, and what has changed can be
// shown. So does every tool of a server that says that it is somebody else, falls
// back to an older protocol, or changes its mind too often (R19, UP-03, UP-34).
//
// The files are private to the user, written whole, and read again when another
// process has written them. What cannot be read blocks.
package trust
