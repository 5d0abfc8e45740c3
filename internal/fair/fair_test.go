package fair

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestWhoGivesUpAPlace(t *testing.T) {
	for name, tt := range map[string]struct {
		total, each int
		came        string // one letter for each that came before
		newcomer    string
		want        string // whose place is given up, and which of its own; "" for nobody's
	}{
		"there is room":                         {4, 4, "aab", "a", ""},
		"the party that has most":               {4, 4, "baaa", "c", "a0"},
		"the newcomer if it has most":           {4, 4, "baaa", "a", "a0"},
		"the newcomer if it has as many":        {4, 4, "aabb", "b", "b0"},
		"the oldest of those that have as many": {4, 4, "badc", "e", "b0"},
		"the newcomer at its share":             {9, 2, "baba", "a", "a0"},
		"one below its share":                   {9, 3, "baba", "a", ""},
	} {
		p := New[string, string](tt.total, tt.each)
		seen := map[string]int{}
		for _, c := range tt.came {
			party := string(c)
			if _, out := p.Take(party, fmt.Sprint(party, seen[party])); out != nil {
				t.Fatalf("%s: %q gave way too early", name, out.Value)
			}
			seen[party]++
		}
		got := ""
		mine, out := p.Take(tt.newcomer, "new")
		if out != nil {
			got = out.Value
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
		if out != nil && p.Leave(out) {
			t.Errorf("%s: a place was given up twice", name)
		}
		if !p.Leave(mine) || p.Held(tt.newcomer) > tt.each {
			t.Errorf("%s: the newcomer has no place, or too many", name)
		}
	}
}

// In any sequence the bounds hold, a newcomer gets a place, and no party with less
// than the newcomer gives one up.
func TestBoundsHold(t *testing.T) {
	p := New[int, int](20, 6)
	held := map[*Place[int, int]]int{}
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // test
	for n := range 20_000 {
		party := r.IntN(8) * r.IntN(8)
		before := p.Held(party)
		mine, out := p.Take(party, n)
		if out != nil {
			if p.Held(out.party)+1 < before {
				t.Fatalf("party %d with %d places gave way to one with %d", out.party, p.Held(out.party)+1, before)
			}
			delete(held, out)
		}
		held[mine] = party
		if p.Taken() > 20 || p.Held(party) > 6 || p.Taken() != len(held) || len(p.All()) != len(held) {
			t.Fatalf("%d places are taken, %d by party %d, %d are known", p.Taken(), p.Held(party), party, len(held))
		}
		for place := range held {
			if r.IntN(10) == 0 {
				p.Leave(place)
				delete(held, place)
			}
			break
		}
	}
}

// The evicted place is the one that a search through all parties would find.
func TestGreediestOfMany(t *testing.T) {
	p := New[int, int](64, 64)
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // test
	var held []*Place[int, int]      // the oldest first
	for n := range 20_000 {
		party := r.IntN(8) * r.IntN(8)
		var want *Place[int, int]
		if p.Taken() == 64 {
			for _, place := range held {
				if want == nil || p.Held(place.party) > p.Held(want.party) {
					want = place
				}
			}
			for _, place := range held {
				if place.party == party && p.Held(party) == p.Held(want.party) {
					want = place
					break
				}
			}
		}
		mine, out := p.Take(party, n)
		if out != want {
			t.Fatalf("%d: %+v gave way to party %d, want %+v", n, out, party, want)
		}
		held = append(slices.DeleteFunc(held, func(x *Place[int, int]) bool { return x == out }), mine)
		for range r.IntN(3) {
			i := r.IntN(len(held))
			p.Leave(held[i])
			if held = slices.Delete(held, i, i+1); len(held) == 0 {
				break
			}
		}
	}
}

// A newcomer must not cause a search through all holders.
func BenchmarkTakeAmongMany(b *testing.B) {
	const parties = 16_384
	p := New[int, int](parties, parties/4)
	for n := range parties {
		p.Take(n, n)
	}
	next := parties
	for b.Loop() {
		p.Take(next, next)
		next++
	}
}
