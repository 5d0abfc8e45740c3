// Package loop drives the turns of all sessions, each in the one fixed order:
//
//	user.message.received → strategy.decide → memory.query → llm.call →
//	tool.call … → assistant.message.done → memory.write
//
// A strategy chooses the tools to offer, whether to ask memory, and when to stop; a
// decision that would change the order fails the turn. The history of every model
// call is the session's projection, so the next call sees messages that steer a
// running turn.
//
// A session runs one turn at a time, on a goroutine that [Loop.Close] waits for.
// Every turn ends in exactly one of turn.completed, turn.failed and turn.cancelled,
// whatever its strategy, model or tools do. Cancellation is out of band: it does
// not queue behind anything.
package loop
