package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/yaya-ai/yaya/internal/backoff"
	"github.com/yaya-ai/yaya/internal/sse"
)

// Limits for responses.
const (
	maxAnswer = 8 << 20
	maxEvent  = 8 << 20
)

// Client is a client of the session API. Its HTTP client has no timeout: streams have no end,
// and every call has a context.
type Client struct {
	HTTP *http.Client
	Base string // without a trailing slash
}

// Error is an error response of the API.
type Error struct {
	Status  int
	Code    string
	Message string
}

func (e *Error) Error() string { return e.Message }

// Session is an entry of the list of sessions.
type Session struct {
	ID        string    `json:"id"`
	Title     string    `json:"title"`
	Status    string    `json:"status"`
	Workspace string    `json:"workspace_path"`
	LastTurn  string    `json:"last_turn_id"`
	Updated   time.Time `json:"updated_at"`
}

// Event is an event of a session.
type Event struct {
	Type   string          `json:"type"`
	TurnID string          `json:"turn_id"`
	Data   json.RawMessage `json:"data"`
	ID     string          `json:"-"` // to resume from; "" for volatile events
}

// call sends a request with JSON and decodes the response into out unless that is nil.
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, body)
	if err != nil {
		return err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return fmt.Errorf("yaya cannot be reached: %w", errors.Unwrap(err))
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= http.StatusBadRequest {
		return refusal(resp)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(out)
}

func refusal(resp *http.Response) error {
	var e struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&e) != nil || e.Error.Message == "" {
		e.Error.Message = "yaya answered " + resp.Status
	}
	return &Error{resp.StatusCode, e.Error.Code, e.Error.Message}
}

func at(id string, rest ...string) string {
	p := "/v1/sessions/" + url.PathEscape(id)
	for _, r := range rest {
		p += "/" + url.PathEscape(r)
	}
	return p
}

// Sessions lists the sessions, most recently changed first.
func (c *Client) Sessions(ctx context.Context) ([]Session, error) {
	var out struct{ Sessions []Session }
	err := c.call(ctx, http.MethodGet, "/v1/sessions?limit=100", nil, &out)
	return out.Sessions, err
}

// Session returns one session.
func (c *Client) Session(ctx context.Context, id string) (Session, error) {
	var out Session
	err := c.call(ctx, http.MethodGet, at(id), nil, &out)
	return out, err
}

// New creates a session that works in a folder, and returns its id.
func (c *Client) New(ctx context.Context, workspace string) (string, error) {
	var out struct {
		ID string `json:"session_id"`
	}
	err := c.call(ctx, http.MethodPost, "/v1/sessions", map[string]any{"workspace_path": workspace, "auto_run": true}, &out)
	return out.ID, err
}

// Say sends a message. Messages with the same id are the same message, however often they are
// sent.
func (c *Client) Say(ctx context.Context, session, id, text, delivery string) error {
	return c.call(ctx, http.MethodPost, at(session, "messages"), map[string]any{
		"id": id, "role": "user", "parts": []any{map[string]string{"type": "text", "text": text}}, "auto_run": true, "delivery": delivery,
	}, nil)
}

// Decide answers the question about a call: approve, approve_for_session or deny.
func (c *Client) Decide(ctx context.Context, session, call, action, reason string) error {
	in := map[string]string{"tool_call_id": call, "action": action}
	if reason != "" {
		in["reason"] = reason
	}
	return c.call(ctx, http.MethodPost, at(session, "approve"), in, nil)
}

// Cancel cancels the running turn.
func (c *Client) Cancel(ctx context.Context, session string) error {
	return c.call(ctx, http.MethodPost, at(session, "cancel"), nil, nil)
}

// Retry runs a turn again.
func (c *Client) Retry(ctx context.Context, session, turn string) error {
	return c.call(ctx, http.MethodPost, at(session, "turns", turn, "retry"), nil, nil)
}

// Rename sets the title of a session.
func (c *Client) Rename(ctx context.Context, session, title string) error {
	return c.call(ctx, http.MethodPatch, at(session), map[string]string{"title": title}, nil)
}

// Fork creates a session that continues from the current state of another.
func (c *Client) Fork(ctx context.Context, session string) (string, error) {
	var out Session
	err := c.call(ctx, http.MethodPost, at(session, "fork"), nil, &out)
	return out.ID, err
}

// Follow delivers the past and future events of a session until ctx ends. It reconnects by
// itself with the last id, so that no event is missed or delivered twice. It calls lost when
// the connection breaks, and again with nil when it is back.
func (c *Client) Follow(ctx context.Context, session string, take func(Event), lost func(error)) error {
	last, failures := "", 0
	for {
		err := c.stream(ctx, session, &last, func(ev Event) {
			failures = 0
			take(ev)
		}, func() { lost(nil) })
		var refused *Error
		if ctx.Err() != nil || (errors.As(err, &refused) && refused.Status < http.StatusInternalServerError) {
			return err
		}
		lost(err)
		select {
		case <-time.After(backoff.Pause(200*time.Millisecond, 5*time.Second, failures)):
		case <-ctx.Done():
			return ctx.Err()
		}
		failures++
	}
}

func (c *Client) stream(ctx context.Context, session string, last *string, take func(Event), open func()) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Base+at(session, "events"), nil)
	if err != nil {
		return err
	}
	if *last != "" {
		req.Header.Set("Last-Event-ID", *last)
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return refusal(resp)
	}
	open()
	r := sse.NewReader(resp.Body, maxEvent)
	for {
		raw, err := r.Next()
		if err != nil {
			return err
		}
		if len(raw.Data) == 0 {
			continue
		}
		var ev Event
		if err := json.Unmarshal(raw.Data, &ev); err != nil {
			return fmt.Errorf("malformed event: %w", err)
		}
		if raw.ID != "" && raw.ID != *last { // a volatile event has no id
			ev.ID, *last = raw.ID, raw.ID
		}
		take(ev)
	}
}
