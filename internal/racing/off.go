//go:build !race

// Package racing tells tests whether they run under the race detector, which makes them
// ten times slower: a test of scale takes fewer of everything then, and make scale runs
// it with all without. It is not shipped.
package racing

// Enabled says that the race detector is on.
const Enabled = false
