// Package fair divides a bounded number of places between parties, so that nobody
// can take the places of others.
//
// When all places are taken, the party that holds most gives up its oldest one to
// the newcomer. A party that floods the places therefore evicts itself, and a
// newcomer always gets in: refusing newcomers instead would let whoever came first
// shut out everybody else.
package fair

import "container/list"

// Places are at most Total places, at most Each of them held by one party. It is
// not safe for concurrent use.
type Places[K comparable, V any] struct {
	total, each int
	taken       int
	seq         uint64
	parties     map[K]*list.List // of *Place, the oldest first
}

// Place is one place and what holds it.
type Place[K comparable, V any] struct {
	Value V

	party K
	seq   uint64
	at    *list.Element // nil when it was given up
}

// New returns places that nobody holds.
func New[K comparable, V any](total, each int) *Places[K, V] {
	return &Places[K, V]{total: total, each: each, parties: map[K]*list.List{}}
}

// Take gives a party a place. If that needs another place to be given up, evicted
// is that one, else nil.
func (p *Places[K, V]) Take(party K, v V) (mine, evicted *Place[K, V]) {
	switch {
	case p.Held(party) >= p.each:
		evicted = oldest[K, V](p.parties[party])
	case p.taken >= p.total:
		evicted = p.greediest(party)
	}
	if evicted != nil {
		p.Leave(evicted)
	}
	p.seq++
	mine = &Place[K, V]{Value: v, party: party, seq: p.seq}
	if p.parties[party] == nil {
		p.parties[party] = list.New()
	}
	mine.at = p.parties[party].PushBack(mine)
	p.taken++
	return mine, evicted
}

// greediest returns the oldest place of the party that holds most: of the newcomer
// itself if it is one of those, else of the one whose place is the oldest.
func (p *Places[K, V]) greediest(newcomer K) *Place[K, V] {
	most := p.Held(newcomer)
	var found *Place[K, V]
	if most > 0 {
		found = oldest[K, V](p.parties[newcomer])
	}
	for party, held := range p.parties {
		first := oldest[K, V](held)
		if n := held.Len(); n > most || (n == most && party != newcomer && found.party != newcomer && first.seq < found.seq) {
			most, found = n, first
		}
	}
	return found
}

func oldest[K comparable, V any](l *list.List) *Place[K, V] {
	place, _ := l.Front().Value.(*Place[K, V])
	return place
}

// Leave gives a place up. It reports false when that has happened already.
func (p *Places[K, V]) Leave(place *Place[K, V]) bool {
	if place.at == nil {
		return false
	}
	held := p.parties[place.party]
	held.Remove(place.at)
	place.at = nil
	if held.Len() == 0 {
		delete(p.parties, place.party)
	}
	p.taken--
	return true
}

// Party returns whose place it is, or was.
func (p *Place[K, V]) Party() K { return p.party }

// Held returns how many places a party holds.
func (p *Places[K, V]) Held(party K) int {
	if l := p.parties[party]; l != nil {
		return l.Len()
	}
	return 0
}

// Taken returns how many places are held.
func (p *Places[K, V]) Taken() int { return p.taken }

// All returns what holds the places, in no order.
func (p *Places[K, V]) All() []V {
	out := make([]V, 0, p.taken)
	for _, held := range p.parties {
		for e := held.Front(); e != nil; e = e.Next() {
			if place, ok := e.Value.(*Place[K, V]); ok {
				out = append(out, place.Value)
			}
		}
	}
	return out
}
