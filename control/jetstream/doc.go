// Package jetstream has the control log and the fan-out of several nodes, on the JetStream of NATS.
//
// The log is a stream, which a majority of servers keeps; the sequence numbers of the stream are the
// indexes of the entries. An append names the last entry that it has seen, and the stream takes it
// only if that is still the last one: so a check runs on every earlier entry, whichever node made
// it, and needs no lock between nodes. Entries cannot be deleted, and each names the hash of the one
// before: a log that was changed is noticed by every node that had seen more of it.
//
// Each node has a copy of the log, which applies the entries: it reads the stream from where it is.
// The stream announces each entry on a subject of its own, which only says when to read; a node that
// misses an announcement reads within a second. A node reads nothing but its copy, so it starts, and
// answers, while no server can be reached.
//
// Without a majority nothing can be appended ([control.ErrUnavailable]), and applied entries can be
// read. An append that was sent, and not answered in time, fails with [control.ErrUncertain]: it may
// be in the log or come into it.
package jetstream
