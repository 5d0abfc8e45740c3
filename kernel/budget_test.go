package kernel_test

import (
	"fmt"
	"testing"

	"github.com/yaya-ai/yaya/kernel/budget"
)

// MIS-3: summaries count to their session, and the calls that a limit does not allow are not made.
func TestBudgetOfSummaries(t *testing.T) {
	p := &tight{window: 8192, calls: 40, words: named, size: 6000, price: 0.01}
	inTight(t, "", p, map[string]string{"providers.test-tight.context_window": `8192`}, func(t *testing.T, w *world) {
		out := w.run("s1", "work: count the lines")
		calls := len(p.requests) + p.summaries
		if out.Err != nil || p.summaries == 0 || p.refused > 0 {
			t.Fatalf("got %v after %d summaries and %d refusals, want a turn with summaries", out.Err, p.summaries, p.refused)
		}
		if err := w.Settings.Set(budget.SessionKey, fmt.Appendf(nil, "%d", calls+1)); err != nil {
			t.Fatal(err)
		}
		if out := w.run("s1", "one more"); out.Err != nil {
			t.Errorf("a cent below the limit: %v, want a turn", out.Err)
		}
		want := fmt.Sprintf("this session has cost $%.2f, and %s allows $%.2f: start another one, or raise the limit (yaya config set %s %d)", float64(calls+1)/100, budget.SessionKey, float64(calls+1)/100, budget.SessionKey, 2*(calls+1))
		if out := w.run("s1", "and another one"); out.Err == nil || out.Err.Error() != want || out.Kind != "budget" {
			t.Errorf("at the limit: %s, %v; want budget, %s", out.Kind, out.Err, want)
		}
		if got := len(p.requests) + p.summaries; got != calls+1 {
			t.Errorf("%d calls, want %d", got, calls+1)
		}
		if out := w.run("s2", "hello"); out.Err != nil {
			t.Errorf("another session: %v, want a turn", out.Err)
		}
	})
}
