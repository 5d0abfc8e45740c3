// Package event is the vocabulary of the kernel: the envelope and the closed
// catalogue of public kinds, each with one payload type.
//
// A kind is declared once, with [Define], together with its payload type, its
// delivery class and who may emit it. The compiler then ties every publish and
// subscribe to that payload. Every other kind has the form x.<plugin>.<kind>, and
// the kernel does not interpret it ([DefineExtension]).
//
// Adding, removing or reshaping a public kind is a governance change: the
// catalogue, docs/PROTOCOL.md and the generated schemas in docs/events change
// in the same commit, and a test fails until they do.
//
// The package holds no state beyond the catalogue, which is complete when
// package initialisation ends, and imports nothing of ours.
package event
