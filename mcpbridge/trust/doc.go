// Package trust stores the user's approvals: the tools that a server may offer, with their
// descriptions, and the instructions that it may give its clients' models.
//
// A server's tools are pinned by their whole definitions when they are first seen, its
// instructions by their text. A tool that appears later, however soon, or whose call changes,
// waits for approval: until then, it is neither listed nor called, and the change can be shown.
// If only a description changes, the tool keeps its approved definition, and the same holds for
// instructions; nobody sees the new text before it is approved. All tools of a server wait if
// the server changes its name, falls back to an older protocol of the same era, or changes its
// tools too often.
//
// The files are private to the user, written atomically, and read again when another process
// has changed them. An unreadable file blocks the server.
package trust
