// Package eventually waits in tests for conditions. It is not shipped.
package eventually

import (
	"testing"
	"time"
)

// Limit is how long a test waits for a condition. It only determines how soon a
// failure is reported: a busy machine must not make a test fail, and a passing test
// never waits that long.
const Limit = time.Minute

// True waits until ok is true, and fails the test when that takes longer than
// [Limit].
func True(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Limit); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, Limit)
		}
	}
}
