//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/bench/load"
)

// loadCase is a load that is put on a gateway.
type loadCase struct {
	name                     string
	sessions, inFlight, size int // calls in flight of each session; bytes of the argument
}

var loadCases = []loadCase{
	{"one at a time, 64 B", 1, 1, 64},
	{"8 × 8, 64 B", 8, 8, 64},
	{"8 × 8, 4 KiB", 8, 8, 4096},
}

// callLimit is the time that a call may take under load.
const callLimit = 10 * time.Second

// maxFailures ends a worker's part in a round.
const maxFailures = 20

// loader has open sessions with an endpoint, and puts load on it.
type loader struct {
	to   endpoint
	addr string
	tool string
	all  []*client
}

// openLoader opens sessions.
func openLoader(ctx context.Context, to endpoint, sessions int) (*loader, error) {
	u, err := url.Parse(to.base)
	if err != nil {
		return nil, err
	}
	l := &loader{to: to, addr: u.Host}
	for range sessions {
		c, err := connect(ctx, to)
		if err != nil {
			l.close()
			return nil, err
		}
		l.all = append(l.all, c)
	}
	s := &subject{to: to, c: l.all[0]}
	if err := s.list(ctx); err != nil {
		l.close()
		return nil, err
	}
	l.tool = s.names["echo"]
	return l, nil
}

func (l *loader) close() {
	for _, c := range l.all {
		c.close()
	}
}

// round holds the measurements of one round.
type round struct {
	perSecond     float64
	calls, failed int
	latencies     []time.Duration // sorted
	failure       error           // one of them
}

// run puts a load on the endpoint for a time.
func (l *loader) run(ctx context.Context, c loadCase, d time.Duration) (round, error) {
	var wg sync.WaitGroup
	workers := make([]round, c.sessions*c.inFlight)
	begun := time.Now()
	deadline := begun.Add(d)
	for i := range workers {
		wg.Go(func() { l.work(ctx, &workers[i], l.all[i%c.sessions], i+1, c.size, deadline) })
	}
	wg.Wait()
	var sum round
	for _, w := range workers {
		sum.calls += w.calls
		sum.failed += w.failed
		sum.latencies = append(sum.latencies, w.latencies...)
		if w.failure != nil {
			sum.failure = w.failure
		}
	}
	slices.Sort(sum.latencies)
	sum.perSecond = float64(sum.calls) / time.Since(begun).Seconds()
	if err := ctx.Err(); err != nil {
		return sum, err
	}
	if sum.calls == 0 {
		return sum, fmt.Errorf("no call succeeded: %w", sum.failure)
	}
	return sum, nil
}

// work is one of those who call: one call after the other, each counted.
func (l *loader) work(ctx context.Context, r *round, c *client, worker, size int, deadline time.Time) {
	text := strings.Repeat("x", size)
	var conn *load.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close()
		}
	}()
	for n := 1; time.Now().Before(deadline) && ctx.Err() == nil && r.failed < maxFailures; n++ {
		if conn == nil {
			var err error
			if conn, err = l.dial(c); err != nil {
				r.failed, r.failure, conn = r.failed+1, err, nil
				continue
			}
		}
		// Ids differ between the connections that share a session.
		id := strconv.Itoa(worker*10_000_000 + n)
		begun := time.Now()
		err := l.call(conn, c, id, text)
		if err != nil {
			r.failed, r.failure = r.failed+1, err
			_ = conn.Close()
			conn = nil
			continue
		}
		r.calls++
		r.latencies = append(r.latencies, time.Since(begun))
	}
}

func (l *loader) dial(c *client) (*load.Conn, error) {
	u, err := url.Parse(c.post)
	if err != nil {
		return nil, err
	}
	header := ""
	if l.to.auth != "" {
		header = "Authorization: " + l.to.auth + "\r\n"
	}
	if !l.to.sse {
		header += "Mcp-Protocol-Version: " + legacy + "\r\n"
	}
	return load.Endpoint{Addr: l.addr, Path: u.RequestURI(), Header: header}.Dial()
}

