package jetstream

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	js "github.com/nats-io/nats.go/jetstream"

	"github.com/yaya-ai/yaya/control"
)

// silent is how long a server of the stream may be unheard of by its leader before it counts as gone.
const silent = 5 * time.Second

// health holds what the stream's servers say of themselves.
type health struct {
	leader string // "" for none
	nodes  int
	quorum bool
	lag    time.Duration // since the leader last heard of a majority: since then another one may lead
	heard  time.Time     // every entry up to then is applied; zero for never
}

// healthOf reads the state of a stream's servers.
func (l *Log) healthOf(info *js.StreamInfo) health {
	c := info.Cluster
	if c == nil || c.Leader == "" && len(c.Replicas) == 0 { // a server that is alone
		return health{leader: l.conn.ConnectedServerName(), nodes: 1, quorum: true}
	}
	h := health{leader: c.Leader, nodes: 1 + len(c.Replicas)}
	if h.leader == "" {
		return h
	}
	var last []time.Duration // since each of the others was heard of
	for _, r := range c.Replicas {
		if !r.Offline {
			last = append(last, r.Active)
		}
	}
	slices.Sort(last)
	if others := h.nodes / 2; others > 0 { // that make a majority with the leader
		if len(last) < others {
			return h
		}
		h.lag = last[others-1]
	}
	h.quorum = h.lag < silent
	return h
}

// watch asks for the state of the stream, and reads entries whose announcement was lost.
func (l *Log) watch() {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-l.ctx.Done():
			return
		}
		// Not with each entry: the stream has them on the disk, and a node fetches what it loses.
		if err := l.o.Copy.Sync(l.ctx); err != nil && l.ctx.Err() == nil {
			l.o.Log.Warn().Err(err).Msg("the copy of the control log may not have reached the disk")
		}
		if !l.known() {
			l.retry()
			continue
		}
		begun := time.Now()
		h, last := l.ask()
		l.seen(h)
		if h.quorum && l.reach(last) == nil {
			l.heard(begun)
		}
	}
}

// seen notes what the servers say of themselves; without a leader, how many they are is known
// from before.
func (l *Log) seen(h health) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.heard = l.health.heard; h.leader == "" {
		h.nodes = l.health.nodes
	}
	l.health = h
}

// reach applies the entries up to one.
func (l *Log) reach(last int64) error {
	ctx, cancel := context.WithTimeout(l.ctx, answerTime)
	defer cancel()
	return l.catchUp(ctx, last)
}

// heard notes that every entry is applied that the leader had at a time.
func (l *Log) heard(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.health.quorum {
		l.health.heard = at.Add(-l.health.lag)
	}
}

// retry looks for a stream that could not be reached when the log was opened.
func (l *Log) retry() {
	_, err := l.meet(l.ctx)
	if err == nil {
		l.o.Log.Info().Msg("the control log of the cluster is there")
		l.tell()
		return
	}
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		l.applying.Lock()
		defer l.applying.Unlock()
		l.fail(refused)
	}
}

// ask returns the state of the stream; without an answer it has no leader.
func (l *Log) ask() (h health, last int64) {
	ctx, cancel := context.WithTimeout(l.ctx, answerTime)
	defer cancel()
	s, err := l.js.Stream(ctx, l.o.Stream)
	if err != nil {
		return health{}, 0
	}
	info := s.CachedInfo()
	return l.healthOf(info), int64(info.State.LastSeq) //nolint:gosec // a stream's numbers fit
}

// State implements [control.Log]. The leader and the quorum are as of the last second.
func (l *Log) State() control.State {
	last, term := l.applied()
	l.mu.Lock()
	defer l.mu.Unlock()
	behind := time.Duration(math.MaxInt64)
	if !l.health.heard.IsZero() {
		behind = time.Since(l.health.heard)
	}
	return control.State{Last: last, Term: term, Leader: l.health.leader, Nodes: l.health.nodes, Quorum: l.health.quorum && !l.broken && l.ctx.Err() == nil, Behind: behind}
}
