package approval_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// An ask waits at least as long as the prepared call needs, and as long as the settings say if that is
// longer.
func TestPreparedCallsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := time.Minute
		w := newWorld(t, func(c *approval.Config) { c.Timeout = func(string) time.Duration { return set } })
		w.adapter(never)
		for _, c := range []struct{ set, needs, want time.Duration }{
			{time.Minute, 0, time.Minute},
			{time.Minute, 30 * time.Minute, 30 * time.Minute},
			{time.Hour, 30 * time.Minute, time.Hour},
		} {
			set = c.set
			call := tool.Call{ID: "c", Name: "x", SessionID: "s1", Args: []byte(`{}`), Caller: tool.LocalOwner, Prepared: &tool.Prepared{Shown: []byte(`{}`), Wait: c.needs}}
			start := time.Now()
			if err := w.rt.Approve(t.Context(), call, tool.Definition{Name: "x", InputSchema: []byte(`{"type":"object"}`)}, "x"); err == nil {
				t.Error("Approve = nil, want a timeout")
			}
			if took := time.Since(start); took != c.want {
				t.Errorf("with %v set and %v needed it took %v, want %v", c.set, c.needs, took, c.want)
			}
		}
	})
}
