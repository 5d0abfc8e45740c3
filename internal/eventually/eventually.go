// Package eventually waits in tests for conditions. It is not shipped.
package eventually

import (
	"testing"
	"time"
)

// Limit is how long a test waits for something that has to happen. It decides
// nothing but how soon a failure is told: a machine that is busy with other things
// must not make a test fail, and a test that passes never waits so long.
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
