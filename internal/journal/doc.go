// Package journal keeps append-only files of JSON records, each chained to the
// one before it. The session tape and the control log are journals.
//
// # Format
//
// A record is one line: {"id":N,<members>,"prev":"…","sum":"…"}. Ids are
// consecutive. sum is the first half of the SHA-256 of the line up to it, prev the
// sum of the record before; so [Scan] detects every changed bit, and every record
// that was removed, exchanged or inserted before the last one. Records missing at
// the end cannot be detected from the file alone.
//
// # Durability
//
// [Journal.Append] makes one write(2) and returns; [Journal.Sync] returns once a
// record, and the file's name, have reached the disk. Concurrent syncs share an
// fsync. A failed write is taken back. After a failed fsync nothing can be
// appended before [Journal.Recover] has cut the file to what was synced before
// and has verified it: the system forgets which pages it could not write.
//
// A record that a crash cut short has no line end; it was never acknowledged and
// is cut off on open. Every other damage is an error of type [*DamageError], and
// the file is not written to.
//
// # Ownership
//
// An open journal holds an exclusive flock on its file. All methods are safe for
// concurrent use. The package starts no goroutines.
package journal
