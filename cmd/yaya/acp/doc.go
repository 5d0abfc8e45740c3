// Package acp lets an editor drive yaya's agents: it speaks version 1 of the Agent Client
// Protocol (agentclientprotocol.com, schema 1.21) on standard input and output, as a client
// of the session API.
//
// A session of the editor is a session of yaya: the page, the terminal and other editors see
// it, too, and it stays when the editor goes. The package translates: events of a session
// become session/update, in their order; a question becomes session/request_permission, and
// is withdrawn when somebody else has answered it; a prompt is over when its turn is.
//
// The tools of the agent work on the disk, with yaya's sandbox and approvals: files and
// terminals of the editor are not used. yaya starts no server that an editor names, because
// a server is added by its user, who has seen what it runs.
package acp
