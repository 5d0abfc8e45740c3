package plane

import (
	"context"
	"encoding/json"
	"io/fs"
	"math"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/plane/agents"
	"github.com/yaya-ai/yaya/gateway/wire"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// The topics. cluster:main and memory:shared are other names of two of
// them.
const (
	lobbyTopic     = "agent:lobby"
	consensusTopic = "cluster:consensus"
	evolutionTopic = "skill:evolution"
	memoryTopic    = "memory:query"
)

// oneWay is a topic on which only the server speaks.
type oneWay struct{}

// Push implements [wire.Topic].
func (oneWay) Push(context.Context, wire.Client, string, string, json.RawMessage) (any, error) {
	return nil, wire.ErrServerToClient
}

// lobby is agent:lobby: the agents and what becomes of them.
type lobby struct {
	oneWay
	readers
	p *Plane
}

// readers is a topic for those who may read the state of agents; they are asked for
// that right again when their scopes change.
type readers struct{}

// Allows implements [wire.Guarded].
func (readers) Allows(p auth.Principal, _ string) error { return auth.Allow(p, auth.AgentsRead) }

// Lobby is the topic agent:lobby. It has to be handled before the topics of single
// agents, whose names begin alike.
func (p *Plane) Lobby() wire.Topic { return lobby{p: p} }

// LobbyJoined is the response to a join of agent:lobby.
type LobbyJoined struct {
	Cursor wire.Cursor    `json:"cursor"`
	Resync string         `json:"resync,omitempty"`
	Agents []agents.Agent `json:"agents,omitempty"` // unless the client resumes
	// Present are the devices that are connected.
	Present []string `json:"present"`
}

// Join implements [wire.Topic].
func (l lobby) Join(_ context.Context, c wire.Client, _ string, since *wire.Cursor) (wire.Joined, error) {
	if err := auth.Allow(c.Principal, auth.AgentsRead); err != nil {
		return wire.Joined{}, err
	}
	p := l.p
	res := LobbyJoined{Present: p.Present()}
	p.telling.Lock()
	defer p.telling.Unlock()
	res.Cursor = wire.Cursor{Epoch: p.lobbyEpoch(), Seq: p.at}
	after := p.at
	switch {
	case since == nil:
		res.Agents = p.agents.List()
	case since.Epoch != "" && since.Epoch != res.Cursor.Epoch:
		res.Resync, res.Agents = "epoch", p.agents.List()
	case since.Seq > p.at:
		res.Resync, res.Agents = "ahead", p.agents.List()
	default:
		after = since.Seq
	}
	return wire.Joined{Response: res, After: after, Last: p.at, Replay: p.replayLobby}, nil
}

// lobbyEpoch is the epoch of the lobby's cursors. That of earlier versions was the log's
// alone, and its numbers were those of the entries.
func (p *Plane) lobbyEpoch() string { return p.cfg.Epoch + ".2" }

// replayLobby reads the entries from the control log, and has the agents' updates, of which
// there is no record, as each agent is now.
func (p *Plane) replayLobby(ctx context.Context, after, upTo int64, visit func(wire.Event) error) error {
	updated := p.agents.Updated(after, upTo)
	visitUpdates := func(before int64) error {
		for len(updated) > 0 && updated[0].Index < before {
			a := updated[0]
			updated = updated[1:]
			if err := visit(updateEvent(agents.UpdateAgent{
				Type: "update_agent", ID: a.ID, Status: a.Status, ContextPatch: orEmpty(a.Context), Index: a.Index, Time: a.Time,
			})); err != nil {
				return err
			}
		}
		return nil
	}
	err := p.replay(lobbyEvent)(ctx, after/perEntry, upTo/perEntry, func(ev wire.Event) error {
		if err := visitUpdates(ev.Seq); err != nil {
			return err
		}
		return visit(ev)
	})
	if err != nil {
		return err
	}
	return visitUpdates(upTo + 1)
}

// replay reads the earlier events of a topic from the control log.
func (p *Plane) replay(told func(control.Entry) (wire.Event, bool, error)) func(context.Context, int64, int64, func(wire.Event) error) error {
	return func(_ context.Context, after, upTo int64, visit func(wire.Event) error) error {
		return p.run.Log.Read(after+1, func(e control.Entry) error {
			if e.Index > upTo {
				return fs.SkipAll
			}
			ev, ok, err := told(e)
			if err != nil || !ok {
				return err
			}
			return visit(ev)
		})
	}
}

// showPresence tells the lobby of this node that a device has come or gone.
func (p *Plane) showPresence(device string, there bool) {
	if p.run.Server == nil {
		return
	}
	name := "presence_leave"
	if there {
		name = "presence_join"
	}
	p.run.Server.Publish(lobbyTopic, wire.Event{Name: name, Payload: Presence{name, device, control.Stamp(time.Now())}})
}

// Presence is presence_join or presence_leave on agent:lobby.
type Presence struct {
	Type   string `json:"type"`
	Device string `json:"device_id"`
	Time   string `json:"ts"`
}

// consensus is cluster:consensus: who leads, and whether changes can be made.
type consensus struct {
	oneWay
	readers
	p *Plane
}

// Status is the answer of cluster.status.
type Status struct {
	State  string `json:"state"` // "healthy", or "no_quorum"
	Leader string `json:"leader"`
	Term   int64  `json:"term"`
	Nodes  int    `json:"node_count"`
	Quorum bool   `json:"quorum"`
	Index  int64  `json:"raft_log_index"`
}

// Status is how the cluster is.
func (p *Plane) Status() Status {
	s := p.run.Log.State()
	out := Status{"healthy", s.Leader, s.Term, s.Nodes, s.Quorum, s.Last}
	if !s.Quorum {
		out.State = "no_quorum"
	}
	return out
}

// Behind returns for how long other nodes may have made changes that this one does not know of.
// It is false if this process has never heard of the others.
func (p *Plane) Behind() (time.Duration, bool) {
	b := p.run.Log.State().Behind
	return b, b != math.MaxInt64
}

// QuorumSince returns since when changes can be made, or cannot. It is zero if that has not
// changed while this process ran.
func (p *Plane) QuorumSince() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.since
}

