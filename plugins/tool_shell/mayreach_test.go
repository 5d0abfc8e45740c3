//go:build unix

package tool_shell_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// A call that runs no command asks about a host as commands do: a yes holds for the call or for the
// session, a no for the turn, private addresses are not asked about, and a turn has a bound.
func TestCallsAskAboutHosts(t *testing.T) {
	w := newWorld(t)
	var asked []string
	answer := event.Approve
	w.answer = func(_ context.Context, call tool.Call, brief string) (approval.Decision, error) {
		var q struct {
			Host string
			Port int
			URL  string
		}
		if err := json.Unmarshal(call.Args, &q); err != nil {
			t.Errorf("question %s: %v", call.Args, err)
		}
		asked = append(asked, fmt.Sprintf("%s %s %d %s: %s", call.Name, q.Host, q.Port, q.URL, brief))
		return approval.Decision{ApprovalResponse: event.ApprovalResponse{Response: answer, Feedback: "reasons"}}, nil
	}
	may := func(session, turn, host string) (bool, string) {
		return w.p.MayReach(t.Context(), tool.Call{SessionID: session, Turn: turn, Origin: tool.OriginLoop}, host, 443, "https://"+host+"/x")
	}
	for _, c := range []struct {
		name, session, turn, host string
		answer                    event.ApprovalAnswer
		ok                        bool
		why                       string
		asks                      int
	}{
		{"yes", "s", "1", "a.example", event.Approve, true, "", 1},
		{"again, since it held for the call", "s", "1", "a.example", event.ApproveForSession, true, "", 1},
		{"for the session", "s", "2", "a.example", event.Reject, true, "", 0},
		{"a sub-agent", "s::agent::1", "3", "a.example", event.Reject, true, "", 0},
		{"no", "s", "2", "b.example", event.Reject, false, "its user was asked, and said no: reasons", 1},
		{"no, in the turn", "s", "2", "b.example", event.Approve, false, "its user was asked, and said no: reasons", 0},
		{"another turn", "s", "3", "b.example", event.Approve, true, "", 1},
		{"another session", "t", "1", "a.example", event.Approve, true, "", 1},
		{"private", "s", "3", "10.0.0.1", event.Approve, false, "yaya does not ask about addresses outside the public internet", 0},
		{"this machine", "s", "3", "x.localhost", event.Approve, false, "yaya does not ask about addresses outside the public internet", 0},
	} {
		asked, answer = nil, c.answer
		if ok, why := may(c.session, c.turn, c.host); ok != c.ok || why != c.why || len(asked) != c.asks {
			t.Errorf("%s: %v, %q after %q, want %v, %q and %d questions", c.name, ok, why, asked, c.ok, c.why, c.asks)
		}
		if want := "sandbox_host " + c.host + " 443 https://" + c.host + "/x: the agent wants to read https://" + c.host + "/x"; c.asks == 1 && asked[0] != want {
			t.Errorf("%s: asked %q, want %q", c.name, asked[0], want)
		}
	}
	asked, answer = nil, event.Approve
	for i := range 30 {
		may("s", "4", fmt.Sprintf("h%d.example", i))
	}
	if ok, why := may("s", "4", "more.example"); ok || why != "this turn has already asked about 24 hosts" || len(asked) != 24 {
		t.Errorf("after %d questions: %v, %q, want a bound of 24", len(asked), ok, why)
	}
	w.hosts = []string{"a.example"}
	if got, none := w.p.AllowHosts("b.example:8443", "a.example", "b.example:8443"), w.p.AllowHosts("a.example"); got != `yaya config set sandbox.command.hosts '["a.example","b.example:8443"]'` || none != "" {
		t.Errorf("AllowHosts = %q and %q, want the command and nothing", got, none)
	}
}
