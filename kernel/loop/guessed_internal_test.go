package loop

import (
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
)

// MIS-3: a call that ended on its way is estimated as the service has counted the one before it:
// tokens in its cache are cheaper.
func TestGuessed(t *testing.T) {
	x := &turn{l: &Loop{}}
	req := event.LLMRequest{Model: "m", Messages: []event.Message{{Role: "user", Content: strings.Repeat("a", 3984)}}} // 1,000 tokens of ours
	if got, want := x.guessed(req, 8), llm.NewUsage(1000, 0, 0, 2); got != want {
		t.Errorf("of a model that is not known: %+v, want %+v", got, want)
	}
	x.weighed(req, llm.NewUsage(500, 1500, 0, 9))
	if got, want := x.guessed(req, 8), llm.NewUsage(500, 1500, 0, 2); got != want {
		t.Errorf("after a call: %+v, want %+v", got, want)
	}
}
