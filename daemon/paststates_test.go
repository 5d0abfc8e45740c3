package daemon

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestPastStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(pastStates)
		for _, s := range []string{"starting", "ready", "ready", "failed"} {
			p.note("a", s, time.Now())
			time.Sleep(time.Hour)
		}
		got := fmt.Sprintln(len(p.of("a")), p.of("a")[0].State, p.of("a")[2].State, len(p.of("b")))
		if got != "3 starting failed 0\n" {
			t.Errorf("of = %s, want 3 starting failed 0", got)
		}
		time.Sleep(22*time.Hour + time.Minute) // starting and ready began more than a day ago
		if got := p.of("a"); len(got) != 2 || got[0].State != "ready" {
			t.Errorf("of = %v, want ready, in which the day began, and failed", got)
		}
		time.Sleep(100 * time.Hour)
		if got := p.of("a"); len(got) != 1 || got[0].State != "failed" {
			t.Errorf("of = %v, want failed, in which the day began", got)
		}
		for i := range 10 * statesKept {
			p.note("a", fmt.Sprint("s", i), time.Now())
			time.Sleep(time.Second)
		}
		if got := p.of("a"); len(got) != statesKept+1 || got[statesKept].State != fmt.Sprint("s", 10*statesKept-1) {
			t.Errorf("of = %d states, want %d and the one before", len(got), statesKept)
		}
		for i := range serversKept + 10 {
			p.note(fmt.Sprint("n", i), "ready", time.Now())
		}
		if n := len(p.byServer); n != serversKept {
			t.Errorf("the states of %d servers are kept, want %d", n, serversKept)
		}
		if (*pastStates)(nil).of("a") != nil {
			t.Error("nil has states")
		}
	})
}
