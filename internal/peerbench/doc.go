//go:build unix

// Command peerbench measures gateways beside each other: `make bench-peers`.
//
// It installs the published releases of peers.go into a folder of its own, runs
// each of them, and yaya, before the same upstream server, and looks at two
// things: what of the protocol arrives on the other side (the checks), and what
// share of direct calls a second is left (the load, in alternating rounds with
// the direct connection). It writes docs/PEERS.md.
//
// A peer runs in a process group of its own with a fresh home, and must listen
// on loopback alone. Everything that it started ends with it. A peer that cannot
// be installed or started is reported with the reason.
package main
