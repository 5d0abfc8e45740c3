package client

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/gateway/wire/codec"
	"github.com/yaya-ai/yaya/internal/backoff"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// refreshBefore is how long before it expires a token is refreshed.
const refreshBefore = time.Hour

// heartbeatEvery is how often a client shows that it is there.
const heartbeatEvery = 30 * time.Second

// Options configure a [Client].
type Options struct {
	Credentials Credentials
	// Save keeps credentials when their token has changed; nil forgets it.
	Save func(Credentials) error
	// Load returns the stored credentials, which another program may have
	// replaced: it is called at each attempt to connect. If it is nil, Credentials stay in use.
	Load func() (Credentials, error)
	// JSON speaks JSON instead of MessagePack.
	JSON bool
	// HTTP is for registration and refreshing; TLS for the WebSocket. Both have
	// defaults.
	HTTP *http.Client
	TLS  *tls.Config
	// Retry returns how long to wait before attempt n, from 1. Default: 1 s, doubled
	// up to 30 s, with jitter.
	Retry func(n int) time.Duration
	// OnState is called when the connection is there, and when it is lost, with the reason.
	// It must not block; it may be nil.
	OnState func(connected bool, why error)
}

// Client is a connection that is kept up. Its methods are safe for concurrent use.
type Client struct {
	o      Options
	cancel context.CancelFunc // ends run
	done   chan struct{}

	mu       sync.Mutex
	creds    Credentials
	conn     *conn
	refs     int64
	channels map[string]*Channel
	waiting  map[string]chan reply
	invoked  map[string]chan error // by request_id
	changed  chan struct{}         // closed when conn changes
}

type reply struct {
	status   string
	response json.RawMessage
	err      error
}

// Cursor is a place in a topic.
type Cursor struct {
	Epoch string `json:"epoch"`
	Seq   int64  `json:"seq"`
}

// Event is one event of a topic.
type Event struct {
	Topic   string
	Name    string
	Payload json.RawMessage
	// Cursor is the client's position after this event; nil for volatile events.
	Cursor *Cursor
}

// Refusal is an answer with status "error".
type Refusal struct {
	Reason string `json:"reason"`
	Code   int    `json:"code"`
}

func (r *Refusal) Error() string { return r.Reason }

// Backoff returns waiting times that double from first to most, each shortened by
// up to half at random, so that many clients do not come back at once.
func Backoff(first, most time.Duration) func(n int) time.Duration {
	return func(n int) time.Duration { return backoff.Spread(backoff.Pause(first, most, n-1), 0.5, 1) }
}

// Start begins to connect, and goes on until Close.
func Start(o Options) *Client {
	if o.Retry == nil {
		o.Retry = Backoff(time.Second, 30*time.Second)
	}
	c := &Client{o: o, creds: o.Credentials, done: make(chan struct{}), channels: map[string]*Channel{}, waiting: map[string]chan reply{}, invoked: map[string]chan error{}, changed: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	go c.run(ctx)
	return c
}

// Close ends the connection and waits for it.
func (c *Client) Close() {
	c.cancel()
	<-c.done
}

// Reconnect drops the connection, as when the network has changed. The client connects
// again, and joined topics continue where they were.
func (c *Client) Reconnect() {
	c.mu.Lock()
	cn := c.conn
	c.mu.Unlock()
	if cn != nil {
		_ = cn.ws.Close()
	}
}

// Credentials returns the present credentials.
func (c *Client) Credentials() Credentials {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.creds
}

// Connected waits until the client is connected, and returns the kernel's id and
// that of the connection.
func (c *Client) Connected(ctx context.Context) (kernel, session string, err error) {
	for {
		c.mu.Lock()
		cn, changed := c.conn, c.changed
		c.mu.Unlock()
		if cn != nil {
			return cn.Kernel, cn.Session, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", "", ctx.Err()
		case <-c.done:
			return "", "", ErrClosed
		}
	}
}

func (c *Client) run(ctx context.Context) {
	defer close(c.done)
	for n := 1; ; n++ {
		began := time.Now()
		err := c.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if c.o.OnState != nil {
			c.o.OnState(false, err)
		}
		if time.Since(began) > time.Minute { // it was there for a while
			n = 1
		}
		select {
		case <-time.After(c.o.Retry(n)):
		case <-ctx.Done():
			return
		}
	}
}

// once connects and serves one connection until it is lost.
func (c *Client) once(ctx context.Context) error {
	if err := c.reload(); err != nil {
		return err
	}
	if err := c.renew(ctx, time.Now()); err != nil {
		return err
	}
	creds := c.Credentials()
	cn, err := dial(ctx, &creds, c.o.TLS, !c.o.JSON)
	if errors.Is(err, ErrRefused) { // the token may be invalid while the key is valid
		if rerr := c.refresh(ctx); rerr != nil {
			return errors.Join(err, rerr)
		}
		creds = c.Credentials()
		cn, err = dial(ctx, &creds, c.o.TLS, !c.o.JSON)
	}
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = cn.ws.Close() })
	defer stop()
	defer func() { _ = cn.ws.Close() }()
	kept := make(chan struct{})
	over := make(chan struct{})
	go func() {
		defer close(kept)
		c.keep(ctx, cn, over)
	}()
	defer func() { <-kept }()
	defer close(over)
	defer c.lost()
	if c.o.OnState != nil {
		c.o.OnState(true, nil)
	}
	if err := c.there(cn); err != nil {
		return err
	}
	for {
		m, err := cn.read()
		if err != nil {
			return err
		}
		if err := c.take(cn, m); err != nil {
			return err
		}
	}
}

