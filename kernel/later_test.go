package kernel_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Parts that are made after the kernel, and with it, learn of turns, may answer asks,
// and say how long those wait; without them nobody is there to ask.
func TestPartsRegisterLater(t *testing.T) {
	inBubble(t, setup{script: `{"steps":[{"text":"done"}]}`, nobody: true}, func(t *testing.T, w *world) {
		call := tool.Call{ID: "call_1", Name: "work", SessionID: "s1::agent::child", Args: []byte(`{}`), Origin: tool.OriginMCP, Caller: tool.LocalOwner}
		ask := func() (time.Duration, error) {
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
		if took, err := ask(); took != approval.DefaultTimeout || !errors.Is(err, approval.ErrTimeout) {
			t.Errorf("with somebody there, the ask = %v after %v, want %v after %v", err, took, approval.ErrTimeout, approval.DefaultTimeout)
		}
		w.SetApprovalTimeout(func(session string) time.Duration {
			if session != "s1" {
				t.Errorf("asked how long asks of %q wait, want s1, which its sub-agent asks for", session)
			}
			return 3 * time.Second
		})
		if took, err := ask(); took != 3*time.Second || !errors.Is(err, approval.ErrTimeout) {
			t.Errorf("in a session with a time of its own, the ask = %v after %v, want %v after 3s", err, took, approval.ErrTimeout)
		}
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
