package fair

import "testing"

func TestShares(t *testing.T) {
	s := NewShares[string](16)
	take := func(party string, n int, privileged bool) (got int) {
		for range n {
			if s.Take(party, privileged) {
				got++
			}
		}
		return got
	}
	for _, tt := range []struct {
		party      string
		privileged bool
		want       int
	}{{"ada", false, 4}, {"ada", false, 0}, {"bob", false, 4}, {"eve", false, 4}, {"new", false, 0}, {"owner", true, 4}, {"owner", true, 0}} {
		if got := take(tt.party, 9, tt.privileged); got != tt.want {
			t.Errorf("%s took %d, want %d", tt.party, got, tt.want)
		}
	}
	for range 4 {
		s.Give("ada")
	}
	if got := take("new", 9, false); got != 0 {
		t.Errorf("with the last quarter left another took %d, want 0", got)
	}
	for range 4 {
		s.Give("owner")
		s.Give("bob")
		s.Give("eve")
	}
	if s.Taken() != 0 || len(s.held) != 0 {
		t.Errorf("%d are held by %d parties when all were given back", s.Taken(), len(s.held))
	}
	if got := take("owner", 99, true); got != 16 {
		t.Errorf("the privileged alone took %d, want 16", got)
	}
}
