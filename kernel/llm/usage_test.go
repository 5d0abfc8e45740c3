package llm_test

import (
	"math"
	"testing"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
)

// A service may say anything: counts are never negative, and their sums stay numbers.
func TestUsageOfHostileServices(t *testing.T) {
	if got := llm.NewUsage(-5, 7, -1, -3); got != (event.Usage{InputCacheRead: 7, Input: 7, Total: 7}) {
		t.Errorf("NewUsage of negative counts = %+v, want those that are not", got)
	}
	sum := event.Usage{}
	for range 1000 {
		sum = llm.Add(sum, llm.NewUsage(math.MaxInt, math.MaxInt, math.MaxInt, math.MaxInt))
	}
	if sum.InputOther <= 0 || sum.Input <= 0 || sum.Total <= 0 {
		t.Errorf("the sum is %+v, want positive counts", sum)
	}
}
