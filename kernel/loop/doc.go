// Package loop drives the turns of all sessions, each in the one fixed order
// (Y-157):
//
//	user.message.received → strategy.decide → memory.query → llm.call →
//	tool.call … → assistant.message.done → memory.write
//
// A strategy chooses what is offered, whether memory is asked, and when to stop;
// a decision that would change the order fails the turn (Y-158). The history of
// every model call is the session's projection, so what steers a running turn is
// seen at its next call.
//
// A session runs one turn at a time, on a goroutine that [Loop.Close] waits for.
// Every turn ends in exactly one of turn.completed, turn.failed and
// turn.cancelled, whatever its strategy, model or tools do. Cancelling is out of
// band: it does not queue behind anything.
package loop
