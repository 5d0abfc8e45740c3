// Package plane is the agents, kernels and skills that the control log has made, the
// commands on them, and the topics that report them: agent:lobby, kernel:{id},
// cluster:consensus, skill:evolution and memory:query.
//
// Its state is a projection of the control log: every change is durable, has an
// index and an actor, and reaches the topics in the order of the log. Heartbeats
// and dead letters are not state: they are only sent.
//
// [Plane.Start] begins and [Plane.Close] ends what runs by itself: the heartbeat of
// this kernel, and the watch over the others'.
package plane

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/plane/agents"
	"github.com/yaya-ai/yaya/gateway/plane/measure"
	"github.com/yaya-ai/yaya/gateway/wire"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Times of heartbeats.
const (
	heartbeatEvery = 15 * time.Second
	staleAfter     = 60 * time.Second
	lookEvery      = time.Second // at the state of a log that others write, too
)

// maxAgents bounds the agents: beyond it, this kernel's idle agents leave, the
// one that changed longest ago first.
const maxAgents = 10_000

// Config assembles a [Plane]. KernelID and Epoch are required; the others may be
// set in [Plane.Start].
type Config struct {
	KernelID string // of this kernel
	Epoch    string // of the control log: its server's id
	Log      zerolog.Logger
}

// Running holds the parts that a [Plane] works with.
type Running struct {
	Log      control.Log
	Server   *wire.Server
	Bus      *bus.Bus
	Sessions *session.Manager
	Loop     *loop.Loop
	// Nodes carries news between the nodes of a cluster; nil if this yaya is alone.
	Nodes control.Fanout
	// Changed is told when kernels, agents of other nodes, the devices that are connected to them, or
	// the state of the log may have changed; nil for nobody. It must not block.
	Changed func()
	// Mix holds the weights by which this kernel's tools and skills are measured.
	Mix *measure.Mix
	// Memories counts what this kernel remembers.
	Memories func(ctx context.Context) int
	// Exports are the skills that others may invoke here.
	Exports func() []string
	// Invoke invokes one of them.
	Invoke func(ctx context.Context, by tool.Caller, skill string, payload json.RawMessage) (json.RawMessage, error)
	// Begin makes a session for somebody who names no folder, in one that they may use;
	// nil: in the default folder.
	Begin func(who auth.Principal, id string) error
}

func (r Running) begin(who auth.Principal, id string) error {
	if r.Begin != nil {
		return r.Begin(who, id)
	}
	_, err := r.Sessions.Open(id, "")
	return err
}

// Plane is the state of agents, kernels and skills, and the commands on it.
type Plane struct {
	cfg    Config
	run    Running
	agents agents.Set

	telling   sync.Mutex // held while a change is made and told: the topics hear of changes in one order
	reporters map[*reporting]struct{}
	counts    map[string]*tally
	at        int64 // index of the newest change that the lobby has got

	mu       sync.Mutex
	kernels  map[string]*kernel
	fitness  map[string]*measure.Fitness
	calls    map[string]*call
	rates    map[string]*rate
	started  bool
	quorum   bool
	since    time.Time // of the last change of quorum; zero without one in this process
	leader   string    // that was told last; "" for none
	promoted map[string]bool
	asked    int // kernels to do a skill, so far: the next one has to
	places   int // attachments of kernels so far
	endings  []ending
	// elsewhere are the devices that are connected to other nodes, by their kernels.
	elsewhere map[string]map[string]bool
	ended     chan struct{} // there are endings
	hello     chan struct{} // another node asks for a heartbeat

	stop chan struct{}
	work sync.WaitGroup
	subs []*bus.Subscription
	deaf func() // ends hearing of other nodes
}

var _ control.Projection = (*Plane)(nil)

// New returns a plane, to be given to the log that is opened.
func New(cfg Config) *Plane {
	return &Plane{
		cfg: cfg, kernels: map[string]*kernel{}, fitness: map[string]*measure.Fitness{}, calls: map[string]*call{}, rates: map[string]*rate{},
		promoted: map[string]bool{}, reporters: map[*reporting]struct{}{}, counts: map[string]*tally{}, stop: make(chan struct{}), quorum: true,
		elsewhere: map[string]map[string]bool{}, ended: make(chan struct{}, 1), hello: make(chan struct{}, 1),
	}
}

