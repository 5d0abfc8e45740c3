// Package sessions is the API of chat sessions, /v1: JSON over HTTP, and events as
// server-sent events.
//
// It owns no truth. A session is its tape (kernel/session); what a client sees
// follows from the tape's entries, each by itself (project.go), and the same cursor
// <epoch>:<seq> goes through every surface. For each session that it has created it
// keeps a folder:
//
//	sessions/<id>/session.json    what the session is, and how it stands
//	              events.ndjson   every event that clients are sent
//	              attachments/    what was uploaded
//	              artifacts/      what tools have left, by turn
//
// A feed follows a session while something happens or somebody listens: one reader
// of the tape for all clients, which encodes every event once. A client that does
// not keep up is disconnected, and resumes from the last id that it has seen.
//
// The OpenAPI document is made from the handlers. Errors are
// {"error":{"code","message","request_id"}}.
package sessions