// call makes one call and looks at its answer.
func (l *loader) call(conn *load.Conn, c *client, id, text string) error {
	if err := conn.SetDeadline(time.Now().Add(callLimit)); err != nil {
		return err
	}
	body := []byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + l.tool + `","arguments":{"text":"` + text + `"}}}`)
	if !l.to.sse {
		a, err := conn.Post(body, c.session)
		if err != nil {
			return err
		}
		return fits(a.Body, id, text)
	}
	got := make(chan message, 1)
	c.mu.Lock()
	c.waiting[id] = got
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
	}()
	if _, err := conn.Post(body, ""); err != nil {
		return err
	}
	limit := time.NewTimer(callLimit)
	defer limit.Stop()
	select {
	case m := <-got:
		if m.Error != nil {
			return m.Error
		}
		return fits(append(m.Result, id...), id, text)
	case <-limit.C:
		return errors.New("no answer on the session's stream")
	}
}

// fits reports whether an answer is that of a call, without parsing it: members
// of it stand in any order, in an event or not.
func fits(answer []byte, id, text string) error {
	switch {
	case bytes.Contains(answer, []byte(`"isError":true`)), bytes.Contains(answer, []byte(`"isError": true`)), bytes.Contains(answer, []byte(`"error":`)),
		!bytes.Contains(answer, []byte(id)), !bytes.Contains(answer, []byte(text)):
		return fmt.Errorf("a wrong answer: %.200s", answer)
	}
	return nil
}

// speed holds the measurements of a peer under a load: medians of its rounds.
type speed struct {
	load                 string
	direct, perSecond    float64
	share                float64 // of the direct connection's, in the same round
	p50, p99             float64 // ms
	directP50, directP99 float64 // ms
	cpu                  float64 // µs a call
	calls, failed        int
	err                  error // it could not be measured
	failure              error // of one of the failed calls
}

// measure puts every load on a peer, in rounds that alternate with the direct
// connection to the same kind of upstream.
func measure(ctx context.Context, run *running, self string, rounds int, per time.Duration) []speed {
	var out []speed
	for _, c := range loadCases {
		s, err := measureCase(ctx, run, self, c, rounds, per)
		s.load, s.err = c.name, err
		out = append(out, s)
	}
	return out
}

func measureCase(ctx context.Context, run *running, self string, c loadCase, rounds int, per time.Duration) (s speed, err error) {
	direct, err := openLoader(ctx, endpoint{base: "http://" + run.up.addr, path: "/mcp"}, c.sessions)
	if err != nil {
		return s, fmt.Errorf("direct: %w", err)
	}
	defer direct.close()
	through, err := openLoader(ctx, run.to, c.sessions)
	if err != nil {
		return s, err
	}
	defer through.close()
	var ds, ps, shares, p50, p99, dp50, dp99, cpus []float64
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	for n := range rounds + 1 { // the first warms up
		d := per
		if n == 0 {
			d = per / 3
		}
		dr, err := direct.run(ctx, c, d)
		if err != nil {
			return s, fmt.Errorf("direct: %w", err)
		}
		before, err := run.usage(self)
		if err != nil {
			return s, err
		}
		pr, err := through.run(ctx, c, d)
		s.failed += pr.failed
		if pr.failure != nil {
			s.failure = pr.failure
		}
		if err != nil {
			return s, err
		}
		after, err := run.usage(self)
		if err != nil {
			return s, err
		}
		if n == 0 {
			continue
		}
		s.calls += pr.calls
		ds, ps, shares = append(ds, dr.perSecond), append(ps, pr.perSecond), append(shares, pr.perSecond/dr.perSecond)
		p50, p99 = append(p50, ms(load.Quantile(pr.latencies, .5))), append(p99, ms(load.Quantile(pr.latencies, .99)))
		dp50, dp99 = append(dp50, ms(load.Quantile(dr.latencies, .5))), append(dp99, ms(load.Quantile(dr.latencies, .99)))
		cpus = append(cpus, float64((after.cpu-before.cpu).Microseconds())/float64(pr.calls))
	}
	s.direct, s.perSecond, s.share, s.cpu = load.Median(ds), load.Median(ps), load.Median(shares), load.Median(cpus)
	s.p50, s.p99, s.directP50, s.directP99 = load.Median(p50), load.Median(p99), load.Median(dp50), load.Median(dp99)
	return s, nil
}
