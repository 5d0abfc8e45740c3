// Package budget counts what sessions cost, and says when a limit is reached.
//
// A [Ledger] adds the cost of each model call to the sum of its session, which is that of its
// sub-agents and summaries, too, and to the sum of the day (UTC). Both are on the disk when
// [Ledger.Spent] returns. [Ledger.Allow] is asked before each call; calls that are under way when a
// limit is reached end as they would have. While a sum cannot be read or written, the limit on it
// allows nothing. All methods are safe for concurrent use, and sessions do not wait for each other
// except for the disk. The package starts no goroutines.
package budget
