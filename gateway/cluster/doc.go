// Package cluster orders the changes of the control plane and carries events
// between nodes. Everybody else knows two interfaces, [control.Log] and [Fanout],
// and not which engine is behind them.
//
// [Local] is the log of a yaya that is alone: a journal, hash-chained and durable
// before the reply, whose record number is the index. [Loopback] is its fan-out.
// What both promise is tested by package clustertest.
//
// The package starts no goroutine.
package cluster