// The events of the control log.
const (
	evLeader       = "leader_elected"
	evRegistered   = "agent_registered"
	evUpdated      = "agent_updated" // of earlier versions, see Plane.update
	evKilled       = "agent_killed"
	evAttached     = "kernel_attached"
	evCapabilities = "capabilities_advertised"
	evPromoted     = "skill_promoted"
	evDemoted      = "skill_demoted"
)

type (
	registered struct {
		KernelID string         `json:"kernel_id"`
		Skill    string         `json:"skill"`
		Meta     map[string]any `json:"meta,omitempty"`
	}
	updated struct {
		Status string         `json:"status"`
		Patch  map[string]any `json:"context_patch,omitempty"`
	}
	killed struct {
		Reason string `json:"reason"`
		Own    bool   `json:"by_kernel,omitempty"` // which knows it
	}
	attached struct {
		Device string `json:"device_id"`
	}
	capabilities struct {
		Skills []string `json:"skills"`
	}
	leader struct {
		Node string `json:"node"`
		Term int64  `json:"term"`
	}
	promoted struct {
		Name    string  `json:"skill_name"`
		Fitness float64 `json:"fitness_score"`
		Kernel  string  `json:"originating_kernel"`
	}
	demoted struct {
		Reason string `json:"reason"`
	}
)

// Apply implements [control.Projection].
func (p *Plane) Apply(e control.Entry) error {
	p.telling.Lock()
	defer p.telling.Unlock()
	p.at = e.Index * perEntry
	topic, ev, err := p.apply(e)
	if err != nil || topic == "" {
		return err
	}
	p.announce(topic, ev)
	return nil
}

// apply changes the state and returns the events for the topics.
func (p *Plane) apply(e control.Entry) (topic string, ev wire.Event, err error) {
	if ev, ok, err := lobbyEvent(e); err != nil || ok {
		if err != nil {
			return "", ev, err
		}
		switch m := ev.Payload.(type) {
		case agents.RegisterAgent:
			p.agents.Register(m)
		case agents.UpdateAgent:
			p.agents.Update(m)
		case agents.KillAgent:
			p.kill(e, m)
			p.agents.Kill(m)
		}
		return lobbyTopic, ev, nil
	}
	switch e.Event {
	case evAttached:
		var a attached
		if err := e.Decode(&a); err != nil {
			return "", ev, err
		}
		p.mu.Lock()
		p.kernel(e.Target).device = a.Device
		p.mu.Unlock()
	case evCapabilities:
		var c capabilities
		if err := e.Decode(&c); err != nil {
			return "", ev, err
		}
		p.mu.Lock()
		p.kernel(e.Target).skills = c.Skills
		p.mu.Unlock()
	case evPromoted, evDemoted:
		ev, _, err := evolutionEvent(e)
		p.mu.Lock()
		p.promoted[e.Target] = e.Event == evPromoted
		p.mu.Unlock()
		return evolutionTopic, ev, err
	case evLeader:
		var l leader
		if err := e.Decode(&l); err != nil {
			return "", ev, err
		}
		return consensusTopic, wire.Event{Name: evLeader, Payload: LeaderElected{Type: evLeader, Node: l.Node, Term: l.Term, Time: control.Stamp(e.Time)}}, nil
	}
	return "", ev, nil
}

