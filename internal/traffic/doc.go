// Package traffic records the calls that pass through yaya: caller, tool, server,
// duration and outcome, with the beginning of the arguments and of the result.
//
// # On disk
//
// Records are lines of JSON in segments, <id of the first>.ndjson, in a directory of
// their own; files are 0600. Ids ascend, whatever the clock does. The oldest segment is
// removed when all of them have [Settings].MaxBytes, or when it is older than
// [Settings].Days; a segment is ended after a day at the latest, so a record stays for
// at most a day longer than that. Daily sums per server, tool and client stay for a
// year in days/<date>.json.
//
// # Cost
//
// [Log.Add] copies at most 16 KiB of the arguments and of the result into reused
// memory, and returns: it does not wait for the disk, encode, mask or start anything.
// A goroutine writes the queue ten times a second, in one write(2) each, without
// fsync: when yaya is killed, at most the last moment is lost. The queue is bounded.
// When it is full, records are kept without bodies, then dropped and counted. A full
// or failing disk loses records, is reported once and tried again.
//
// # Several processes
//
// Processes that share a directory take turns by a lock on it, for the length of a
// write. Reading needs no lock: it skips an incomplete line until later.
package traffic
