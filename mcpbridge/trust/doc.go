// Package trust remembers what the user has agreed to: which tools a server may
// offer, in which words, and what it may tell the models of its clients.
//
// A server's tools are pinned by their whole definitions when they are seen for the
// first time, its instructions by their text. A tool that appears later, however soon, or
// is called differently, waits: it is neither listed nor called until it is approved, and
// what has changed can be shown. One that is only described differently goes on with the
// definition that was approved, and so do instructions; nobody reads the new words before
// they are approved. Every tool of a server that says that it is somebody else, falls back
// to an older protocol of the same era, or changes its mind too often waits as well (R19,
// UP-03, UP-34).
//
// The files are private to the user, written whole, and read again when another
// process has written them. What cannot be read blocks.
package trust
