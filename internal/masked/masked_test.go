package masked

import "testing"

func TestIs(t *testing.T) {
	for s, want := range map[string]bool{
		"": false, "***": false, Mask: true, "*****": false, "Bearer ****": true, "****3456": true, "a****b": true, "* ****": true, "***** ****": true, "0 0 * * *": false, "********": false,
	} {
		if got := Is(s); got != want {
			t.Errorf("Is(%q) = %v, want %v", s, got, want)
		}
	}
}
