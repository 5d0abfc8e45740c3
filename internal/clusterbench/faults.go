//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// fault is something that fails. begin returns how it ends, which waits until all processes run
// again.
type fault struct {
	name     string
	isolated bool // it needs machines with a network and a disk of their own
	steps    bool // it needs programs whose clock can be stepped
	begin    func(ctx context.Context, r *round) (heal, error)
}

type heal func(ctx context.Context) error

var faults = []fault{
	{name: "none", begin: nothing},
	{name: "yaya-killed", begin: killYaya},
	{name: "yaya-stopped", begin: stopYaya},
	{name: "nats-leader-killed", begin: onLeader(killNATS)},
	{name: "nats-follower-killed", begin: onFollower(killNATS)},
	{name: "nats-leader-stopped", begin: onLeader(stopNATS)},
	{name: "nats-follower-stopped", begin: onFollower(stopNATS)},
	{name: "majority-killed", begin: killMajority},
	{name: "rolling-restart", begin: rollingRestart},
	{name: "cut-off", isolated: true, begin: onAny(cut(true, true))},
	{name: "cannot-send", isolated: true, begin: onAny(cut(true, false))},
	{name: "cannot-receive", isolated: true, begin: onAny(cut(false, true))},
	{name: "all-apart", isolated: true, begin: allApart},
	{name: "slow-disk", isolated: true, begin: onAny(slowDisk)},
	{name: "full-disk", isolated: true, begin: onAny(fullDisk)},
	{name: "clock-steps", steps: true, begin: onAny(stepClock)},
}

func faultNamed(name string) (fault, error) {
	for _, f := range faults {
		if f.name == name {
			return f, nil
		}
	}
	return fault{}, fmt.Errorf("unknown fault %q: -fault list prints the names", name)
}

// victims says what could not be expected of nodes, and when.
type victims struct {
	down [3][]span // yaya did not answer
	cut  [3][]span // a majority of the servers may have been out of reach
	hit  [3]bool   // the fault was on this machine
	lost span      // no two servers reached each other; zero for never
}

type span struct{ from, to time.Duration }

func touches(all []span, begin, end time.Duration) bool {
	for _, s := range all {
		if begin <= s.to && end >= s.from {
			return true
		}
	}
	return false
}

func (v *victims) isDown(i int, begin, end time.Duration) bool { return touches(v.down[i], begin, end) }

// disturbed reports whether a node may have been unable to answer for the cluster.
func (v *victims) disturbed(i int, begin, end time.Duration) bool {
	return touches(v.down[i], begin, end) || touches(v.cut[i], begin, end)
}

// end ends all spans that last until the fault ends, and the time to settle.
func (v *victims) end(at time.Duration) {
	for i := range v.down {
		for _, all := range [][]span{v.down[i], v.cut[i]} {
			for n := range all {
				all[n].to = min(all[n].to, at+settle)
			}
		}
	}
}

// isDown says that a node does not answer until the fault has ended.
func (r *round) isDown(i int) {
	r.v.hit[i] = true
	r.v.down[i] = append(r.v.down[i], span{r.now(), endless})
}

// isCut says that a node has no majority until the fault has ended.
func (r *round) isCut(i int) {
	r.v.hit[i] = true
	r.v.cut[i] = append(r.v.cut[i], span{r.now(), endless})
}

// unsettles says that all nodes may have to find another server, or wait for an election.
func (r *round) unsettles() {
	for i := range r.v.cut {
		r.v.cut[i] = append(r.v.cut[i], span{r.now(), r.now() + settle})
	}
}

func onAny(do func(context.Context, *round, int) (heal, error)) func(context.Context, *round) (heal, error) {
	return func(ctx context.Context, r *round) (heal, error) { return do(ctx, r, r.rng.IntN(len(r.m))) }
}

func onLeader(do func(context.Context, *round, int) (heal, error)) func(context.Context, *round) (heal, error) {
	return func(ctx context.Context, r *round) (heal, error) {
		i, err := r.leader(ctx)
		if err != nil {
			return nil, err
		}
		return do(ctx, r, i)
	}
}

func onFollower(do func(context.Context, *round, int) (heal, error)) func(context.Context, *round) (heal, error) {
	return onLeader(func(ctx context.Context, r *round, i int) (heal, error) {
		return do(ctx, r, (i+1+r.rng.IntN(2))%len(r.m))
	})
}

func nothing(context.Context, *round) (heal, error) {
	return func(context.Context) error { return nil }, nil
}

func killYaya(_ context.Context, r *round) (heal, error) {
	i := r.rng.IntN(len(r.m))
	m := r.m[i]
	r.isDown(i)
	return func(ctx context.Context) error { return errors.Join(m.startYaya(), m.answers(ctx)) }, m.yaya.kill()
}

