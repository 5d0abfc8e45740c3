package chat

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/backoff"
	"github.com/yaya-ai/yaya/internal/callargs"
	"github.com/yaya-ai/yaya/internal/sse"
	"github.com/yaya-ai/yaya/internal/undo"
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
	Model     string    `json:"model"` // "" for the active one
	Mode      string    `json:"mode"`
	Answering modelRef  `json:"answering_model"` // the model that answers next
	Updated   time.Time `json:"updated_at"`
	Usage     usage     `json:"usage"`
	// Restricted: nobody has trusted its folder. The list of sessions does not say.
	Restricted bool     `json:"restricted"`
	State      string   `json:"state"`
	Queue      []queued `json:"queue"`
}

// usage holds the tokens and the cost of a session.
type usage struct {
	Input  int `json:"input"` // tokens
	Cached int `json:"input_cache_read"`
	Output int `json:"output"`
	Total  int `json:"total"`
	Turns  int `json:"turns"`
	Steps  int `json:"steps"`
	// CostUSD is 0 for models whose prices are not known.
	CostUSD float64 `json:"cost_usd"`
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
	return c.wait(ctx, method, path, in, out)
}

// wait is call for as long as its context lasts.
func (c *Client) wait(ctx context.Context, method, path string, in, out any) error {
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
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("yaya did not answer in time")
	}
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
		Detail string `json:"detail"` // of /api
	}
	if json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&e) != nil { // a proxy's page
		e.Error.Message, e.Detail = "", ""
	}
	return &Error{resp.StatusCode, e.Error.Code, cmp.Or(e.Error.Message, e.Detail, "yaya answered "+resp.Status)}
}

func at(id string, rest ...string) string {
	p := "/v1/sessions/" + url.PathEscape(id)
	for _, r := range rest {
		p += "/" + url.PathEscape(r)
	}
	return p
}

// Sessions lists a hundred sessions, most recently changed first, behind a cursor or from the
// first on, and returns the cursor of the next page.
func (c *Client) Sessions(ctx context.Context, cursor string) (all []Session, next string, err error) {
	var out struct {
		Sessions []Session
		Next     string
	}
	err = c.call(ctx, http.MethodGet, "/v1/sessions?"+url.Values{"limit": {"100"}, "cursor": {cursor}}.Encode(), nil, &out)
	return out.Sessions, out.Next, err
}

// Snapshot is the state of a session at one moment.
type Snapshot struct {
	Cursor string `json:"cursor"`
	Asks   []Ask  `json:"pending_approvals"`
}

// Snapshot returns the state of a session; the events behind its cursor continue it.
func (c *Client) Snapshot(ctx context.Context, id string) (Snapshot, error) {
	var out Snapshot
	err := c.call(ctx, http.MethodGet, at(id, "snapshot"), nil, &out)
	return out, err
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

// Part is a piece of a message: a text, or an attachment.
type Part struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	Name string `json:"name,omitempty"`
	Ref  string `json:"ref,omitempty"`
}

// Say sends a message. Messages with the same id are the same message, however often they are
// sent.
func (c *Client) Say(ctx context.Context, session, id string, parts []Part, delivery string) error {
	return c.call(ctx, http.MethodPost, at(session, "messages"), map[string]any{"id": id, "role": "user", "parts": parts, "auto_run": true, "delivery": delivery}, nil)
}

// Attach keeps a file, whose data is base64, with a session.
func (c *Client) Attach(ctx context.Context, session, name, data string) (Part, error) {
	var up struct {
		Ref      string `json:"ref"`
		Name     string `json:"name"`
		MimeType string `json:"mime_type"`
	}
	err := c.call(ctx, http.MethodPost, at(session, "attachments"), map[string]string{"name": name, "data": data}, &up)
	kind, _, _ := strings.Cut(up.MimeType, "/")
	if kind != "image" && kind != "audio" {
		kind = "file"
	}
	return Part{Type: kind, Name: up.Name, Ref: up.Ref}, err
}

