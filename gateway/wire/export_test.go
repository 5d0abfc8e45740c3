package wire

import "time"

// SetSlowGrace sets the time that a client that is too slow has to hear of it, until
// restore is called.
func SetSlowGrace(d time.Duration) (restore func()) {
	was := slowGrace
	slowGrace = d
	return func() { slowGrace = was }
}

// SetWriteTimeout sets the time that a client has to take what is written, until restore is called.
func SetWriteTimeout(d time.Duration) (restore func()) {
	was := writeTimeout
	writeTimeout = d
	return func() { writeTimeout = was }
}

// SetTimes shortens the times of pings and of silence, until restore is called.
func SetTimes(ping, dead time.Duration) (restore func()) {
	p, d, s := pingEvery, deadAfter, sweepEvery
	pingEvery, deadAfter, sweepEvery = ping, dead, ping
	return func() { pingEvery, deadAfter, sweepEvery = p, d, s }
}

// MaxRelaysOfOne is how many topics of other nodes a principal may join.
const MaxRelaysOfOne = maxRelaysOfOne

// TakeRelays takes joins of topics of other nodes, until give is called.
func TakeRelays(s *Server, name string, n int) (give func()) { return takeShare(s, &s.relays, name, n) }

// TakePassed takes joins of clients of other nodes, until give is called.
func TakePassed(s *Server, name string, n int) (give func()) { return takeShare(s, &s.passed, name, n) }

func takeShare(s *Server, sh *share, name string, n int) (give func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		sh.take(name)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for range n {
			sh.give(name)
		}
	}
}
