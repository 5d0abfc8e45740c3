package downstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/sse"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Bounds of what a server hands to its successor.
const (
	maxHandedEvents = 32 << 20 // bytes of the events of all streams together
	resubscribeTime = time.Minute
)

// Handover is the state of clients that they rely on, for the process that goes
// on in its place: the legacy sessions. Modern clients have none.
type Handover struct {
	Sessions []HandedSession `json:"sessions,omitempty"`
}

// HandedSession is a legacy session. Its token is a secret of its client.
type HandedSession struct {
	Token        string          `json:"token"`
	Owner        string          `json:"owner"`
	Session      string          `json:"session"`
	Profile      string          `json:"profile"` // with the servers that its callers are limited to
	Path         string          `json:"path,omitempty"`
	Version      string          `json:"version"`
	Info         json.RawMessage `json:"info,omitempty"`
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	Level        string          `json:"level,omitempty"`
	Settled      bool            `json:"settled,omitempty"`
	Last         time.Time       `json:"last"`
	Asked        int64           `json:"asked,omitempty"` // ids of questions are not used again
	Subscribed   []string        `json:"subscribed,omitempty"`
	Streams      int             `json:"streams,omitempty"`
	Records      []HandedRecord  `json:"records,omitempty"`
	Unasked      *HandedRecord   `json:"unasked,omitempty"`
}

// HandedRecord is a stream that its client can resume.
type HandedRecord struct {
	ID     string   `json:"id"`
	First  int      `json:"first"`
	Events []string `json:"events,omitempty"`
}

// Leave ends the subscriptions, so that nothing waits for their ends; calls go on. The streams
// of GET requests are their connections'.
func (s *Server) Leave() {
	s.mu.Lock()
	s.leaving = true
	all := slices.Collect(maps.Keys(s.streams))
	s.mu.Unlock()
	for _, st := range all {
		st.end()
	}
}

// HandOver returns the sessions for a successor. Calls that still run end with the server; the
// streams of those that have sent something say so to clients that come back for them.
func (s *Server) HandOver() Handover {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.sessions))
	s.mu.Unlock()
	// Those used last first: their streams are the likeliest to be resumed.
	slices.SortFunc(all, func(a, b *client) int { return b.used().Compare(a.used()) })
	room := maxHandedEvents
	var out Handover
	for _, c := range all {
		if h, ok := c.handOver(&room); ok {
			out.Sessions = append(out.Sessions, h)
		}
	}
	return out
}

// used returns when a session was used last.
func (c *client) used() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy > 0 {
		return time.Now()
	}
	return c.last
}

// handOver describes a session; false for one whose handshake is not complete.
func (c *client) handOver(room *int) (HandedSession, bool) {
	last := c.used()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version == "" {
		return HandedSession{}, false
	}
	h := HandedSession{
		Token: c.token, Owner: c.owner, Session: c.session, Profile: c.profile.name, Path: c.profile.path, Version: c.version, Info: c.info,
		Capabilities: c.caps.Raw(), Level: c.level, Settled: c.settled.Load(), Last: last, Asked: c.askSeq, Subscribed: slices.Sorted(maps.Keys(c.subscribed)), Streams: c.recordSeq,
	}
	if c.getRecord != nil {
		r := c.getRecord.handOver(room)
		h.Unasked = &r
	}
	for _, r := range slices.Backward(c.records) {
		h.Records = append(h.Records, r.handOver(room))
	}
	slices.Reverse(h.Records)
	return h, true
}

// cutOff answers a request that outlasts the time that a stop or a restart leaves it.
func cutOff(method string) *jsonrpc.Error {
	switch method {
	case "tools/list", "prompts/list", "prompts/get", "resources/list", "resources/templates/list", "resources/read", "completion/complete", "tasks/get", "tasks/list", "ping":
		return fail(jsonrpc.CodeInternal, "yaya stops or restarts, and cut the request off: send it again when yaya is back")
	}
	return fail(jsonrpc.CodeInternal, "yaya stops or restarts, and cut the call off before it ended; the call may or may not have taken effect, so look before you repeat it")
}

