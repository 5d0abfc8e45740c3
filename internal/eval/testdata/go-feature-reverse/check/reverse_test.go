package text

import "testing"

func TestReverse(t *testing.T) {
	for in, want := range map[string]string{"": "", "abc": "cba", "äö": "öä", "e\u0301x": "xe\u0301"} {
		if got := Reverse(in); got != want {
			t.Errorf("Reverse(%q) = %q, want %q", in, got, want)
		}
	}
}
