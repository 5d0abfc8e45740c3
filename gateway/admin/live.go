package admin

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/wire"
	"github.com/yaya-ai/yaya/gateway/wire/codec"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// The topics of [Live].
const (
	TopicPrefix  = "dashboard:"
	changesTopic = TopicPrefix + "main"
	metricsTopic = TopicPrefix + "metrics"
)

// Parts of yaya that can change, as [Live.Changed] names them.
const (
	PartAgents     = "agents"
	PartApprovals  = "approvals"
	PartAudit      = "audit"
	PartConfig     = "config"
	PartDevices    = "devices"
	PartNotices    = "notifications"
	PartPlugins    = "plugins"
	PartQuarantine = "quarantine"
	PartServers    = "servers"
	PartSessions   = "sessions"
	PartTools      = "tools"
)

// gather is how long changes wait for others, so that a burst is reported once.
const gather = 100 * time.Millisecond

// LiveConfig assembles [Live]. Server and Bus are required.
type LiveConfig struct {
	Server  *wire.Server
	Bus     *bus.Bus
	Control control.Log    // nil for none
	Read    func() Reading // nil for no metrics
	// Others is told which parts of this node have changed that other nodes show; nil for none.
	Others func(parts []string)
}

// Live is the topic dashboard:main, on which clients learn which parts of yaya
// have changed, and dashboard:metrics. Clients fetch the changes themselves,
// with their own rights.
type Live struct {
	cfg  LiveConfig
	stop context.CancelFunc
	work sync.WaitGroup
	sub  *bus.Subscription

	finished finishedTurns

	mu       sync.Mutex
	closed   bool
	dirty    map[string]bool // by part; true if it is one of this node
	timer    *time.Timer
	readings []window
	here     map[*auth.Principal]struct{} // who has joined dashboard:main
}

// changedBy are the kinds of events with what they change.
var changedBy = map[string][]string{
	event.UserMessageReceived.Name(): {PartSessions}, event.TurnWasStarted.Name(): {PartSessions, PartAgents}, event.TurnWasCompleted.Name(): {PartSessions, PartAgents},
	event.TurnHasFailed.Name(): {PartSessions, PartAgents}, event.TurnWasCancelled.Name(): {PartSessions, PartAgents},
	event.SessionWasStarted.Name(): {PartSessions}, event.SessionWasReset.Name(): {PartSessions}, event.SessionWasArchived.Name(): {PartSessions}, event.SessionWasDeleted.Name(): {PartSessions}, event.SessionWasForked.Name(): {PartSessions},
	event.ConfigWasUpdated.Name(): {PartConfig, PartPlugins},
	event.PluginWasLoaded.Name():  {PartPlugins}, event.PluginWasReloaded.Name(): {PartPlugins}, event.PluginWasRemoved.Name(): {PartPlugins}, event.PluginFailed.Name(): {PartPlugins},
}

// NewLive begins to watch; [Live.Close] ends it.
func NewLive(ctx context.Context, cfg LiveConfig) (*Live, error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &Live{cfg: cfg, stop: stop, dirty: map[string]bool{}, readings: newWindows(), here: map[*auth.Principal]struct{}{}}
	sub, err := cfg.Bus.Subscribe(bus.SubscribeOptions{Name: "dashboard"}, slices.Sorted(maps.Keys(changedBy)), func(_ context.Context, ev event.Event) error {
		l.finished.note(ev)
		l.Changed(changedBy[ev.Kind]...)
		return nil
	})
	if err != nil {
		stop()
		return nil, err
	}
	l.sub = sub
	if cfg.Control != nil {
		l.work.Go(func() { // it ends with ctx, or with the log
			_ = cfg.Control.Follow(ctx, cfg.Control.State().Last+1, func(e control.Entry) error {
				if e.Event != control.SealEvent { // which the audit does not show
					l.Changed(append(partsOf(e.Event), PartAudit)...)
				}
				return nil
			})
		})
	}
	if cfg.Read != nil {
		l.work.Go(func() { l.read(ctx) })
	}
	return l, nil
}

