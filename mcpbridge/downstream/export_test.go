package downstream

// Bound makes the server's places fewer, and lets sessions be opened as fast as clients can; it is
// called before the server is used.
func (s *Server) Bound(sessions, streams, flights, tasks int) {
	s.shares = newShares(bounds{sessions, streams, flights, tasks})
	s.pace = newPace(pacing{1 << 30, 1 << 20}, pacing{1 << 30, 1 << 20})
}

// Remember makes the server remember fewer tasks of servers, whose marks are the same in
// every run; it is called before the server is used.
func (s *Server) Remember(total, each int) {
	s.made = newMade(total, each)
	s.made.salt = "a test"
}
