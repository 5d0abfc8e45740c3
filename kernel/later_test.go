package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/kernel"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Parts that are made after the kernel, and with it, learn of turns, may answer asks,
// and say how long those wait; without them nobody is there to ask.
func TestPartsRegisterLater(t *testing.T) {
	inBubble(t, setup{script: `{"steps":[{"text":"done"}]}`, nobody: true}, func(t *testing.T, w *world) {
		call := tool.Call{ID: "call_1", Name: "work", SessionID: "s1::agent::child", Args: []byte(`{}`), Origin: tool.OriginMCP, Caller: tool.LocalOwner}
		ask := func() (time.Duration, error) {
			t.Helper()
			began := time.Now()
			err := w.Approvals.Approve(t.Context(), call, tool.Definition{Name: "work"}, "work")
			return time.Since(began), err
		}
		if took, err := ask(); took != 0 || err == nil || !strings.Contains(err.Error(), "nobody is there to ask") {
			t.Errorf("with nobody registered, the ask = %v after %v, want that nobody is there, at once", err, took)
		}
		there := false
		w.AddAudience(func() bool { return false })
		w.AddAudience(func() bool { return there })
		if _, err := ask(); err == nil || !strings.Contains(err.Error(), "nobody is there to ask") {
			t.Errorf("with nobody there, the ask = %v, want that nobody is there", err)
		}
		there = true
		waits := func(where string, want time.Duration) {
			t.Helper()
			if took, err := ask(); took != want || !errors.Is(err, approval.ErrTimeout) {
				t.Errorf("%s, the ask = %v after %v, want %v after %v", where, err, took, approval.ErrTimeout, want)
			}
		}
		waits("with somebody there", time.Hour) // USE-4
		const session = "s1::agent::child"
		call.SessionID = event.BridgePrefix + "mcp"
		waits("in the call of an MCP client", approval.DefaultTimeout) // Y-138
		call.SessionID = session
		client := true
		w.SetClients(func(string) (kernel.Client, bool) {
			return kernel.Client{Principal: "client", Has: func(string) bool { return true }, Sees: func(*tool.Definition) bool { return true }}, client
		})
		waits("in the task of an MCP client", approval.DefaultTimeout)
		client = false
		if err := w.Settings.Set("approval.timeout", json.RawMessage(`"60s"`)); err != nil {
			t.Fatal(err)
		}
		waits("with a time that is set", time.Minute)
		w.SetApprovalTimeout(func(session string) time.Duration {
			if session != "s1" {
				t.Errorf("asked how long asks of %q wait, want s1, which its sub-agent asks for", session)
			}
			return 3 * time.Second
		})
		waits("in a session with a time of its own", 3*time.Second)
		var turns []string
		for _, who := range []string{"a", "b"} {
			w.OnBoundary(func(context.Context) { turns = append(turns, who) })
		}
		w.run("s2", "go on")
		synctest.Wait()
		if got := strings.Join(turns, " "); got != "a b" {
			t.Errorf("before the turn %q were called, want a b", got)
		}
	})
}
