package kernel_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// A session's folder is held while the strategy decides and a request is put together, and no longer: not
// while the model answers, and not while tools run, however the turn ends.
func TestLook(t *testing.T) {
	for name, script := range map[string]string{
		"with a call":   `{"steps":[{"text":"wait","delay_ms":1000,"tool_calls":[{"name":"peek","args":{}}]},{"text":"done"}]}`,
		"that fails":    `{"steps":[{"error":{"kind":"status","status_code":400,"message":"no"}}]}`,
		"without calls": `{"steps":[{"text":"done","delay_ms":1000}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{script: script, answer: approveAll}, func(t *testing.T, w *world) {
				var held, noted, asked atomic.Int64
				w.SetLook(func(string) func() { held.Add(1); return func() { held.Add(-1) } })
				w.AddStanding(func(string) event.TurnNote {
					noted.Add(1)
					if n := held.Load(); n != 1 {
						t.Errorf("while a request is put together, the folder is held %d times, want once", n)
					}
					return event.TurnNote{Name: "x"}
				})
				peek, err := tool.New(tool.Definition{Name: "peek", Kind: tool.KindRead, Description: "looks"}, func(context.Context, tool.Call, struct{}) (tool.Result, error) {
					if n := held.Load(); n != 0 {
						t.Errorf("while a tool runs, the folder is held %d times, want that it is not", n)
					}
					return tool.OK("seen", tool.Text("seen")), nil
				})
				if err == nil {
					err = w.Tools.Register(peek)
				}
				if err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(500*time.Millisecond, func() {
					asked.Add(1)
					if n := held.Load(); n != 0 {
						t.Errorf("while the model answers, the folder is held %d times, want that it is not", n)
					}
				})
				out := w.run("s1", "go on")
				if n := held.Load(); n != 0 || noted.Load() == 0 || (out.Err == nil && asked.Load() == 0) {
					t.Errorf("after the turn (%v) the folder is held %d times; %d requests; looks while the model answers: %d", out.Err, n, noted.Load(), asked.Load())
				}
			})
		})
	}
}
