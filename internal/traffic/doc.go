// Package traffic is the record of the calls that pass through yaya: who called which
// tool of which server, for how long, and what became of it, with the beginning of the
// arguments and of the result.
//
// # On disk
//
// Records are lines of JSON in segments, <id of the first>.ndjson, in a directory of
// their own; files are 0600. Ids ascend, whatever the clock does. The oldest segment is
// removed when all of them have [Settings].MaxBytes, or when it is older than
// [Settings].Days; a segment is ended after a day at the latest, so a record stays for
// at most a day longer than that. What a day came to, per server, tool and client, is
// kept for a year in days/<date>.json.
//
// # Cost
//
// [Log.Add] copies what it keeps, at most 16 KiB of the arguments and of the result,
// into memory that is reused, and returns: it does not wait for the disk, encode, mask
// or start anything. A goroutine writes what has gathered ten times a second, in one
// write(2) each, without fsync: when yaya is killed, at most the last moment is lost.
// What gathers is bounded. When there is too much of it, records are kept without
// bodies, then dropped and counted. A disk that is full, or fails, costs records, is
// told once and tried again.
//
// # Several processes
//
// Processes that share a directory take turns by a lock on it, for the length of a
// write. Reading needs no lock: a line that is not whole yet is left for later.
package traffic
