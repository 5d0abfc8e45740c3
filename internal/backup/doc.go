// Package backup writes and reads backups: one file that holds other files, in the order
// in which they were added.
//
// # Format
//
// A backup is a tar archive, compressed with gzip, and encrypted with age if it has
// recipients; age, gzip and tar read it without yaya. Its first member is backup.json, a
// [Head]; its last is end.json, an [End] with the number of files, of their bytes, and the
// SHA-256 of all names, sizes and contents. The members between them are regular files
// with the names and the times that they were added with.
//
// # Integrity
//
// [Reader.Next] returns io.EOF only for a backup that is whole: it ends where end.json says,
// and the sums of end.json, gzip and age match. A backup without recipients is not signed:
// its sums find damage, and not an attacker.
//
// A [Writer] and a [Reader] are not safe for concurrent use.
package backup
