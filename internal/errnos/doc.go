// Package errnos names the system's errors that yaya tells apart. On Windows their numbers
// are not those of the constants in package syscall that have the same names on Unix: there,
// Go invents these, and no system call returns them.
package errnos
