// Package backoff says how long to wait before trying again what has failed.
//
// The pauses double, so that what stays away costs little, and end at a longest one, so
// that what is back is found. Everybody who waits spreads its pauses by chance: those who
// failed together would come back together. How much, and who may cut the wait short, each
// caller decides; the packages that retry had the shift, its overflow and the jitter each
// written for themselves.
package backoff

import (
	"math/rand/v2"
	"time"
)

// Pause returns first doubled once for each failure that there was before, at most most.
// No number of failures makes it overflow.
func Pause(first, most time.Duration, before int) time.Duration {
	d := min(first, most)
	for ; before > 0 && d > 0 && d < most; before-- {
		if d > most/2 {
			return most
		}
		d *= 2
	}
	return d
}

// Spread returns a time by chance between least and most times d.
func Spread(d time.Duration, least, most float64) time.Duration {
	return time.Duration(float64(d) * (least + (most-least)*rand.Float64())) //nolint:gosec // spreads load, guards nothing
}
