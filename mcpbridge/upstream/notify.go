package upstream

import (
	"bytes"
	"context"
	"slices"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/workgroup"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Bounds of a client's notifications that its server has not received yet.
const (
	maxClientNotes     = 64
	maxClientNoteBytes = 1 << 20 // in total; a single one may be larger
)

// Notify implements [relay.Server]: it forwards a client's notification to the client's own
// session, in order.
func (p *Provider) Notify(client, method string, params []byte) bool {
	p.mu.Lock()
	sl, work := p.sessions[place{name: client}], p.work
	if sl == nil { // over HTTP a client's connection is one of its era
		sl = p.sessions[place{client, servers.EraLegacy}]
	}
	p.mu.Unlock()
	if sl == nil {
		return true
	}
	sl.mu.Lock()
	s := sl.s
	sl.mu.Unlock()
	if s == nil || s.of.client != client || s.peer.Era == servers.EraModern {
		return true
	}
	return s.notify(work, note{method, params}.passedOn())
}

// notify queues a notification. A change of the roots is queued once if it would follow another
// one directly, since the server asks for the roots when it reads the notification; any other
// notification may matter each time. It reports false if the queue is full.
func (s *session) notify(work *workgroup.Group, n note) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.notes) - 1; last >= 0 && n.method == noteRootsChanged && s.notes[last].method == n.method && bytes.Equal(s.notes[last].params, n.params) {
		return true
	}
	size := len(n.params)
	for _, waiting := range s.notes {
		size += len(waiting.params)
	}
	if len(s.notes) >= maxClientNotes || len(s.notes) > 0 && size > maxClientNoteBytes {
		s.p.stats.dropped.Add(1)
		return false
	}
	s.notes = append(s.notes, note{n.method, bytes.Clone(n.params)})
	if !s.noting {
		s.noting = work.Go(s.sendNotes)
	}
	return s.noting
}

// sendNotes sends the queued notifications, one after the other.
func (s *session) sendNotes() {
	for {
		s.mu.Lock()
		if len(s.notes) == 0 {
			s.notes, s.noting = nil, false
			s.mu.Unlock()
			return
		}
		n := s.notes[0]
		s.notes = slices.Delete(s.notes, 0, 1)
		s.mu.Unlock()
		ctx, cancel := context.WithTimeout(s.life, listTimeout)
		_ = s.t.send(ctx, jsonrpc.AppendRequest(nil, nil, n.method, n.params)) // its loss shows with the next call
		cancel()
	}
}