// there makes a connection the current one and joins again what was joined.
func (c *Client) there(cn *conn) error {
	c.mu.Lock()
	c.conn = cn
	close(c.changed)
	c.changed = make(chan struct{})
	channels := make([]*Channel, 0, len(c.channels))
	for _, ch := range c.channels {
		channels = append(channels, ch)
	}
	c.mu.Unlock()
	for _, ch := range channels {
		if err := ch.join(cn); err != nil {
			return err
		}
	}
	return nil
}

// lost forgets the connection; who waits for an answer gets none.
func (c *Client) lost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = nil
	close(c.changed)
	c.changed = make(chan struct{})
	for ref, w := range c.waiting {
		delete(c.waiting, ref)
		w <- reply{err: fmt.Errorf("%w: the connection was lost", ErrUnavailable)}
	}
}

// keep beats, and refreshes the token in time.
func (c *Client) keep(ctx context.Context, cn *conn, over <-chan struct{}) {
	t := time.NewTicker(heartbeatEvery)
	defer t.Stop()
	for {
		select {
		case now := <-t.C:
			if cn.send([]byte(`[null,"beat","phoenix","heartbeat",{}]`)) != nil {
				return // the reader notices
			}
			was := c.Credentials().Token
			if c.reload() != nil || c.renew(ctx, now) != nil || c.Credentials().Token == was { // it is tried again
				continue
			}
			body := jsonrpc.AppendString([]byte(`[null,"auth","phoenix","auth",{"device_token":`), c.Credentials().Token)
			if cn.send(append(body, "}]"...)) != nil {
				return
			}
		case <-over:
			return
		}
	}
}

// reload takes over the credentials that are kept.
func (c *Client) reload() error {
	if c.o.Load == nil {
		return nil
	}
	creds, err := c.o.Load()
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.creds = creds
	c.mu.Unlock()
	return nil
}

// renew refreshes the token if it expires soon.
func (c *Client) renew(ctx context.Context, now time.Time) error {
	creds := c.Credentials()
	if creds.Token != "" && now.Before(creds.Expires.Add(-refreshBefore)) {
		return nil
	}
	return c.refresh(ctx)
}

func (c *Client) refresh(ctx context.Context) error {
	creds := c.Credentials()
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if err := creds.Refresh(ctx, c.o.HTTP); err != nil {
		return err
	}
	c.mu.Lock()
	c.creds = creds
	c.mu.Unlock()
	if c.o.Save != nil {
		return c.o.Save(creds)
	}
	return nil
}

// take handles one message.
func (c *Client) take(cn *conn, m codec.Message) error {
	if m.Event == "phx_reply" && m.Ref != nil {
		var p struct {
			Status   string          `json:"status"`
			Response json.RawMessage `json:"response"`
		}
		if err := json.Unmarshal(m.Payload, &p); err != nil {
			return err
		}
		c.mu.Lock()
		w := c.waiting[*m.Ref]
		delete(c.waiting, *m.Ref)
		ch := c.channels[m.Topic]
		c.mu.Unlock()
		switch {
		case w != nil:
			w <- reply{status: p.Status, response: p.Response}
		case ch != nil && ch.isJoin(*m.Ref):
			ch.joined(p.Status, p.Response)
		}
		return nil
	}
	if m.Topic == "phoenix" {
		return nil // a disconnect says why the close that follows comes
	}
	c.mu.Lock()
	ch := c.channels[m.Topic]
	c.mu.Unlock()
	if ch == nil {
		return nil
	}
	switch m.Event {
	case "phx_error": // the server has let go of the join: once more
		return ch.join(cn)
	case "phx_close":
		if ch.isJoin(deref(m.JoinRef)) {
			ch.closed()
		}
		return nil
	}
	if m.Event == "skill_error" {
		c.rejected(m.Payload)
	}
	ch.event(m)
	return nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (c *Client) ref() string {
	c.refs++
	return strconv.FormatInt(c.refs, 10)
}

// push sends and waits for the answer.
func (c *Client) push(ctx context.Context, ch *Channel, event string, payload any) (json.RawMessage, error) {
	raw, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}
	w := make(chan reply, 1)
	c.mu.Lock()
	cn := c.conn
	ref := c.ref()
	if cn == nil {
		c.mu.Unlock()
		return nil, ErrUnavailable
	}
	c.waiting[ref] = w
	joinRef := ch.ref
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, ref)
		c.mu.Unlock()
	}()
	if err := cn.send(cn.fmt.Body(codec.Message{JoinRef: &joinRef, Ref: &ref, Topic: ch.topic, Event: event, Payload: raw})); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	select {
	case r := <-w:
		if r.err != nil {
			return nil, r.err
		}
		if r.status != "ok" {
			return nil, refused(r.response)
		}
		return r.response, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func refused(response json.RawMessage) error {
	p := &Refusal{}
	if json.Unmarshal(response, p) != nil || p.Reason == "" {
		p.Reason = "refused"
	}
	return p
}
