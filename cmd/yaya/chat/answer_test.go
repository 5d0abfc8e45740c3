package chat

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// UI-07: the words y, yes, n, no and s answer a question, if they were begun while it took answers. They
// are never queued: the model would read them as consent to something else. Other texts are messages.
func TestTypedAnswers(t *testing.T) {
	const approved, denied = "POST /v1/sessions/sess_1/approve", "POST /v1/sessions/sess_1/approve"
	for name, c := range map[string]struct {
		before string        // typed before the question appears
		wait   time.Duration // from then on
		keys   []string
		sent   string
		says   string
	}{
		"y":                         {"", arming, []string{"y", enter}, approved, ""},
		"yes":                       {"", arming, []string{"yes", enter}, approved, ""},
		"n":                         {"", arming, []string{"n", enter}, denied, ""},
		"no":                        {"", arming, []string{" no ", enter}, denied, ""},
		"s":                         {"", arming, []string{"s", enter}, approved, ""},
		"pasted":                    {"", arming, []string{"\x1b[200~y\x1b[201~", enter}, approved, ""},
		"other text":                {"", arming, []string{"yes, but slowly", enter}, sent + "yes, but slowly", ""},
		"another case":              {"", arming, []string{"Yes?", enter}, sent + "Yes?", ""},
		"typed before":              {"y", arming, []string{enter}, "", "please answer again"},
		"begun before":              {"y", arming, []string{"es", enter}, "", "please answer again"},
		"typed too soon":            {"", 0, []string{"y", enter}, "", "please answer again"},
		"begun too soon":            {"", 0, []string{"y", "e", "s", "", enter}, "", "please answer again"},
		"typed before, and again":   {"y", arming, []string{enter, "y", enter}, approved, ""},
		"typed before, and removed": {"n", arming, []string{"\x15", "y", enter}, approved, ""},
		"steering":                  {"", arming, []string{"y", "\x13"}, "POST /v1/sessions/sess_1/messages steer y", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, a := typing(t, "")
				if c.before != "" {
					x.keys(c.before)
				}
				x.take(ev("turn_started", "t1", `{"model":"m"}`), ev("approval_requested", "t1", `{"approval_id":"a1","tool_call_id":"c1","tool_name":"shell","input":{"command":"make"}}`))
				time.Sleep(c.wait)
				a.take()
				x.keys(c.keys...)
				if got := a.take(); got != c.sent || !strings.Contains(x.m.note, c.says) || x.m.input.Value() != "" {
					t.Errorf("sent %q, says %q, and the input is %q; want %q, %q and no input", got, x.m.note, x.m.input.Value(), c.sent, c.says)
				}
				if len(x.m.history.entries) != 0 {
					t.Errorf("the history has %q, want no answer", x.m.history.entries)
				}
			})
		})
	}
	// Without a question, they are messages.
	synctest.Test(t, func(t *testing.T) {
		x, a := typing(t, "")
		x.keys("y", enter)
		if got := a.take(); got != sent+"y" {
			t.Errorf("sent %q, want the message", got)
		}
	})
}