// changed says that what the plane shows may have changed; mu is not held.
func (p *Plane) changed() {
	if p.run.Changed != nil {
		p.run.Changed()
	}
}

// Join implements [wire.Topic].
func (c consensus) Join(_ context.Context, cl wire.Client, _ string, _ *wire.Cursor) (wire.Joined, error) {
	if err := auth.Allow(cl.Principal, auth.AgentsRead); err != nil {
		return wire.Joined{}, err
	}
	st := c.p.Status()
	return wire.Joined{Response: st, Live: func() []wire.Event { // who leads, for who comes late
		return []wire.Event{{Name: evLeader, Payload: LeaderElected{Type: evLeader, Node: st.Leader, Term: st.Term, Time: control.Stamp(time.Now())}}}
	}}, nil
}

// watchQuorum tells when changes cannot be written, when they can again, and who leads now.
func (p *Plane) watchQuorum(now time.Time) {
	s := p.run.Log.State()
	p.mu.Lock()
	was, led := p.quorum, p.leader
	p.quorum = s.Quorum
	if was != s.Quorum {
		p.since = now
	}
	if s.Leader != "" {
		p.leader = s.Leader
	}
	p.mu.Unlock()
	if was != s.Quorum || s.Leader != "" && led != s.Leader {
		p.changed()
	}
	if led != "" && s.Leader != "" && led != s.Leader {
		p.run.Server.Publish(consensusTopic, wire.Event{Name: evLeader, Payload: LeaderElected{Type: evLeader, Node: s.Leader, Term: s.Term, Time: control.Stamp(now)}})
	}
	if was == s.Quorum {
		return
	}
	name := "quorum_lost"
	if s.Quorum {
		name = "quorum_restored"
	}
	p.run.Server.Publish(consensusTopic, wire.Event{Name: name, Payload: QuorumChange{Type: name, NodeCount: s.Nodes, Time: control.Stamp(now)}})
}

