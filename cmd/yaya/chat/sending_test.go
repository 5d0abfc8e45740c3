package chat

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A message that cannot be sent for lack of a connection stays on the screen, marked as waiting, until it has arrived.
func TestWaitsToBeSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, o := mentioning(t)
		o.down = func(try int) int {
			if try < 2 {
				return http.StatusServiceUnavailable
			}
			return 0
		}
		x.p.Send(linked{"sess_1", errors.New("gone")})
		x.keys("hello?", enter)
		golden(t, "80x24-waits", x.text())
		x.p.Send(linked{"sess_1", nil})
		time.Sleep(10 * time.Second)
		x.settle()
		if got := x.text(); strings.Contains(got, "waits to be sent") || len(x.m.sending) > 0 {
			t.Errorf("once it was sent, the screen is\n%s", got)
		}
		if got := o.take(); !strings.Contains(got, "hello?") {
			t.Errorf("sent %q, want the message", got)
		}
	})
}
