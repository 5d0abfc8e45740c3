package downstream

// Bound makes the server's places fewer; it is called before the server is used.
func (s *Server) Bound(sessions, streams, flights, tasks int) {
	s.shares = newShares(bounds{sessions, streams, flights, tasks})
}