// stopYaya stops a node for longer than its news are good for: when it goes on, it believes that no
// time has passed.
func stopYaya(_ context.Context, r *round) (heal, error) {
	i := r.rng.IntN(len(r.m))
	m := r.m[i]
	r.isDown(i)
	return func(ctx context.Context) error { return errors.Join(m.yaya.signal(syscall.SIGCONT), m.answers(ctx)) }, m.yaya.signal(syscall.SIGSTOP)
}

func killNATS(_ context.Context, r *round, i int) (heal, error) {
	m := r.m[i]
	r.unsettles()
	return func(context.Context) error {
		r.unsettles()
		return m.startNATS(r.routes())
	}, m.nats.kill()
}

func stopNATS(_ context.Context, r *round, i int) (heal, error) {
	m := r.m[i]
	r.unsettles()
	return func(context.Context) error {
		r.unsettles()
		return m.nats.signal(syscall.SIGCONT)
	}, m.nats.signal(syscall.SIGSTOP)
}

func killMajority(_ context.Context, r *round) (heal, error) {
	stays := r.rng.IntN(len(r.m))
	var errs []error
	for i, m := range r.m {
		r.isCut(i)
		if i != stays {
			errs = append(errs, m.nats.kill())
		}
	}
	r.v.lost = span{r.now(), endless}
	return func(context.Context) error {
		r.v.lost.to = r.now()
		var errs []error
		for i, m := range r.m {
			if i != stays {
				errs = append(errs, m.startNATS(r.routes()))
			}
		}
		return errors.Join(errs...)
	}, errors.Join(errs...)
}

// rollingRestart restarts one node after the other, as an upgrade does.
func rollingRestart(ctx context.Context, r *round) (heal, error) {
	for _, m := range r.m {
		if _, err := m.do(ctx, "restart"); err != nil {
			return nil, err
		}
		if err := r.wait(ctx, time.Second); err != nil {
			return nil, err
		}
	}
	return nothing(ctx, r)
}

// cut cuts a machine off from the others: what it sends is lost, what they send, or both.
func cut(sends, receives bool) func(context.Context, *round, int) (heal, error) {
	return func(_ context.Context, r *round, i int) (heal, error) {
		wire := func(whole bool) error {
			var errs []error
			for other := range r.m {
				if sends {
					errs = append(errs, r.g.wire(i, other, whole))
				}
				if receives {
					errs = append(errs, r.g.wire(other, i, whole))
				}
			}
			return errors.Join(errs...)
		}
		r.isCut(i)
		r.unsettles()
		return func(context.Context) error {
			r.unsettles()
			return wire(true)
		}, wire(false)
	}
}

func allApart(_ context.Context, r *round) (heal, error) {
	wire := func(whole bool) error {
		var errs []error
		for from := range r.m {
			for to := range r.m {
				errs = append(errs, r.g.wire(from, to, whole))
			}
		}
		return errors.Join(errs...)
	}
	for i := range r.m {
		r.isCut(i)
	}
	err := wire(false)
	r.v.lost = span{r.now(), endless}
	return func(context.Context) error {
		r.v.lost.to = r.now()
		return wire(true)
	}, err
}

// Times of a slow disk: writes wait up to 200 ms, again and again.
const (
	diskStands = 200 * time.Millisecond
	diskGoes   = 50 * time.Millisecond
)

// slowDisk makes the disk of a machine stand still most of the time.
func slowDisk(ctx context.Context, r *round, i int) (heal, error) {
	r.isCut(i)
	r.unsettles()
	ctx, stop := context.WithCancel(ctx)
	var standing sync.WaitGroup
	var failed error
	standing.Go(func() {
		for ctx.Err() == nil && failed == nil {
			failed = r.g.freeze(i, fiFreeze)
			if failed == nil {
				_ = r.wait(ctx, diskStands) // it is to go on at once when the fault ends
				failed = r.g.freeze(i, fiThaw)
			}
			_ = r.wait(ctx, diskGoes)
		}
	})
	return func(context.Context) error {
		stop()
		standing.Wait()
		return failed
	}, nil
}

// fullDisk leaves a machine no room. A NATS server that could not write has given up JetStream,
// and needs a restart, as its team would do it.
func fullDisk(_ context.Context, r *round, i int) (heal, error) {
	r.isCut(i)
	r.unsettles()
	empty, err := r.g.fill(i)
	return func(context.Context) error {
		m := r.m[i]
		r.unsettles()
		return errors.Join(empty(), m.nats.kill(), m.startNATS(r.routes()))
	}, err
}
