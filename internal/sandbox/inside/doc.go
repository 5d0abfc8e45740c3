// Package inside is the part of the sandbox that runs within it: the process that
// mounts, restricts itself, starts the program and stays as its parent.
//
// # The hook
//
// A program that imports this package becomes that process when the environment
// holds [Env] and the descriptor it names is a socket. It does so in an init
// function, not in main: initialising all packages of yaya takes longer than
// everything that the sandbox does, and init functions run in the order of imports.
// That is why this package imports little, and nothing that waits for many others.
//
// # Order
//
// Mounts, the loopback interface and listeners come first, because they need
// capabilities. Then all capabilities are dropped, and no_new_privs, Landlock and
// the filter of system calls follow. The program is started last, by the one thread
// that all of this was done on, and inherits it. The first thread keeps watch.
package inside
