package yaya

import (
	"context"
	"encoding/json"
	"strconv"
	"time"
)

// Host is yaya, as a plugin sees it.
type Host struct {
	// Version is that of yaya, Protocol that of its events.
	Version, Protocol string
	// StateDir is a folder that the plugin may write.
	StateDir string
	// Started are the settings at the start; [Host.Settings] returns the present ones.
	Started Settings

	c *conn
}

// Emit publishes an event as this plugin, and waits until yaya has accepted it.
func (h *Host) Emit(ctx context.Context, kind, session string, payload any) error {
	_, err := h.c.call(ctx, "emit", map[string]any{"kind": kind, "session_id": session, "payload": payload})
	return err
}

// Send is [Host.Emit] without waiting: if yaya refuses the event, its log says so.
func (h *Host) Send(kind, session string, payload any) error {
	return h.c.send(message{Method: "emit", Params: map[string]any{"kind": kind, "session_id": session, "payload": payload}})
}

// Request publishes a request to another plugin, and waits for the event that answers. Only
// skills may. ctx bounds the wait.
func (h *Host) Request(ctx context.Context, kind, session string, payload any) (Event, error) {
	params := map[string]any{"kind": kind, "session_id": session, "payload": payload}
	if until, ok := ctx.Deadline(); ok {
		params["timeout_ms"] = max(time.Until(until).Milliseconds(), 1)
	}
	raw, err := h.c.call(ctx, "request", params)
	if err != nil {
		return Event{}, err
	}
	var res struct {
		Event Event `json:"event"`
	}
	err = json.Unmarshal(raw, &res)
	return res.Event, err
}

// Settings returns the present settings.
func (h *Host) Settings(ctx context.Context) (Settings, error) {
	var s Settings
	raw, err := h.c.call(ctx, "config", struct{}{})
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	return s, err
}

// Log writes a line to yaya's log; level is debug, info, warn or error.
func (h *Host) Log(level, text string) {
	h.notify("log", map[string]string{"level": level, "message": text})
}

// notify sends a notification. One that cannot be sent has no reader.
func (h *Host) notify(method string, params any) {
	_ = h.c.send(message{Method: method, Params: params})
}

// call sends a request and waits for its answer.
func (c *conn) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	got := make(chan *incoming, 1)
	c.mu.Lock()
	c.last++
	id := strconv.FormatInt(c.last, 10)
	c.pending[id] = got
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.pending, id)
	}()
	if err := c.send(message{ID: json.RawMessage(id), Method: method, Params: params}); err != nil {
		return nil, err
	}
	select {
	case m := <-got:
		if m.Error != nil {
			return nil, m.Error
		}
		return m.Result, nil
	case <-c.closed:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
