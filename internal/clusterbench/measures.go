//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// failOver measures how long a session of an agent stands still when its node is killed: until another node has
// acknowledged a message in it. failover [-yaya FILE] [-times N].
func failOver(args []string) (err error) {
	flags := flag.NewFlagSet("failover", flag.ContinueOnError)
	yaya, times := flags.String("yaya", "bin/yaya", "the binary to run"), flags.Int("times", 10, "how often a node is killed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return withCluster(*yaya, func(ctx context.Context, r *round) error {
		var took []time.Duration
		for n := range *times {
			session := r.sessions[n%perNode] // of the first node, which is killed again and again, and then of those that took it
			d, err := r.moves(ctx, session, fmt.Sprint("after-", n))
			if err != nil {
				return err
			}
			took = append(took, d)
		}
		slices.Sort(took)
		fmt.Printf("%d nodes killed: their session took a message on another node after %v (median), %v (the slowest)\n",
			*times, took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
		return nil
	})
}

// owner is the machine that has a session.
func (r *round) owner(ctx context.Context, session string) (*machine, error) {
	for _, m := range r.m {
		status, _, err := m.ask(ctx, http.MethodGet, "/v1/sessions/"+session, "", nil)
		if err != nil || status != http.StatusOK {
			return nil, errors.Join(fmt.Errorf("%s does not serve session %s: %d", m.name, session, status), err)
		}
		if there, err := m.has(session); there || err != nil {
			return m, err
		}
	}
	return nil, fmt.Errorf("nobody has session %s", session)
}

// moves kills the node of a session, and returns after how long another one took a message.
func (r *round) moves(ctx context.Context, session, text string) (time.Duration, error) {
	at, err := r.owner(ctx, session)
	if err != nil {
		return 0, err
	}
	other := r.m[(slices.Index(r.m[:], at)+1)%len(r.m)]
	begun := time.Now()
	if err := at.yaya.kill(); err != nil {
		return 0, err
	}
	if err := until(ctx, "another node takes a message", func() bool {
		status, _, err := other.ask(ctx, http.MethodPost, "/v1/sessions/"+session+"/messages", "", map[string]any{
			"role": "user", "id": text, "parts": []any{map[string]any{"type": "text", "text": text}},
		})
		return err == nil && status == http.StatusAccepted
	}); err != nil {
		return 0, err
	}
	took := time.Since(begun)
	return took, errors.Join(at.startYaya(), at.answers(ctx))
}

// withCluster has a measure work on a cluster of three machines on the loopback interface.
func withCluster(yaya string, measure func(context.Context, *round) error) (err error) {
	dir, err := os.MkdirTemp("", "cb")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	g := &ground{dir: dir}
	for i := range g.nets {
		if err := os.Mkdir(g.folder(i), 0o700); err != nil {
			return err
		}
	}
	r := &round{g: g, rng: rand.New(rand.NewPCG(1, 1))} //nolint:gosec // nothing depends on it
	defer func() {
		for _, m := range r.m {
			if m != nil {
				err = errors.Join(err, m.close())
			}
		}
	}()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if err := r.found(ctx, yaya); err != nil {
		return err
	}
	return measure(ctx, r)
}

// has reports whether a machine's disk has the files of a session.
func (m *machine) has(session string) (bool, error) {
	_, err := os.Stat(filepath.Join(m.folder(), "d", "sessions", session, "session.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// passing measures what a call of a tool takes on the node that has the client's session, and through another one:
// passing [-yaya FILE] [-calls N].
func passing(args []string) error {
	flags := flag.NewFlagSet("passing", flag.ContinueOnError)
	yaya, calls := flags.String("yaya", "bin/yaya", "the binary to run"), flags.Int("calls", 2000, "calls on each way, in turn")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return withCluster(*yaya, func(ctx context.Context, r *round) error {
		here := newCaller(r.m[0], r.token)
		if err := here.call(ctx, "first"); err != nil { // which begins the session
			return err
		}
		there := &caller{m: r.m[1], token: r.token, session: here.session}
		var took [2][]time.Duration
		for n := range 2 * *calls {
			c := []*caller{here, there}[n%2]
			begun := time.Now()
			if err := c.call(ctx, fmt.Sprint("call-", n)); err != nil {
				return err
			}
			took[n%2] = append(took[n%2], time.Since(begun))
		}
		for i := range took {
			slices.Sort(took[i])
		}
		a, b := took[0][len(took[0])/2], took[1][len(took[1])/2]
		fmt.Printf("a call on its node takes %v (median of %d), through another node %v: %.2f times as long\n",
			a.Round(time.Microsecond), *calls, b.Round(time.Microsecond), b.Seconds()/a.Seconds())
		return nil
	})
}
