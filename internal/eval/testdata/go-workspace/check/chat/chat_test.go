package chat

import "testing"

func TestSay(t *testing.T) {
	if got := Say("a", "b"); got != "chat to a;chat to b;" {
		t.Errorf("got %q", got)
	}
}
