//go:build unix

// Command soak runs the real yaya for a long time under mixed load, with killed
// children, reloads and hand-overs, and fails if a call fails or yaya grows:
// `make soak`.
//
// It measures resident memory, descriptors, goroutines and the size of the data
// directory. The first third is warm-up. The median of each in the last third
// may exceed that of the second by the bounds in figures.go, and no more.
package main
