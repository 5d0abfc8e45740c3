// Package session keeps conversations: each on an append-only tape, from which
// everything else is derived.
//
// # Tape
//
// The [Manager] is the bus's recorder. It writes the events of a session to
// tapes/<name>.jsonl in the order in which the bus accepts them, before any
// subscriber sees them, and leaves out what is not history (deltas, progress,
// session.*; Y-173…Y-177). The write has been made when publishing returns;
// [Session.Sync] waits for the disk. A failed write refuses the events that
// somebody is waiting to have stored, and is reported for the others (Y-182).
//
// # Projections
//
// What a model is shown ([Session.Messages]), the running turn, open asks and
// queued prompts ([Session.Snapshot]) follow from the entries and are kept up to
// date as they are written: a turn starts in the same time on a tape of a
// million entries as on a fresh one. Opening a tape reads it once, verifies every
// bit, and repairs what a crash left: calls without result, asks without answer,
// a turn without end.
//
// # Attaching
//
// A [Cursor] is {epoch, entry id} for every surface. A [Connection] follows the
// tape from its cursor on a goroutine of its own and takes live events over where
// the tape ends: no gap, no duplicate, no reordering, and a slow reader costs
// nobody anything, since it reads what it missed from the tape. A cursor that
// cannot be honoured gets a resync with a snapshot.
//
// All methods are safe for concurrent use. [Manager.Run] owns the one goroutine
// that reaps; every connection has one; [Manager.Close] waits for all.
package session
