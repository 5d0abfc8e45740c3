package fair

// Shares count the units of a resource that parties hold and cannot lose: nobody gets
// more than a quarter of it, and the last quarter is reserved for privileged parties,
// who may have all. They are not safe for concurrent use.
type Shares[K comparable] struct {
	total, taken int
	held         map[K]int
}

// NewShares returns shares of so many.
func NewShares[K comparable](total int) *Shares[K] {
	return &Shares[K]{total: total, held: map[K]int{}}
}

// Take counts one more for a party; false means that its share, or the resource, is
// used up.
func (s *Shares[K]) Take(party K, privileged bool) bool {
	limit, each := s.total-s.total/4, s.total/4
	if privileged {
		limit, each = s.total, s.total
	}
	if s.taken >= limit || s.held[party] >= each {
		return false
	}
	s.taken++
	s.held[party]++
	return true
}

// Give returns one unit of a party.
func (s *Shares[K]) Give(party K) {
	s.taken--
	if s.held[party]--; s.held[party] == 0 {
		delete(s.held, party)
	}
}

// Taken returns how many are held.
func (s *Shares[K]) Taken() int { return s.taken }
