//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	yaya   string
	fault  string
	rounds int
	seed   uint64
	lasts  time.Duration
	slack  time.Duration
	json   bool
	inside string
}

func main() {
	if len(os.Args) > 1 {
		if part, ok := parts[os.Args[1]]; ok {
			exit(part(os.Args[2:]))
		}
	}
	var o options
	flag.StringVar(&o.yaya, "yaya", "bin/yaya", "the binary to run")
	flag.StringVar(&o.fault, "fault", "", "run this fault alone; \"list\" prints their names")
	flag.IntVar(&o.rounds, "rounds", 2, "rounds of each fault; each has a cluster of its own")
	flag.Uint64Var(&o.seed, "seed", 0, "seed of the first round; the next rounds count on from it (default random)")
	flag.DurationVar(&o.lasts, "for", 12*time.Second, "how long a fault lasts")
	flag.DurationVar(&o.slack, "slack", 0, "what a busy machine may add to the limits of a revocation, and how long calls may fail there")
	flag.BoolVar(&o.json, "json", false, "print JSON")
	flag.StringVar(&o.inside, "inside", "", "`folder` of the round that runs in these namespaces (the bench sets it)")
	flag.Parse()
	if o.seed == 0 {
		o.seed = uint64(rand.Uint32())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exit(bench(ctx, o))
}

// parts are the programs of a machine beside yaya, the overlay that the Makefile builds with, and three measures.
var parts = map[string]func(args []string) error{"nats": serveNATS, "gate": serveGate, "tool": serveTool, "overlay": writeOverlay, "fanout": fanOut, "failover": failOver, "passing": passing}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "clusterbench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// errFindings ends a run that has found something.
var errFindings = errors.New("the cluster broke a promise; run the seed again with -fault NAME -seed SEED -rounds 1")

func bench(ctx context.Context, o options) error {
	if o.inside != "" {
		return playInside(ctx, o)
	}
	run := faults
	if o.fault == "list" {
		for _, f := range faults {
			fmt.Println(f.name)
		}
		return nil
	} else if o.fault != "" {
		f, err := faultNamed(o.fault)
		if err != nil {
			return err
		}
		run = []fault{f}
	}
	round, why := runInside, cannotIsolate()
	if why != "" {
		round = playHere
		fmt.Fprintf(os.Stderr, "clusterbench: the machines share a network and a disk: %s\n", why)
	}
	var rows []row
	for _, f := range run {
		one := row{Fault: f.name}
		if f.isolated {
			one.Skipped = why
		}
		if f.steps {
			one.Skipped = cannotStep(o.yaya)
		}
		for n := 0; n < o.rounds && one.Skipped == ""; n++ {
			seed := o.seed + uint64(n) //nolint:gosec // a count
			fmt.Fprintf(os.Stderr, "%s, seed %d\n", f.name, seed)
			p, err := round(ctx, o, f, seed)
			if err != nil {
				return fmt.Errorf("%s, seed %d: %w", f.name, seed, err)
			}
			one.add(p, seed)
		}
		rows = append(rows, one)
	}
	return report(os.Stdout, rows, o.json)
}

func report(out io.Writer, rows []row, asJSON bool) error {
	found := false
	for _, w := range rows {
		found = found || len(w.Findings) > 0
	}
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		if err := enc.Encode(rows); err != nil {
			return err
		}
	} else if err := table(out, rows); err != nil {
		return err
	}
	if found {
		return errFindings
	}
	return nil
}
