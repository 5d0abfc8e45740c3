package mail

import "testing"

func TestSend(t *testing.T) {
	if got := Send("a"); got != "mail to a" {
		t.Errorf("got %q", got)
	}
}
