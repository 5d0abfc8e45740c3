package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// Serve answers tool.call.request events of schema v1 until the returned function
// is called. Legacy subscribers handle requests without the schema version. Each
// runs on a goroutine of the dispatcher, never in a bus handler, and ends in
// exactly one tool.call.result or tool.error. A user.interrupt cancels the calls
// that its session has running; ctx cancels them all.
func (d *Dispatcher) Serve(ctx context.Context, b *bus.Bus) (stop func(), err error) {
	if d.cfg.Agent == nil {
		return nil, errors.New("tool calls of agents cannot be served: DispatcherConfig.Agent is not set")
	}
	kernel := b.Kernel()
	running := calls{bySession: map[string]map[string]context.CancelFunc{}}
	sub, err := b.Subscribe(bus.SubscribeOptions{Name: "tool-dispatcher", Limit: 4096},
		[]string{event.ToolCallRequest.Name(), event.UserInterrupt.Name()},
		func(_ context.Context, ev event.Event) error {
			req, ok := ev.Payload.(event.ToolRequest)
			if !ok {
				running.cancel(ev.SessionID)
				return nil
			}
			if req.SchemaVersion != event.SchemaV1 {
				return nil
			}
			if !d.work.Begin() {
				return publish(kernel, ev, req.ID, Fail(ErrCancelled, "yaya is shutting down"))
			}
			snap := d.cfg.Registry.For(ev.SessionID)
			ctx, done := running.add(ctx, ev)
			go func() {
				defer d.work.End()
				defer done()
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

// Agent returns the agent that drives a session; the zero Caller, which nothing serves, if that is not
// known.
func (d *Dispatcher) Agent(session string) Caller {
	if d.cfg.Agent == nil {
		return Caller{}
	}
	return d.cfg.Agent(session)
}

// calls are the running ones, by session and by the id of their request's event.
type calls struct {
	mu        sync.Mutex
	bySession map[string]map[string]context.CancelFunc
}

func (c *calls) add(ctx context.Context, ev event.Event) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bySession[ev.SessionID] == nil {
		c.bySession[ev.SessionID] = map[string]context.CancelFunc{}
	}
	c.bySession[ev.SessionID][ev.ID] = cancel
	return ctx, func() {
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.bySession[ev.SessionID], ev.ID)
		if len(c.bySession[ev.SessionID]) == 0 {
			delete(c.bySession, ev.SessionID)
		}
	}
}

func (c *calls) cancel(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cancel := range c.bySession[session] {
		cancel()
	}
}

func (d *Dispatcher) answer(ctx context.Context, kernel *bus.Emitter, snap *Snapshot, ev event.Event, req event.ToolRequest) error {
	if _, err := bus.Publish(kernel, event.ToolCallStart, ev.SessionID, event.ToolCall{ID: req.ID, Name: req.Name, Args: req.Args}); err != nil {
		return err
	}
	res := d.Call(ctx, snap, Call{
		ID: req.ID, Name: req.Name, Args: req.Args, SessionID: ev.SessionID, Turn: ev.Turn, Origin: OriginLoop, Caller: d.cfg.Agent(ev.SessionID),
		Progress: func(p Progress) {
			// A lost progress event does not fail the call.
			_, _ = bus.Publish(kernel, event.ToolCallUpdate, ev.SessionID, event.ToolProgress{
				ID: req.ID, Progress: p.Progress, Total: p.Total, Message: p.Message,
			})
		},
	})
	return publish(kernel, ev, req.ID, res)
}

// publish emits the one terminal event of a request: tool.error when the tool
// never ran, else tool.call.result with the envelope.
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
		if len(res.Detail) == 0 {
			// A brief is cut to one line; a model gets all of the text.
			detail, err := json.Marshal(struct {
				Message string `json:"message"`
			}{res.Text()})
			if err != nil {
				return fmt.Errorf("detail of call %s: %w", id, err)
			}
			res.Detail = detail
		}
		_, err := bus.Publish(kernel, event.ToolCallError, request.SessionID, event.ToolError{
			ID: id, Kind: never, Brief: res.Brief, Detail: res.Detail, NotRun: res.NotRun, Request: ref,
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
