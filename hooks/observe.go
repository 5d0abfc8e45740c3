package hooks

import (
	"context"
	"encoding/json"

	"github.com/yaya-ai/yaya/internal/hookconf"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// observed are the kinds of events that hooks can observe.
var observed = map[string]hookconf.Event{
	event.TurnWasCompleted.Name():         hookconf.TurnEnd,
	event.TurnHasFailed.Name():            hookconf.TurnEnd,
	event.TurnWasCancelled.Name():         hookconf.TurnEnd,
	event.SessionCompactionStarted.Name(): hookconf.PreCompact,
	"x.mcp.server.ready":                  hookconf.ServerState,
	"x.mcp.server.error":                  hookconf.ServerState,
}

// Follow has hooks observe the events of a bus until the returned function is called.
func (h *Hooks) Follow(b *bus.Bus) (stop func(), err error) {
	kinds := make([]string, 0, len(observed))
	for kind := range observed {
		kinds = append(kinds, kind)
	}
	sub, err := b.Subscribe(bus.SubscribeOptions{Name: "hooks", Limit: 4096}, kinds, func(_ context.Context, ev event.Event) error {
		data, err := json.Marshal(ev.Payload)
		if err != nil {
			return err
		}
		j := job{event: observed[ev.Kind], session: ev.SessionID, body: body{Kind: ev.Kind, Data: data}}
		if j.event == hookconf.ServerState {
			j.session = ""
		}
		select {
		case h.jobs <- j:
		default:
			h.cfg.Log.Warn().Str("event", string(j.event)).Str("session", j.session).Msg("hooks do not keep up: an event was dropped")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return sub.Close, nil
}

// observe runs the hooks that observe, one event after the other.
func (h *Hooks) observe(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case j := <-h.jobs:
			h.tell(ctx, j)
		}
	}
}

func (h *Hooks) tell(ctx context.Context, j job) {
	if j.event == hookconf.PreCompact && j.session == event.KernelSession {
		var c struct {
			SessionID string `json:"session_id"`
		}
		if json.Unmarshal(j.body.Data, &c) == nil {
			j.session = c.SessionID
		}
	}
	s := h.of(j.session, j.session != "")
	if s.empty() {
		return
	}
	for _, hook := range s.Hooks {
		if hook.Event != j.event {
			continue
		}
		if _, err := h.run(ctx, hook, j.session, j.body); err != nil && ctx.Err() == nil {
			h.cfg.Log.Warn().Err(err).Str("session", j.session).Msg("a hook failed")
		}
	}
}
