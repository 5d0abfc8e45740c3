//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	yaya, cache, write, only string
	rounds                   int
	per                      time.Duration
	given                    []string
}

func main() {
	var o options
	where := flag.String("upstream", "", "be the upstream server: stdio, or serve HTTP at this loopback address")
	flag.StringVar(&o.yaya, "yaya", "bin/yaya", "the yaya to measure")
	flag.StringVar(&o.cache, "cache", ".cache/peers-bench", "the folder that peers are installed in")
	flag.StringVar(&o.write, "write", "", "write the report to this file, instead of to stdout")
	flag.StringVar(&o.only, "only", "", "run only the peers whose names contain one of these, separated by commas")
	flag.IntVar(&o.rounds, "rounds", 3, "alternating rounds of each load; the median counts")
	flag.DurationVar(&o.per, "time", time.Second, "time of one round")
	flag.Func("peer", "another peer: name[:path]=command with {port}, {url}, {command} or {config}; may be given several times", func(s string) error {
		_, err := given(s)
		o.given = append(o.given, s)
		return err
	})
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := func() error {
		if *where != "" {
			return runUpstream(*where)
		}
		return bench(ctx, o)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peerbench:", err)
		os.Exit(1) //nolint:gocritic // everything that was started has ended
	}
}

// result holds all findings about a peer before one kind of upstream.
type result struct {
	peer   *peer
	kind   string
	err    error // it was not measured, and why
	checks []outcome
	speeds []speed
	took   time.Duration
	rss    int64
}

func bench(ctx context.Context, o options) (err error) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return errors.New("peers are measured on Linux: /proc is needed")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cache, err := filepath.Abs(o.cache)
	if err != nil {
		return err
	}
	bin, err := filepath.Abs(o.yaya)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "peerbench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	all := append([]*peer{yaya(bin, version(ctx, bin))}, peers()...)
	for _, g := range o.given {
		p, err := given(g)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	if o.only != "" {
		all = slices.DeleteFunc(all, func(p *peer) bool {
			return !slices.ContainsFunc(strings.Split(o.only, ","), func(s string) bool { return strings.Contains(p.name, s) })
		})
	}
	begun := time.Now()
	rep := report{machine: machine(), begun: begun, loadBefore: loadAverage(), rounds: o.rounds, per: o.per}
	r := &runner{self: self, dir: dir, in: &installer{dir: cache, node: nodeProgram()}}
	if rep.direct, err = checkDirect(ctx, self); err != nil {
		return fmt.Errorf("the upstream alone: %w", err)
	}
	for _, p := range all {
		rep.results = append(rep.results, r.whole(ctx, p, o)...)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	rep.loadAfter, rep.took = loadAverage(), time.Since(begun)
	if o.write == "" {
		_, err = os.Stdout.WriteString(rep.markdown())
		return err
	}
	return os.WriteFile(o.write, []byte(rep.markdown()), 0o644) //nolint:gosec // a document
}

// progressf says on stderr how far it is.
func progressf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// whole installs a peer and measures it before every kind of upstream it can take.
func (r *runner) whole(ctx context.Context, p *peer, o options) []result {
	if p.why != "" {
		return []result{{peer: p, err: errors.New(p.why)}}
	}
	progressf("%s %s: install", p.name, p.version)
	if err := r.in.ensure(ctx, p); err != nil {
		progressf("%s: %v", p.name, err)
		return []result{{peer: p, err: fmt.Errorf("not installed: %w", err)}}
	}
	var out []result
	for _, kind := range p.upstreams {
		if ctx.Err() != nil {
			return out
		}
		res := r.one(ctx, p, kind, o)
		if res.err != nil {
			progressf("%s, %s: %v", p.name, kind, res.err)
		}
		out = append(out, res)
	}
	return out
}

// one measures a peer before one kind of upstream: the checks, and in a new
// process the load.
func (r *runner) one(ctx context.Context, p *peer, kind string, o options) (res result) {
	res = result{peer: p, kind: kind}
	progressf("%s, %s upstream: checks", p.name, kind)
	run, err := r.start(ctx, p, kind)
	if err != nil {
		res.err = fmt.Errorf("not started: %w", err)
		return res
	}
	res.checks, err = runChecks(ctx, run.to)
	if err = errors.Join(err, run.isLocal(), run.stop()); err != nil {
		res.err = err
		return res
	}
	first := run.took
	progressf("%s, %s upstream: load", p.name, kind)
	if run, err = r.start(ctx, p, kind); err != nil {
		res.err = fmt.Errorf("not started again: %w", err)
		return res
	}
	res.took = min(first, run.took)
	res.speeds = measure(ctx, run, r.self, o.rounds, o.per)
	u, err := run.usage(r.self)
	res.rss = u.rss
	res.err = errors.Join(err, run.isLocal(), run.stop())
	return res
}

// checkDirect runs the checks on the upstream itself. One that fails there would
// blame every gateway.
func checkDirect(ctx context.Context, self string) ([]outcome, error) {
	progressf("the upstream alone: checks")
	up, err := keep(ctx, self)
	if err != nil {
		return nil, err
	}
	defer up.stop()
	out, err := runChecks(ctx, endpoint{base: "http://" + up.addr, path: "/mcp"})
	for _, o := range out {
		if o.err != nil && !directCannot[o.check] {
			err = errors.Join(err, fmt.Errorf("%s: %w", o.check, o.err))
		}
	}
	return out, err
}

func version(ctx context.Context, bin string) string {
	out, err := exec.CommandContext(ctx, bin, "--version").Output()
	if err != nil {
		return "of this tree"
	}
	if f := strings.Fields(string(out)); len(f) > 1 {
		return f[1]
	}
	return "of this tree"
}
