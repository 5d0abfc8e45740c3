package jetstream

import (
	"context"
	"errors"
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
}

// healthOf reads the state of a stream's servers.
func (l *Log) healthOf(info *js.StreamInfo) health {
	c := info.Cluster
	if c == nil || c.Leader == "" && len(c.Replicas) == 0 { // a server that is alone
		return health{leader: l.conn.ConnectedServerName(), nodes: 1, quorum: true}
	}
	h := health{leader: c.Leader, nodes: 1 + len(c.Replicas)}
	up := 1
	for _, r := range c.Replicas {
		if !r.Offline && r.Active < silent {
			up++
		}
	}
	h.quorum = h.leader != "" && up > h.nodes/2
	return h
}

// watch asks for the state of the stream, and has entries read whose announcement was lost.
func (l *Log) watch() {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-l.ctx.Done():
			return
		}
		if !l.known() {
			l.retry()
			continue
		}
		h, last := l.ask()
		mine, _ := l.applied()
		l.mu.Lock()
		if h.leader == "" {
			h.nodes = l.health.nodes
		}
		l.health = h
		l.mu.Unlock()
		if last > mine {
			l.tell()
		}
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
		if l.err == nil {
			l.err = refused
			l.o.Log.Error().Err(err).Msg("the control log cannot go on")
		}
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
	return control.State{Last: last, Term: term, Leader: l.health.leader, Nodes: l.health.nodes, Quorum: l.health.quorum && l.ctx.Err() == nil}
}
