package lib

import "testing"

func TestNotify(t *testing.T) {
	if got := Notify(t.Context(), "a"); got != "to a" {
		t.Errorf("got %q", got)
	}
}
