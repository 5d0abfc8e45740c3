// Package local implements the control log of a single node: a journal, hash-chained
// and durable before the reply, whose record number is the index. Other packages use
// [control.Log], and [control.Fanout], which [Loopback] implements, independently of
// the engine; package controltest tests the promises of both.
//
// A log with a key is sealed ([SealOptions]): it signs the head of its chain every
// 1,000 entries, a minute after an entry, and at each start and stop, and [Verify]
// detects a log that was recomputed, cut, emptied or removed since.
//
// A sealed log runs one goroutine until it is closed, and an unsealed one none.
package local