// evolution is skill:evolution.
type evolution struct {
	oneWay
	readers
	p *Plane
}

// Join implements [wire.Topic].
func (e evolution) Join(_ context.Context, c wire.Client, _ string, since *wire.Cursor) (wire.Joined, error) {
	if err := auth.Allow(c.Principal, auth.AgentsRead); err != nil {
		return wire.Joined{}, err
	}
	last := e.p.run.Log.State().Last
	after := last
	if since != nil && since.Seq < last && (since.Epoch == "" || since.Epoch == e.p.cfg.Epoch) {
		after = since.Seq
	}
	return wire.Joined{Response: map[string]any{"cursor": wire.Cursor{Epoch: e.p.cfg.Epoch, Seq: last}}, After: after, Last: last, Replay: e.p.replay(evolutionEvent)}, nil
}

// evolutionEvent returns the event of skill:evolution for an entry, if it has
// one.
func evolutionEvent(e control.Entry) (ev wire.Event, ok bool, err error) {
	switch e.Event {
	case evDemoted:
		var d demoted
		err = e.Decode(&d)
		ev = wire.Event{Name: evDemoted, Payload: SkillDemoted{Type: evDemoted, SkillID: e.Target, Reason: d.Reason, Time: control.Stamp(e.Time), Index: e.Index}}
	case evPromoted:
		var d promoted
		err = e.Decode(&d)
		ev = wire.Event{Name: evPromoted, Payload: SkillPromoted{
			Type: evPromoted, SkillID: e.Target, SkillName: d.Name, Fitness: d.Fitness, Originating: d.Kernel, Time: control.Stamp(e.Time), Index: e.Index,
		}}
	default:
		return ev, false, nil
	}
	ev.Seq = e.Index
	return ev, true, err
}

// memory is memory:query.
type memory struct{ p *Plane }

const (
	maxHits     = 50
	memoryLimit = 10 * time.Second
)

// Allows implements [wire.Guarded].
func (memory) Allows(p auth.Principal, _ string) error { return auth.Allow(p, auth.MemoryRead) }

// Join implements [wire.Topic].
func (memory) Join(_ context.Context, c wire.Client, _ string, _ *wire.Cursor) (wire.Joined, error) {
	return wire.Joined{}, auth.Allow(c.Principal, auth.MemoryRead)
}

// Push implements [wire.Topic].
func (m memory) Push(_ context.Context, c wire.Client, _, name string, payload json.RawMessage) (any, error) {
	if err := auth.Allow(c.Principal, auth.MemoryRead); err != nil {
		return nil, err
	}
	if name != "memory_query" {
		return nil, wire.NoSuchEvent(name)
	}
	var q memoryQuery
	if err := wire.Decode(payload, &q); err != nil {
		return nil, err
	}
	if q.Query == "" || q.K < 0 || q.K > maxHits {
		return nil, wire.Refuse("a query is {query, k?}, and k is at most %d", maxHits)
	}
	if q.K == 0 {
		q.K = 5
	}
	return wire.Later(func(ctx context.Context) (any, error) {
		if !m.p.run.Bus.Wanted(event.MemoryQueried.Name()) {
			return nil, wire.Refuse("there is no memory here")
		}
		ctx, cancel := context.WithTimeout(ctx, memoryLimit)
		defer cancel()
		ev, err := bus.Request(ctx, m.p.run.Bus.Kernel().Named("wire"), event.MemoryQueried, event.KernelSession, event.MemoryQuery{Query: q.Query, K: q.K}, event.MemoryAnswered.Kind())
		if err != nil {
			return nil, wire.Refuse("the memory does not answer")
		}
		r, _ := ev.Payload.(event.MemoryResult)
		return memoryHits{m.p.cfg.KernelID, r.Hits}, nil
	}), nil
}

type (
	memoryQuery struct {
		Type  string `json:"type,omitempty"`
		Query string `json:"query"`
		K     int    `json:"k,omitempty"`
	}
	memoryHits struct {
		KernelID string              `json:"kernel_id"`
		Hits     []event.MemoryEntry `json:"hits"`
	}
)
