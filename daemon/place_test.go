package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/kernel"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// busy is a tool that ignores the end of its calls, and takes that long.
type busy time.Duration

func (busy) Definition() tool.Definition {
	return tool.Definition{Name: "busy", Kind: tool.KindRead, InputSchema: json.RawMessage(`{"type":"object"}`), Timeout: time.Hour}
}

func (b busy) Invoke(context.Context, tool.Call) (tool.Result, error) {
	time.Sleep(time.Duration(b))
	return tool.OK("done"), nil
}

// working is the phase of a kernel that a call of that length keeps busy.
func working(t *testing.T, at *place, takes time.Duration) *core {
	t.Helper()
	data, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	settings, err := config.Open(config.Options{Root: data})
	if err != nil {
		t.Fatal(err)
	}
	k, err := kernel.Open(kernel.Config{Data: data, Settings: settings, Workspace: t.TempDir(), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Tools.Register(busy(takes)); err != nil {
		t.Fatal(err)
	}
	go k.Dispatch.Call(context.Background(), k.Tools.Snapshot(), tool.Call{Name: "busy", Origin: tool.OriginAPI, Caller: tool.LocalOwner})
	synctest.Wait()
	return &core{st: &stores{at: at}, kernel: k, procs: new(proc.Manager)}
}

// Phases that close one after the other have ten seconds together: the second has what the
// first has left, and does not begin to count again. The last second is the stores'.
func TestPhasesShareTheirDeadline(t *testing.T) {
	for name, tt := range map[string]struct {
		first, second time.Duration // that they take
		took          time.Duration
		err           error
	}{
		"both end in time":               {4 * time.Second, 2 * time.Second, 4 * time.Second, nil},
		"the second has what is left":    {6 * time.Second, time.Minute, 9 * time.Second, context.DeadlineExceeded},
		"the first leaves nothing":       {time.Minute, time.Minute, 9 * time.Second, context.DeadlineExceeded},
		"the second is late by a moment": {6 * time.Second, 9*time.Second + time.Millisecond, 9 * time.Second, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				at := new(place)
				first, second := working(t, at, tt.first), working(t, at, tt.second)
				ctx, cancel := context.WithCancel(t.Context())
				cancel() // the process was told to end
				begun := time.Now()
				err := errors.Join(first.Close(ctx), second.Close(ctx))
				if took := time.Since(begun); took != tt.took || !errors.Is(err, tt.err) {
					t.Errorf("both closed after %v with %v, want %v with %v", took, err, tt.took, tt.err)
				}
				last, done := at.closing(ctx, 0)
				defer done()
				if by, _ := last.Deadline(); by.Sub(begun) != 10*time.Second || last.Err() != nil {
					t.Errorf("the stores have until %v after the first phase began to close (%v), want 10s", by.Sub(begun), last.Err())
				}
				time.Sleep(2 * time.Minute) // until the calls have ended
			})
		})
	}
}
