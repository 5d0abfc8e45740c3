// Package proc runs child processes so that none outlives its owner.
//
// A [Manager] starts processes in process groups of their own, with explicit
// environments and no inherited descriptors beyond 0 to 2, keeps a bounded tail
// of their standard error, and stops them with escalating force. On Linux each
// child also carries a marker in its environment, by which descendants that
// left the group (setsid, double fork) are found and killed.
//
// # Death of the owner
//
// A manager with Guard set starts one small helper process (the program's own
// binary, see [GuardMain]) that holds the end of a pipe. When the owner dies,
// even by SIGKILL, the pipe closes and the helper kills every group and marked
// process that is left. On Linux children also get a parent-death signal,
// which works without the helper but does not reach grandchildren.
//
// Every [Process] is waited for by one goroutine that the manager owns;
// [Manager.Close] returns when all of them are done.
package proc