// lobbyEvent returns the event of agent:lobby for an entry, if it has
// one. Its index is in the lobby's numbering.
func lobbyEvent(e control.Entry) (ev wire.Event, ok bool, err error) {
	index := e.Index * perEntry
	switch e.Event {
	case evRegistered:
		var r registered
		err = e.Decode(&r)
		ev = wire.Event{Name: "register_agent", Payload: agents.RegisterAgent{
			Type: "register_agent", ID: e.Target, KernelID: r.KernelID, Skill: r.Skill, Status: agents.Idle, Meta: orEmpty(r.Meta), Time: control.Stamp(e.Time), Index: index,
		}}
	case evUpdated:
		var u updated
		err = e.Decode(&u)
		ev = wire.Event{Name: "update_agent", Payload: agents.UpdateAgent{
			Type: "update_agent", ID: e.Target, Status: u.Status, ContextPatch: orEmpty(u.Patch), Index: index, Time: control.Stamp(e.Time),
		}}
	case evKilled:
		var k killed
		err = e.Decode(&k)
		ev = wire.Event{Name: "kill_agent", Payload: agents.KillAgent{Type: "kill_agent", ID: e.Target, Reason: k.Reason, Time: control.Stamp(e.Time), Index: index}}
	default:
		return ev, false, nil
	}
	ev.Seq = index
	return ev, true, err
}

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// Start begins to work: this node leads its log, this kernel's sessions are agents,
// and its heart beats.
func (p *Plane) Start(ctx context.Context, r Running) error {
	p.run = r
	if err := p.lead(ctx); err != nil {
		return err
	}
	p.renew()
	for name, t := range map[string]wire.Topic{
		kernelTopic: kernels{p}, consensusTopic: consensus{p: p}, "cluster:main": consensus{p: p},
		evolutionTopic: evolution{p: p}, memoryTopic: memory{p}, "memory:shared": memory{p},
	} {
		r.Server.Handle(name, t)
	}
	if err := p.watch(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	p.started = true
	p.mu.Unlock()
	p.deaf = p.hearNodes()
	p.tellNodes(evHello, news{})
	p.work.Go(p.beat)
	return nil
}

// leadTries is how often a start tries to say who leads. The log of a cluster may come back between
// an attempt and the question whether it is there.
const leadTries = 3

// lead says who leads the log, unless this node is cut off.
func (p *Plane) lead(ctx context.Context) (err error) {
	for range leadTries {
		state := p.run.Log.State()
		_, err = p.run.Log.Append(ctx, control.Change{Event: evLeader, Actor: p.cfg.KernelID, Target: state.Leader, Payload: leader{state.Leader, state.Term}}, nil)
		if err == nil || p.cutOff(err) {
			return nil
		}
		if !errors.Is(err, control.ErrUnavailable) {
			return err
		}
	}
	return err
}

// cutOff reports whether a change failed because this node cannot reach the others.
func (p *Plane) cutOff(err error) bool {
	return errors.Is(err, control.ErrUnavailable) && !p.run.Log.State().Quorum
}

// Close ends what runs by itself.
func (p *Plane) Close() {
	p.mu.Lock()
	was := p.started
	p.started = false
	p.mu.Unlock()
	if !was {
		return
	}
	p.deaf()
	close(p.stop)
	p.work.Wait()
	p.tellNodes(evLeaves, news{})
	ctx, cancel := context.WithTimeout(context.Background(), heartbeatEvery/3)
	defer cancel()
	p.sumUp(ctx, time.Now(), true)
	for _, s := range p.subs {
		s.Close()
	}
}

// beat is this kernel's heart, and looks after the others'.
func (p *Plane) beat() {
	t := time.NewTicker(heartbeatEvery)
	defer t.Stop()
	var look <-chan time.Time
	if p.run.Nodes != nil { // others can change how the log is
		l := time.NewTicker(lookEvery)
		defer l.Stop()
		look = l.C
	}
	p.tick(time.Now())
	for {
		select {
		case now := <-t.C:
			p.tick(now)
		case now := <-look:
			p.watchQuorum(now)
		case <-p.ended:
			p.endAgents()
		case <-p.hello:
			p.beats(p.cfg.KernelID, p.Heartbeat(), time.Now())
		case <-p.stop:
			return
		}
	}
}

func (p *Plane) tick(now time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), heartbeatEvery/3)
	defer cancel()
	p.beats(p.cfg.KernelID, p.Heartbeat(), now)
	p.staleKernels(now)
	p.watchQuorum(now)
	p.reconcile(ctx)
	p.sumUp(ctx, now, false)
}

// append writes a change.
func (p *Plane) append(ctx context.Context, event, actor, target string, payload any, check func() error) (control.Entry, error) {
	return p.run.Log.Append(ctx, control.Change{Event: event, Actor: actor, Target: target, Payload: payload}, check)
}
