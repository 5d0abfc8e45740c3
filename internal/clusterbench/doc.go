//go:build linux

// Command clusterbench runs clusters of three yayas on three NATS servers under load, has
// something fail, and checks what clients saw against the control log: `make cluster-bench`.
//
// # Machines
//
// A machine is a yaya, a NATS server and a disk of its own in a network namespace of its own. The
// whole bench runs in namespaces that end with it, so that nothing of it is left when it is killed.
// Without the rights or the tools for that, the machines are processes on the loopback interface,
// and the faults that need a network or a disk are left out, with the reason.
//
// # Histories
//
// Each operation of a client is recorded with its node, its begin, its end and its outcome: ok,
// failed or unknown. check.go says what must hold between a history and the logs of the nodes.
//
// A seed determines the victims, the moments and the mix of operations; how operations interleave
// is up to the machine.
package main
