//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Times of a round.
const (
	warm   = 2 * time.Second
	settle = 10 * time.Second // the servers elect a leader within it, and nodes find a server that answers
)

// round is a cluster with its load and what was done to it.
type round struct {
	m        [3]*machine
	g        *ground
	rng      *rand.Rand
	begun    time.Time
	lasts    time.Duration
	token    string // a lasting one, of clients that call tools
	v        victims
	boards   [3]*dashboard // one on each node
	cutOff   [3][]entry    // what nodes had before the fault ended
	sessions []string      // of agents
}

// played is the outcome of a round.
type played struct {
	Operations  int
	Writes      int           // acknowledged
	Revocations int           // acknowledged, with each node asked until it refused
	Seen, Joins int           // events that dashboards got, and how often they joined
	Said        int           // messages to agents that were acknowledged
	SayGap      time.Duration // the longest time without one in a session, over all nodes
	Findings    []string      // what was wrong
	WriteGap    time.Duration // the longest time without an acknowledged write, on a node that was not a victim, unless all were
	CallGap     time.Duration // the longest time without a call of a client with a token, likewise
	Reached     time.Duration // the slowest revocation on a node that could reach a majority
	All         time.Duration // the slowest revocation
	Logs        string        // folder with the history and the logs of the processes, if something was wrong
}

// play founds a cluster, has something fail under load, and checks what came of it.
func play(ctx context.Context, o options, g *ground, f fault, seed uint64) (p played, err error) {
	r := &round{g: g, rng: rand.New(rand.NewPCG(seed, 1)), lasts: o.lasts} //nolint:gosec // to be repeated
	defer func() {
		for _, m := range r.m {
			if m != nil {
				err = errors.Join(err, m.close())
			}
		}
	}()
	if err := r.found(ctx, o.yaya); err != nil {
		return p, errors.Join(err, r.keep(f.name, seed, &p, nil))
	}
	r.begun = time.Now()
	going, stop := context.WithCancel(ctx)
	watching, blind := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer blind()
	for i, m := range r.m {
		r.boards[i] = &dashboard{m: m}
		watchers.Go(func() { r.boards[i].follow(watching) })
	}
	l := newLoad(r, seed)
	l.begin(ctx, going)
	err = r.fail(ctx, f)
	stop()
	l.wait()
	if err != nil {
		return p, errors.Join(err, r.keep(f.name, seed, &p, l.ops))
	}
	r.judge(ctx, &p, l, o.slack)
	if len(p.Findings) > 0 {
		err = r.keep(f.name, seed, &p, l.ops)
	}
	return p, err
}

// fail does what the fault does, and lets the cluster come to itself.
func (r *round) fail(ctx context.Context, f fault) error {
	if err := r.wait(ctx, warm+time.Duration(r.rng.IntN(1000))*time.Millisecond); err != nil {
		return err
	}
	heal, err := f.begin(ctx, r)
	if err != nil {
		return fmt.Errorf("begin the fault: %w", err)
	}
	lasted := r.wait(ctx, r.lasts)
	for i, m := range r.m {
		r.cutOff[i], _ = m.log(ctx) // a victim has no answer
	}
	if err := errors.Join(lasted, heal(ctx)); err != nil {
		return fmt.Errorf("end the fault: %w", err)
	}
	r.v.end(r.now())
	return r.wait(ctx, settle)
}

func (r *round) now() time.Duration { return time.Since(r.begun) }

