package session

import "testing"

// After a burst of items, a session keeps room for a few only.
func TestRoomOfSentItems(t *testing.T) {
	for n, want := range map[int]int{liveKept: liveKept, liveKept + 1: 0, liveItems: 0} {
		s := &Session{live: make([]Item, n), conns: []*Connection{{pos: int64(n)}}}
		s.forgetSent()
		if cap(s.live) != want || len(s.live) != 0 || s.liveFrom != int64(n) {
			t.Errorf("of %d items that were sent, room for %d is kept, and the next is item %d; want %d and %d", n, cap(s.live), s.liveFrom, want, n)
		}
	}
}
