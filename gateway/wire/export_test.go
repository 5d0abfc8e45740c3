package wire

import "time"

// SetSlowGrace sets the time that a client that is too slow has to hear of it, until
// restore is called.
func SetSlowGrace(d time.Duration) (restore func()) {
	was := slowGrace
	slowGrace = d
	return func() { slowGrace = was }
}

// SetTimes shortens the times of pings and of silence, until restore is called.
func SetTimes(ping, dead time.Duration) (restore func()) {
	p, d, s := pingEvery, deadAfter, sweepEvery
	pingEvery, deadAfter, sweepEvery = ping, dead, ping
	return func() { pingEvery, deadAfter, sweepEvery = p, d, s }
}