// Withdraw takes a message out of the queue, and reports whether it was in it.
func (c *Client) Withdraw(ctx context.Context, session, message string) (bool, error) {
	var now struct{ Queue []queued }
	if err := c.call(ctx, http.MethodGet, at(session, "queue"), nil, &now); err != nil {
		return false, err
	}
	stay := []string{}
	for _, q := range now.Queue {
		if q.ID != message {
			stay = append(stay, q.ID)
		}
	}
	if len(stay) == len(now.Queue) {
		return false, nil
	}
	err := c.call(ctx, http.MethodPut, at(session, "queue"), map[string]any{"message_ids": stay}, nil)
	if refused, ok := errors.AsType[*Error](err); ok && refused.Code == "not_queued" {
		return false, nil // its turn, or another one's, has just begun
	}
	return err == nil, err
}

// Delete deletes a session for good.
func (c *Client) Delete(ctx context.Context, session string) error {
	return c.call(ctx, http.MethodDelete, at(session), nil, nil)
}

// Decide answers the question about a call: approve, approve_for_session or deny.
func (c *Client) Decide(ctx context.Context, session, call, action, reason string) error {
	in := map[string]string{"tool_call_id": call, "action": action}
	if reason != "" {
		in["reason"] = reason
	}
	return c.call(ctx, http.MethodPost, at(session, "approve"), in, nil)
}

// Answer is [Client.Decide] about a question that a person has seen. Further edits are other calls: who
// approves one for the session lets the agent make them, too.
func (c *Client) Answer(ctx context.Context, session string, a Ask, action, reason string) error {
	if action != forSession || !callargs.Changes(a.Tool) {
		return c.Decide(ctx, session, a.Call, action, reason)
	}
	if err := c.Decide(ctx, session, a.Call, "approve", reason); err != nil {
		return err // somebody else was first, perhaps with a no
	}
	return c.SetMode(ctx, session, editMode)
}

// Undo undoes the last change of files by a session's agent.
func (c *Client) Undo(ctx context.Context, session string) (done undo.Undone, err error) {
	err = c.call(ctx, http.MethodPost, at(session, "undo"), nil, &done)
	return done, err
}

// compacted is the effect of [Client.Compact]: the length of the history, in tokens.
type compacted struct {
	Before int `json:"tokens_before"`
	After  int `json:"tokens_after"`
}

// String says what a compaction has gained.
func (c compacted) String() string {
	return fmt.Sprintf("the history has about %d tokens now; before, it had %d", c.After, c.Before)
}

// Compact has a model summarize the earlier part of a session's history, which may take minutes; the
// end of ctx ends it. keep is what the summary must have.
func (c *Client) Compact(ctx context.Context, session, keep string) (done compacted, err error) {
	err = c.wait(ctx, http.MethodPost, at(session, "compact"), map[string]string{"keep": keep}, &done)
	return done, err
}

// activeModel is the name of no model: a session without a choice has the active one.
const activeModel = "default"

// SetModel chooses the model of a session: the id of a provider, or ID/MODEL.
func (c *Client) SetModel(ctx context.Context, session, model string) error {
	if model == activeModel {
		model = ""
	}
	return c.call(ctx, http.MethodPatch, at(session), map[string]string{"model": model}, nil)
}

// SetMode sets the mode of a session: work, plan or edits.
func (c *Client) SetMode(ctx context.Context, session, mode string) error {
	return c.call(ctx, http.MethodPatch, at(session), map[string]string{"mode": mode}, nil)
}

// Choice is a model that a session can have.
type Choice struct {
	ID       string `json:"id"`
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Active   bool   `json:"active"`
}

// Models returns the models that are configured.
func (c *Client) Models(ctx context.Context) ([]Choice, error) {
	var out struct{ Models []Choice }
	err := c.call(ctx, http.MethodGet, "/v1/models", nil, &out)
	return out.Models, err
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

// Past delivers the events that a session has until now, and returns the id of the last one.
func (c *Client) Past(ctx context.Context, session string, take func(Event)) (last string, err error) {
	err = c.stream(ctx, session, "?follow=false", &last, take, func() {})
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return last, err
}

// Follow delivers the events of a session behind the one with the id last, or all if that is
// "", and future ones until ctx ends. It reconnects by itself, so that no event is missed or
// delivered twice. It calls lost when the connection breaks, and again with nil when it is back.
func (c *Client) Follow(ctx context.Context, session, last string, take func(Event), lost func(error)) error {
	failures := 0
	for {
		err := c.stream(ctx, session, "", &last, func(ev Event) {
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

func (c *Client) stream(ctx context.Context, session, query string, last *string, take func(Event), open func()) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Base+at(session, "events")+query, nil)
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
