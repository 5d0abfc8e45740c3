package downstream

// Bound makes the server's places fewer; it is called before the server is used.
func (s *Server) Bound(sessions, streams, flights, tasks int) {
	s.shares = newShares(bounds{sessions, streams, flights, tasks})
}

// Remember makes the server remember fewer tasks of servers, whose marks are the same in
// every run; it is called before the server is used.
func (s *Server) Remember(total, each int) {
	s.made = newMade(total, each)
	s.made.salt = "a test"
}
