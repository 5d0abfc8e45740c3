package wire

import "time"

// SetTimes shortens the times of pings and of silence, until restore is called.
func SetTimes(ping, dead time.Duration) (restore func()) {
	p, d, s := pingEvery, deadAfter, sweepEvery
	pingEvery, deadAfter, sweepEvery = ping, dead, ping
	return func() { pingEvery, deadAfter, sweepEvery = p, d, s }
}