// errCutOff answers calls that outlast a restart.
var errCutOff = fail(jsonrpc.CodeInternal, "yaya was restarted before the call ended; the call may or may not have taken effect")

// handOver describes a stream. The oldest events are left out when there is no room for them.
func (r *record) handOver(room *int) HandedRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := HandedRecord{ID: r.id, First: r.first}
	events := r.events
	if !r.done && r.request != nil {
		id := r.eventID(len(events))
		if ev, err := sse.Append(nil, sse.Event{Name: "message", ID: id, Data: jsonrpc.AppendError(nil, r.request, errCutOff)}); err == nil {
			events = append(slices.Clip(events), ev)
		}
	}
	from := len(events)
	for from > 0 && len(events[from-1]) <= *room {
		from--
		*room -= len(events[from])
	}
	h.First += from
	for _, ev := range events[from:] {
		h.Events = append(h.Events, string(ev))
	}
	return h
}

// takeOver puts the sessions of a predecessor in place. It comes before anything is served.
func (s *Server) takeOver(h Handover) {
	for _, x := range h.Sessions {
		if x.Token == "" || x.Owner == "" || len(s.sessions) >= s.shares.sessions {
			continue
		}
		c := newClient(x.Owner, x.Session, s.named(x.Profile, x.Path))
		c.token, c.version, c.info, c.level, c.last = x.Token, x.Version, bytes.Clone(x.Info), x.Level, x.Last
		c.askSeq, c.recordSeq = x.Asked, x.Streams
		c.settled.Store(x.Settled)
		c.moved.Store(true)
		if caps, err := jsonrpc.ParseObject(bytes.Clone(x.Capabilities)); err == nil {
			c.caps = caps
		}
		if x.Unasked != nil {
			c.getRecord = x.Unasked.record(false)
		}
		for _, r := range x.Records {
			c.records = append(c.records, r.record(true))
		}
		s.sessions[c.token] = c
		c.kind = kind{c.owner, announced(c.info)}
		s.owned[c.owner]++
		s.kinds[c.kind]++
		if len(x.Subscribed) > 0 {
			s.work.Go(func() { s.resubscribe(c, x.Subscribed) })
		}
	}
}

// named returns a profile by which only its name is known: requests bring their own.
func (s *Server) named(name, path string) *profile {
	if name == s.all.name {
		return s.all
	}
	return &profile{name: name, path: path}
}

// record returns the stream. One of a call is over: it has its answer, or says why not.
func (h HandedRecord) record(over bool) *record {
	r := &record{id: h.ID, first: h.First, over: make(chan struct{}), done: over}
	for _, ev := range h.Events {
		r.events = append(r.events, []byte(ev))
		r.size += len(ev)
	}
	if over {
		close(r.over)
	}
	return r
}

// resubscribe renews the subscriptions of a session once its servers are there. The client has
// no request that an error could answer: as with a server that starts again, it is told that
// the lists have changed, and reads them.
func (s *Server) resubscribe(c *client, uris []string) {
	ctx, cancel := context.WithTimeout(s.life, resubscribeTime)
	defer cancel()
	s.cfg.Boundary(ctx)
	for _, uri := range uris {
		err := s.cfg.Router.Subscribe(ctx, c, uri, func(server string) bool {
			p, err := s.profile(c.profile.path, tool.Caller{Principal: c.owner})
			// The scopes of others are not known before their next request.
			return err == nil && p.server(server) && (c.owner == tool.Owner || s.scope(server) == "")
		})
		if err == nil {
			c.mu.Lock()
			c.subscribed[uri] = true
			c.mu.Unlock()
		} else if !errors.Is(err, context.Canceled) {
			s.cfg.Log.Warn().Err(err).Str("session", c.session).Str("uri", clip(uri)).Msg("cannot renew a subscription after a restart")
		}
	}
}
