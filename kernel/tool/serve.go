package tool

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// Serve answers tool.call.request events of schema v1 until the returned
// function is called. Requests without the schema version are left to legacy
// subscribers (Y-124, Y-130). Each runs on a goroutine of the dispatcher, never
// in a bus handler, and ends in exactly one tool.call.result or tool.error;
// ctx cancels them all.
func (d *Dispatcher) Serve(ctx context.Context, b *bus.Bus) (stop func(), err error) {
	kernel := b.Kernel()
	sub, err := bus.On(b, bus.SubscribeOptions{Name: "tool-dispatcher", Limit: 4096}, event.ToolCallRequest,
		func(_ context.Context, ev event.Event, req event.ToolRequest) error {
			if req.SchemaVersion != event.SchemaV1 {
				return nil
			}
			if !d.begin() {
				return publish(kernel, ev, req.ID, Fail(ErrCancelled, "yaya is shutting down"))
			}
			snap := d.cfg.Registry.For(ev.SessionID)
			go func() {
				defer d.work.Done()
				if err := d.answer(ctx, kernel, snap, ev, req); err != nil {
					d.cfg.Log.Error().Err(err).Str("tool", req.Name).Msg("the result of a tool call could not be published")
				}
			}()
			return nil
		})
	if err != nil {
		return nil, err
	}
	return sub.Close, nil
}

func (d *Dispatcher) answer(ctx context.Context, kernel *bus.Emitter, snap *Snapshot, ev event.Event, req event.ToolRequest) error {
	if _, err := bus.Publish(kernel, event.ToolCallStart, ev.SessionID, event.ToolCall{ID: req.ID, Name: req.Name, Args: req.Args}); err != nil {
		return err
	}
	res := d.Call(ctx, snap, Call{
		ID: req.ID, Name: req.Name, Args: req.Args, SessionID: ev.SessionID, Origin: OriginLoop,
		Progress: func(p Progress) {
			// A lost progress event is no failure of the call.
			_, _ = bus.Publish(kernel, event.ToolCallUpdate, ev.SessionID, event.ToolProgress{
				ID: req.ID, Progress: p.Progress, Total: p.Total, Message: p.Message,
			})
		},
	})
	return publish(kernel, ev, req.ID, res)
}

// publish emits the one terminal event of a request: tool.error when the tool
// never ran (Y-125…Y-127), else tool.call.result with the envelope (Y-129).
func publish(kernel *bus.Emitter, request event.Event, id string, res Result) error {
	ref := event.Request{RequestID: request.ID}
	var never event.ToolErrorKind
	switch res.ErrorKind {
	case ErrValidation:
		never = event.ToolValidation
	case ErrNotFound:
		never = event.ToolNotFound
	case ErrRejected:
		never = event.ToolRejected
	case ErrTimeout, ErrCancelled, ErrCrashed, ErrUnavailable, ErrInternal, ErrTool:
	}
	if !res.OK && never != "" {
		_, err := bus.Publish(kernel, event.ToolCallError, request.SessionID, event.ToolError{
			ID: id, Kind: never, Brief: res.Brief, Detail: res.Detail, Request: ref,
		})
		return err
	}
	env, err := json.Marshal(res.Envelope())
	if err != nil {
		return fmt.Errorf("envelope of call %s: %w", id, err)
	}
	out := event.ToolResult{ID: id, OK: res.OK, Envelope: env, Request: ref}
	if !res.OK {
		out.Error = res.Brief
	}
	_, err = bus.Publish(kernel, event.ToolCallResult, request.SessionID, out)
	return err
}
