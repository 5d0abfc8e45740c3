package tapes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
)

// Times of leases. They are short, because a session stands still for [silence] when its node has
// died; and not shorter, because a node that does not get to say that it runs for [leaseTime] holds its
// sessions up.
const (
	renewEvery = 500 * time.Millisecond
	leaseTime  = 2 * time.Second
	// silence is longer than leaseTime by more than clocks differ in speed.
	silence  = 2500 * time.Millisecond
	lookEach = 100 * time.Millisecond // for how long a node has been silent
)

// held is the lease of this node.
type held struct {
	lease
	seq   uint64    // of its last message
	begun time.Time // when this node began to send that
	// since is when the lease began to be valid without a break.
	since time.Time
}

// valid reports whether the node may act. A machine that was asleep has the time of its wall clock, and
// not that of the monotonic one.
func (h held) valid(now time.Time) bool {
	return h.Run != "" && now.Sub(h.begun) < leaseTime && now.Round(0).Sub(h.begun.Round(0)) < leaseTime
}

// hearing notes what was heard of a node, and when.
type hearing struct {
	lease
	at time.Time
}

// newer reports whether a message is not older than another one.
func (l lease) newer(than lease) bool {
	return l.Run != than.Run || l.N > than.N || l.Dead != than.Dead
}

// hear notes that a node has said something. A message that the stream refuses is heard as well: a node
// may be taken to run for longer than it does, and not for shorter.
func (t *Tapes) hear(m *nats.Msg) {
	var l lease
	if json.Unmarshal(m.Data, &l) == nil {
		t.note(strings.TrimPrefix(m.Subject, leasesOf), l)
	}
}

// maxHeard bounds of how many nodes something is known.
const maxHeard = 1024

// note notes what a node says, and returns when it said something new for the last time.
func (t *Tapes) note(node string, l lease) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, known := t.heard[node]
	if known && !l.newer(h.lease) {
		return h.at
	}
	if known || len(t.heard) < maxHeard {
		t.heard[node] = hearing{l, time.Now()}
	}
	return time.Now()
}

// keep says that this node runs, until it is closed.
func (t *Tapes) keep() {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	told := ""
	for {
		err := t.make()
		if err == nil {
			err = t.renew()
		}
		switch now := fmt.Sprint(err); {
		case t.ctx.Err() != nil:
			return
		case err == nil && told != "":
			told = ""
			t.o.Log.Info().Msg("sessions of agents go on: the cluster answers")
		case err != nil && now != told && !t.now().valid(time.Now()):
			told = now
			t.o.Log.Warn().Err(err).Msg("sessions of agents pause: the cluster does not know that this node runs")
		}
		select {
		case <-tick.C:
		case <-t.ctx.Done():
			return
		}
	}
}

// now returns the lease of this node.
func (t *Tapes) now() held {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mine
}

// set replaces the lease of this node, and tells who waits for it.
func (t *Tapes) set(h held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mine = h
	close(t.changed)
	t.changed = make(chan struct{})
}

// renew says once that this node runs, with a new lease if it has none.
func (t *Tapes) renew() error {
	h, begun := t.now(), time.Now()
	fresh := h.Run == ""
	if fresh {
		_, seq, err := t.leaseOf(t.ctx, t.o.Node)
		if err != nil {
			return err
		}
		h = held{lease: lease{Run: uuid.NewString()}, seq: seq}
	}
	h.N++
	raw, err := json.Marshal(h.lease)
	if err != nil {
		return err
	}
	seq, err := t.put(t.ctx, state, &nats.Msg{Subject: leasesOf + t.o.Node, Data: raw}, h.seq)
	if isBehind(err) {
		return t.overtaken(h)
	}
	if err != nil {
		return err
	}
	if fresh || !t.now().valid(begun) {
		h.since = begun
	}
	h.seq, h.begun = seq, begun
	t.set(h)
	if fresh && t.o.Renewed != nil {
		t.mu.Lock()
		t.begin(func() { t.o.Renewed(t.ctx) })
		t.mu.Unlock()
	}
	return nil
}

// overtaken finds out why the stream has another last message of this node than it knows.
func (t *Tapes) overtaken(h held) error {
	l, seq, err := t.leaseOf(t.ctx, t.o.Node)
	if err != nil {
		return err
	}
	if l.Run == h.Run && l.Dead == "" { // an earlier attempt has come through, and its answer was lost
		was := t.now()
		if was.Run == "" { // it was the first one
			return nil
		}
		was.lease, was.seq = l, seq
		t.set(was)
		return t.renew()
	}
	t.set(held{})
	if l.Dead != "" {
		return fmt.Errorf("the node %s has not heard of this one, and may have taken its sessions over", l.Dead)
	}
	return errors.New("another process has started as this node")
}

// leaseOf returns what a node has said last, and the number of that message, 0 for none.
func (t *Tapes) leaseOf(ctx context.Context, node string) (l lease, seq uint64, err error) {
	msg, err := t.last(ctx, state, leasesOf+node)
	if err != nil || msg == nil {
		return l, 0, err
	}
	if err := json.Unmarshal(msg.data, &l); err != nil {
		return l, 0, fmt.Errorf("the lease of node %s cannot be read: %w", node, err)
	}
	return l, msg.seq, nil
}

// alive returns the lease of this node. It waits for one that is valid.
func (t *Tapes) alive(ctx context.Context) (held, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		t.mu.Lock()
		h, changed := t.mine, t.changed
		t.mu.Unlock()
		if h.valid(time.Now()) {
			return h, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return held{}, ErrUnavailable
		case <-t.ctx.Done():
			return held{}, errClosed
		}
	}
}

// dead reports whether a node has no lease. If it has not said anything for a while, it is declared
// dead; until that long it waits for a word.
func (t *Tapes) dead(ctx context.Context, node string) (bool, error) {
	asked := time.Now()
	for {
		l, seq, err := t.leaseOf(ctx, node)
		if err != nil {
			return false, err
		}
		if l.Dead != "" {
			return true, nil
		}
		at := t.note(node, l)
		me := t.now()
		switch {
		case !me.valid(time.Now()):
			return false, ErrUnavailable
		case at.After(asked.Add(renewEvery)): // what it had said before has arrived long ago
			return false, nil
		case min(time.Since(at), time.Since(me.since)) >= silence:
			return t.declare(ctx, node, l, seq)
		}
		select {
		case <-time.After(lookEach):
		case <-ctx.Done():
			return false, ctx.Err()
		case <-t.ctx.Done():
			return false, errClosed
		}
	}
}

// declare declares a node dead that has said nothing since a message. It reports whether it is.
func (t *Tapes) declare(ctx context.Context, node string, l lease, seq uint64) (bool, error) {
	l.Dead = t.o.Node
	raw, err := json.Marshal(l)
	if err != nil {
		return false, err
	}
	_, err = t.put(ctx, state, &nats.Msg{Subject: leasesOf + node, Data: raw}, seq)
	if isBehind(err) { // it runs, or another node was first
		l, _, err := t.leaseOf(ctx, node)
		return l.Dead != "", err
	}
	if err == nil {
		t.o.Log.Warn().Str("node", node).Msg("a node has said nothing for a while: its sessions can be taken over")
	}
	return err == nil, err
}
