// Package archtest tests the architecture: which of our packages may import which,
// that the documents agree with that, and that words mean one thing. A new arrow is
// a change to its table in the same commit.
package archtest
