// Package session stores conversations: each on an append-only tape, from which
// everything else is derived.
//
// # Tape
//
// The [Manager] is the bus's recorder. It writes the events of a session to
// tapes/<name>.jsonl in the order in which the bus accepts them, before any
// subscriber sees them, and leaves out events that are not history (deltas,
// progress, session.*). The write has happened when publishing returns;
// [Session.Sync] waits for the disk. A failed write refuses the events whose
// emitter must know, and is reported for the others.
//
// # Projections
//
// The model's history ([Session.Messages]), the running turn, open asks and queued
// prompts ([Session.Snapshot]) follow from the entries and are updated as these are
// written: a turn starts in the same time on a tape of a million entries as on a
// fresh one. Opening a tape reads it once, verifies every bit, and repairs the
// traces of a crash: calls without result, asks without answer, a turn without end.
//
// # Attaching
//
// A [Cursor] is {epoch, entry id} for every surface. A [Connection] follows the
// tape from its cursor on its own goroutine and continues with live events where
// the tape ends: no gap, no duplicate, no reordering. A slow reader costs nobody
// anything, since it reads missed entries from the tape. For an invalid cursor it
// gets a resync with a snapshot.
//
// All methods are safe for concurrent use. [Manager.Run] owns the one goroutine
// that reaps; every connection has one; [Manager.Close] waits for all.
package session
