// Package cluster orders the changes of the control plane and carries events
// between nodes. Everybody else knows two interfaces, [control.Log] and [Fanout],
// and not which engine is behind them.
//
// [Local] is the log of a yaya that is alone: a journal, hash-chained and durable
// before the reply, whose record number is the index. [Loopback] is its fan-out.
// What both promise is tested by package clustertest.
//
// A log that is given a key is sealed ([SealOptions]): the head of its chain is signed
// every 1,000 entries, a minute after an entry, and at each start and stop, and
// [Verify] names a log that was computed again, cut, emptied or removed since.
//
// A sealed log runs one goroutine until it is closed, and an unsealed one none.
package cluster
