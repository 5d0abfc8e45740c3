// Package fair divides a bounded number of places between parties, so that nobody
// can take the places of others.
//
// When all places are taken, the party that holds most gives up its oldest one to
// the newcomer. So a party that floods the places evicts itself, and a newcomer
// always gets a place. If newcomers were refused instead, the first party could
// lock out all others.
package fair

import (
	"container/heap"
	"container/list"
)

// Places are at most Total places, at most Each of them held by one party. It is
// not safe for concurrent use.
type Places[K comparable, V any] struct {
	total, each int
	taken       int
	seq         uint64
	parties     map[K]*holder[K, V]
	greedy      byGreed[K, V] // the same, the one that gives way first on top
}

// holder is a party that holds places.
type holder[K comparable, V any] struct {
	party  K
	places list.List // of *Place, the oldest first
	at     int       // its index in greedy
}

func (h *holder[K, V]) oldest() *Place[K, V] {
	place, _ := h.places.Front().Value.(*Place[K, V])
	return place
}

// Place is one place and its holder.
type Place[K comparable, V any] struct {
	Value V

	party K
	seq   uint64
	at    *list.Element // nil when it was given up
}

// New returns places that nobody holds.
func New[K comparable, V any](total, each int) *Places[K, V] {
	return &Places[K, V]{total: total, each: each, parties: map[K]*holder[K, V]{}}
}

// Take gives a party a place. If that needs another place to be given up, evicted
// is that one, else nil.
func (p *Places[K, V]) Take(party K, v V) (mine, evicted *Place[K, V]) {
	switch {
	case p.Held(party) >= p.each:
		evicted = p.parties[party].oldest()
	case p.taken >= p.total:
		evicted = p.greediest(party)
	}
	if evicted != nil {
		p.Leave(evicted)
	}
	p.seq++
	mine = &Place[K, V]{Value: v, party: party, seq: p.seq}
	h := p.parties[party]
	if h == nil {
		h = &holder[K, V]{party: party}
		p.parties[party] = h
		mine.at = h.places.PushBack(mine)
		heap.Push(&p.greedy, h)
	} else {
		mine.at = h.places.PushBack(mine)
		heap.Fix(&p.greedy, h.at)
	}
	p.taken++
	return mine, evicted
}

// greediest returns the oldest place of the party that holds most: of the newcomer
// itself if it is one of those, else of the one whose place is the oldest.
func (p *Places[K, V]) greediest(newcomer K) *Place[K, V] {
	top := p.greedy[0]
	if h := p.parties[newcomer]; h != nil && h.places.Len() == top.places.Len() {
		top = h
	}
	return top.oldest()
}

// Leave releases a place. It reports false if that has already happened.
func (p *Places[K, V]) Leave(place *Place[K, V]) bool {
	if place.at == nil {
		return false
	}
	h := p.parties[place.party]
	if h.places.Len() == 1 {
		heap.Remove(&p.greedy, h.at) // h keeps its place for as long as it may be compared
		delete(p.parties, place.party)
	} else {
		h.places.Remove(place.at)
		heap.Fix(&p.greedy, h.at)
	}
	place.at = nil
	p.taken--
	return true
}

// Party returns the present or last holder of the place.
func (p *Place[K, V]) Party() K { return p.party }

// Held returns how many places a party holds.
func (p *Places[K, V]) Held(party K) int {
	if h := p.parties[party]; h != nil {
		return h.places.Len()
	}
	return 0
}

// Taken returns how many places are held.
func (p *Places[K, V]) Taken() int { return p.taken }

// All returns the holders of the places, in no order.
func (p *Places[K, V]) All() []V {
	out := make([]V, 0, p.taken)
	for _, h := range p.parties {
		for e := h.places.Front(); e != nil; e = e.Next() {
			if place, ok := e.Value.(*Place[K, V]); ok {
				out = append(out, place.Value)
			}
		}
	}
	return out
}

// byGreed is a heap of parties, so that finding the greediest among many costs a
// flooded listener nothing: the party with most places is on top, and of those with as
// many the one whose first place is the oldest.
type byGreed[K comparable, V any] []*holder[K, V]

func (b byGreed[K, V]) Len() int { return len(b) }

func (b byGreed[K, V]) Less(i, j int) bool {
	if n, m := b[i].places.Len(), b[j].places.Len(); n != m {
		return n > m
	}
	return b[i].oldest().seq < b[j].oldest().seq
}

func (b byGreed[K, V]) Swap(i, j int) {
	b[i], b[j] = b[j], b[i]
	b[i].at, b[j].at = i, j
}

// Push implements [heap.Interface].
func (b *byGreed[K, V]) Push(x any) {
	h, _ := x.(*holder[K, V])
	h.at = len(*b)
	*b = append(*b, h)
}

// Pop implements [heap.Interface].
func (b *byGreed[K, V]) Pop() any {
	last := len(*b) - 1
	h := (*b)[last]
	(*b)[last] = nil
	*b = (*b)[:last]
	return h
}