func (r *round) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// found makes a cluster of three new machines.
func (r *round) found(ctx context.Context, bin string) error {
	for i := range r.m {
		m, err := openMachine(r.g, i, bin)
		if err != nil {
			return err
		}
		r.m[i] = m
	}
	urls := make([]string, 0, len(r.m))
	for _, m := range r.m {
		urls = append(urls, "nats://"+m.natsHost+":"+m.clientPort)
		if err := errors.Join(m.startNATS(r.routes()), m.startGate()); err != nil {
			return err
		}
	}
	north := r.m[0]
	var last error
	if err := until(ctx, "the servers take a stream", func() bool {
		_, last = north.do(ctx, "cluster", "init", "--name", north.name, "--replicas", "3", "--nats", strings.Join(urls, ","))
		return last == nil
	}); err != nil {
		return errors.Join(err, last)
	}
	for i, m := range r.m {
		if i > 0 {
			raw, err := north.do(ctx, "cluster", "invite", "--url", "http://"+north.addr, "--json")
			if err != nil {
				return err
			}
			var made struct{ Invitation string }
			if err := json.Unmarshal([]byte(raw), &made); err != nil {
				return err
			}
			// The way to the other yaya leads through its machine: nodes listen on loopback here.
			if err := r.join(ctx, m, made.Invitation); err != nil {
				return err
			}
		}
		if err := errors.Join(m.startYaya(), m.answers(ctx)); err != nil {
			return err
		}
	}
	var err error
	if r.token, err = r.makeToken(ctx, "load"); err != nil {
		return err
	}
	if err := r.openSessions(ctx); err != nil {
		return err
	}
	for _, m := range r.m {
		if err := until(ctx, m.name+" calls its tool for a token of the cluster", func() bool {
			return newCaller(m, r.token).call(ctx, "hello") == nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// makeToken makes a lasting token.
func (r *round) makeToken(ctx context.Context, name string) (string, error) {
	status, raw, err := r.m[0].ask(ctx, http.MethodPost, "/api/tokens", "", map[string]any{"name": name})
	if err == nil && status != http.StatusCreated {
		err = fmt.Errorf("POST /api/tokens: %d %s", status, raw)
	}
	if err != nil {
		return "", err
	}
	var made struct{ Token string }
	return made.Token, json.Unmarshal(raw, &made)
}

// join runs yaya cluster join in the network of the first machine.
func (r *round) join(ctx context.Context, m *machine, invitation string) error {
	cmd := m.command(ctx, m.bin, m.flags("cluster", "join", invitation, "--name", m.name)...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	err := r.g.on(0, cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("%s joins: %w: %s", m.name, err, out.String())
	}
	return nil
}

// routes are the addresses at which the NATS servers find each other.
func (r *round) routes() string {
	var all []string
	for _, m := range r.m {
		all = append(all, m.natsHost+":"+m.routePort)
	}
	return strings.Join(all, ",")
}

// cluster is the answer of a node about the cluster.
type cluster struct {
	Status struct {
		Leader string `json:"leader"`
		Quorum bool   `json:"quorum"`
		Nodes  int    `json:"node_count"`
		Index  int64  `json:"raft_log_index"`
	} `json:"status"`
}

func (m *machine) cluster(ctx context.Context) (c cluster, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	status, raw, err := m.ask(ctx, http.MethodGet, "/api/cluster", "", nil)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("GET /api/cluster on %s: %d %.200s", m.name, status, raw)
	}
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	return c, err
}

// leader is the machine whose NATS server leads.
func (r *round) leader(ctx context.Context) (i int, err error) {
	err = until(ctx, "a NATS server leads", func() bool {
		c, err := r.m[0].cluster(ctx)
		for n := range r.m {
			if err == nil && c.Status.Quorum && c.Status.Leader == "nats-"+names[n] {
				i = n
				return true
			}
		}
		return false
	})
	return i, err
}

// mostEntries is how many entries of a log are read.
const mostEntries = 10000

// log is the log of a node.
func (m *machine) log(ctx context.Context) (all []entry, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	status, raw, err := m.ask(ctx, http.MethodGet, fmt.Sprint("/api/audit?limit=", mostEntries), "", nil)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("GET /api/audit on %s: %d %.200s", m.name, status, raw)
	}
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	return all, err
}

// judge checks the history against the logs.
func (r *round) judge(ctx context.Context, p *played, l *load, slack time.Duration) {
	var logs [3][]entry
	why := ""
	if err := until(ctx, "the nodes have the same log", func() bool {
		for i, m := range r.m {
			c, err := m.cluster(ctx)
			if err == nil {
				logs[i], err = m.log(ctx)
			}
			if err == nil && !c.Status.Quorum {
				err = fmt.Errorf("%s sees no quorum", m.name)
			}
			if err != nil {
				why = err.Error()
				return false
			}
		}
		why = fmt.Sprintf("they have %d, %d and %d entries", len(logs[0]), len(logs[1]), len(logs[2]))
		return len(logs[0]) == len(logs[1]) && len(logs[1]) == len(logs[2])
	}); err != nil {
		p.Findings = append(p.Findings, err.Error()+": "+why)
	}
	for i := range r.m {
		p.Findings = append(p.Findings, checkPrefix(r.cutOff[i], logs[0])...)
		p.Findings = append(p.Findings, checkPrefix(logs[i], logs[0])...)
	}
	newest := newestInLobby(logs[0])
	for i, d := range r.boards {
		if err := until(ctx, "a dashboard on "+names[i]+" hears of the last agent", func() bool { return d.reached(newest) }); err != nil {
			p.Findings = append(p.Findings, err.Error())
		}
		saw, joins := d.seen()
		p.Seen, p.Joins = p.Seen+len(saw), p.Joins+joins
		p.Findings = append(p.Findings, checkLobby(names[i], saw, logs[0])...)
	}
	r.judgeTalk(ctx, p, l)
	p.Findings = append(p.Findings, checkLog(l.ops, logs[0])...)
	p.Findings = append(p.Findings, checkReads(l.ops)...)
	p.Findings = append(p.Findings, checkLost(l.ops, &r.v)...)
	p.Findings = append(p.Findings, checkCalls(l.ops, &r.v, slack)...)
	for _, rev := range l.revocations {
		reached, all, found := rev.check(&r.v, slack)
		p.Reached, p.All = max(p.Reached, reached), max(p.All, all)
		p.Findings = append(p.Findings, found...)
	}
	p.Operations, p.Revocations = len(l.ops), len(l.revocations)
	for i := range r.m {
		if !r.v.hit[i] || r.v.hit == [3]bool{true, true, true} {
			p.WriteGap = max(p.WriteGap, longestGap(l.ops, i, kindToken))
			p.CallGap = max(p.CallGap, longestGap(l.ops, i, kindCall))
		}
	}
	for _, o := range l.ops {
		if o.Key != "" && o.Outcome == ok {
			p.Writes++
		}
	}
}

// longestGap is the longest time that clients of a node were without a success.
func longestGap(ops []op, node int, kind string) (most time.Duration) {
	last := time.Duration(-1)
	for _, o := range ops {
		if o.Node == node && o.Kind == kind && o.Outcome == ok {
			if last >= 0 {
				most = max(most, o.End-last)
			}
			last = o.End
		}
	}
	return most
}

// keep copies what the processes wrote to a folder that stays, with the history.
func (r *round) keep(fault string, seed uint64, p *played, ops []op) error {
	dir, err := os.MkdirTemp("", fmt.Sprintf("clusterbench-%s-%d-", fault, seed))
	if err != nil {
		return err
	}
	p.Logs = dir
	history, err := json.Marshal(ops)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "history.json"), history, 0o600)
	}
	all, gerr := filepath.Glob(filepath.Join(r.g.dir, "*.log"))
	err = errors.Join(err, gerr)
	for _, name := range all {
		raw, rerr := os.ReadFile(name)
		if errors.Is(rerr, fs.ErrNotExist) {
			continue
		}
		err = errors.Join(err, rerr, os.WriteFile(filepath.Join(dir, filepath.Base(name)), raw, 0o600))
	}
	fmt.Fprintln(os.Stderr, "the history and the logs of the processes are in", dir)
	return err
}
