// Package archtest holds the architecture as tests: which of our packages may
// import which, that every package says what it promises, and that files keep one
// subject. A new arrow is a change to its table in the same commit.
package archtest