// partsOf are the parts that a change in the control log is about, besides the audit.
func partsOf(name string) []string {
	switch {
	case strings.HasPrefix(name, "device_"), strings.HasPrefix(name, "signing_"), strings.HasPrefix(name, "token_"):
		return []string{PartDevices}
	case strings.HasPrefix(name, "tools_"), strings.HasPrefix(name, "server_"):
		return []string{PartQuarantine, PartServers, PartTools}
	case name == readEvent:
		return []string{PartNotices}
	case strings.HasPrefix(name, "agent_"), strings.HasPrefix(name, "kernel_"), strings.HasPrefix(name, "leader_"), strings.HasPrefix(name, "node_"):
		return []string{PartAgents}
	}
	return nil
}

// Close ends what watches, and waits for it.
func (l *Live) Close() {
	l.mu.Lock()
	l.closed = true
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	l.sub.Close()
	l.stop()
	l.work.Wait()
}

// Changed tells clients, a moment later, that parts of yaya have changed. It does not
// block.
func (l *Live) Changed(parts ...string) { l.changed(true, parts) }

// ChangedElsewhere is [Live.Changed] for parts of other nodes, which this one shows.
func (l *Live) ChangedElsewhere(parts ...string) { l.changed(false, parts) }

func (l *Live) changed(here bool, parts []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(parts) == 0 {
		return
	}
	first := len(l.dirty) == 0
	for _, p := range parts {
		l.dirty[p] = here || l.dirty[p]
	}
	if !first {
		return
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(gather, l.tell)
		return
	}
	l.timer.Reset(gather)
}

// Changes is changed on dashboard:main.
type Changes struct {
	Type  string   `json:"type"` // "changed"
	Parts []string `json:"parts"`
}

func (l *Live) tell() {
	l.mu.Lock()
	defer l.mu.Unlock()
	parts := slices.Sorted(maps.Keys(l.dirty))
	shown := slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return !l.dirty[p] || p != PartApprovals && p != PartSessions })
	clear(l.dirty)
	if l.closed {
		return
	}
	if l.cfg.Others != nil && len(shown) > 0 {
		l.cfg.Others(shown)
	}
	l.cfg.Server.Publish(changesTopic, wire.Event{Name: "changed", Payload: Changes{"changed", parts}})
}

// Join implements [wire.Topic].
func (l *Live) Join(ctx context.Context, c wire.Client, topic string, _ *wire.Cursor) (wire.Joined, error) {
	if topic != changesTopic && topic != metricsTopic {
		return wire.Joined{}, wire.Refuse("unmatched topic")
	}
	if err := l.Allows(c.Principal, topic); err != nil {
		return wire.Joined{}, err
	}
	if topic == changesTopic {
		p := &c.Principal
		l.mu.Lock()
		l.here[p] = struct{}{}
		l.mu.Unlock()
		context.AfterFunc(ctx, func() { // when the client leaves
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.here, p)
		})
	}
	return wire.Joined{}, nil
}

// Answers reports whether somebody is there who sees the inbox, and may answer.
func (l *Live) Answers() bool {
	l.mu.Lock()
	here := slices.Collect(maps.Keys(l.here))
	l.mu.Unlock()
	return slices.ContainsFunc(here, func(p *auth.Principal) bool { return auth.Allow(*p, auth.ApprovalsAnswer) == nil })
}

// Allows implements [wire.Guarded].
func (*Live) Allows(p auth.Principal, topic string) error {
	if topic == metricsTopic {
		return auth.Allow(p, auth.MetricsRead)
	}
	return auth.Allow(p, auth.SessionsRead)
}

// Push implements [wire.Topic].
func (*Live) Push(context.Context, wire.Client, string, string, json.RawMessage) (any, error) {
	return nil, wire.ErrServerToClient
}

// Describe lists the messages of the topics of this package.
func Describe() []codec.Description {
	return []codec.Description{
		codec.FromServer(changesTopic, "changed", "parts of yaya that have changed: ask for them", Changes{}),
		codec.FromServer(metricsTopic, "reading", "how yaya is doing", Sample{}),
	}
}
