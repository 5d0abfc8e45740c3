// Package datadir knows the files of a data directory: it verifies them, and mends those
// that are damaged.
//
// [Verify] changes nothing and may run beside a daemon. [Repair] cuts tapes to their
// verified entries, saves what can be read of the memory, and moves every other damaged
// file to a folder below damaged/, where yaya never looks again: nothing is deleted. It
// runs when a person asks for it, and says of each file what was lost. It leaves a file that
// it cannot read, which may be whole, and says why. The control log and its keys are not its
// business.
//
// Functions are safe for concurrent use; [Repair] needs the data directory for itself.
package datadir
