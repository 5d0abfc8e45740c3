//go:build unix

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/bench/load"
)

// hops holds the addresses that the relay of one kind of upstream is compared with.
type hops struct{ direct, tcp, reverse, byHand string }

// startHops starts the upstream over HTTP, and what goes to it.
func startHops(ctx context.Context) (map[string]hops, error) {
	var err error
	start := func(args ...string) (addr string) {
		if err == nil {
			addr, err = spawn(ctx, args...)
		}
		return addr
	}
	direct := start("-fixture", "http")
	h := hops{direct: direct, tcp: start("-fixture", "tcp", "-to", direct), reverse: start("-fixture", "reverse", "-to", "http://"+direct), byHand: start("-fixture", "relay", "-to", direct)}
	overStdio := h
	overStdio.byHand = start("-fixture", "relay", "-to", toStdio)
	return map[string]hops{"http": h, toStdio: overStdio}, err
}

func relay(bin, dir string, rounds int, per time.Duration, into *results) error {
	defer endSpawned()
	upstreams, err := startHops(context.Background())
	if err != nil {
		return err
	}
	d, _, err := start(bin, dir, map[string]any{
		"http":  map[string]any{"type": "http", "url": "http://" + upstreams["http"].direct + "/mcp"},
		toStdio: map[string]any{"command": self(), "args": []string{"-fixture", "stdio"}},
	})
	if err != nil {
		return err
	}
	defer d.stop()

	var small []relayRow // whose profiles follow
	fmt.Println("Relay: calls per second as a share of the direct HTTP connection; latency as a multiple of its. TCP copy is the limit for one hop, by hand a relay without rules that is written for this comparison, and reverse proxy the standard library's.")
	fmt.Println()
	fmt.Println("| upstream | in flight | size | direct/s | yaya/s | yaya | goal | by hand | reverse proxy | TCP copy | p50 × | p99 × | CPU µs/call | allocs/call |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	for kind := range strings.SplitSeq(kinds, ",") {
		for _, inFlight := range numbers(inFlights) {
			for _, size := range numbers(sizes) {
				r, err := measure(d, upstreams[kind], relayRow{Upstream: kind, InFlight: inFlight, Size: size}, rounds, per)
				if err != nil {
					return err
				}
				into.Relay = append(into.Relay, r)
				fmt.Println(r)
				if r.InFlight == 64 && r.Size == 64 {
					small = append(small, r)
				}
			}
		}
	}
	into.LoadedRSS, _ = d.memory()
	fmt.Printf("\nRSS after this load: %.1f MB\n", into.LoadedRSS)
	for _, r := range small {
		if err := eras(d, r, rounds, per); err != nil {
			return err
		}
		if err := profile(d, dir, r); err != nil {
			return err
		}
	}
	return nil
}

// eras prints how many calls a modern client makes for each of a legacy one, from the median of
// alternating rounds.
func eras(d *daemon, r relayRow, rounds int, per time.Duration) error {
	legacy := &target{addr: d.addr, path: "/mcp", tool: r.Upstream + "__echo"}
	modern := &target{addr: d.addr, path: "/mcp", tool: r.Upstream + "__echo", modern: true}
	if err := legacy.open(); err != nil {
		return err
	}
	var shares []float64
	for range rounds {
		l, err := legacy.run(r.InFlight, r.Size, per)
		if err != nil {
			return err
		}
		m, err := modern.run(r.InFlight, r.Size, per)
		if err != nil {
			return err
		}
		shares = append(shares, m.perSecond/l.perSecond)
	}
	fmt.Printf("\nA modern client (%s, %d in flight, %s): **%.2f** of a legacy one's calls (goal 0.90)\n", r.Upstream, r.InFlight, sizeName(r.Size), load.Median(shares))
	return nil
}

// measure fills in a row, from the medians of rounds in which everything has its turn.
func measure(d *daemon, h hops, r relayRow, rounds int, per time.Duration) (relayRow, error) {
	direct := &target{addr: h.direct, path: "/mcp", tool: "echo"}
	through := &target{addr: d.addr, path: "/mcp", tool: r.Upstream + "__echo"}
	if err := through.open(); err != nil {
		return r, err
	}
	if _, err := through.run(r.InFlight, r.Size, per/4); err != nil { // warm up
		return r, err
	}
	samples := map[*float64][]float64{}
	add := func(to *float64, x float64) { samples[to] = append(samples[to], x) }
	for range rounds {
		dl, err := direct.run(r.InFlight, r.Size, per)
		if err != nil {
			return r, err
		}
		for at, share := range map[string]*float64{h.tcp: &r.TCPCopy, h.reverse: &r.Reverse, h.byHand: &r.ByHand} {
			l, err := (&target{addr: at, path: "/mcp", tool: "echo", lenient: true}).run(r.InFlight, r.Size, per)
			if err != nil {
				return r, err
			}
			add(share, l.perSecond/dl.perSecond)
		}
		a0, c0 := d.allocs(), d.cpu()
		yl, err := through.run(r.InFlight, r.Size, per)
		if err != nil {
			return r, err
		}
		calls := float64(yl.calls)
		add(&r.CPU, float64((d.cpu()-c0).Microseconds())/calls)
		add(&r.Allocs, (d.allocs()-a0)/calls)
		add(&r.DirectPerSecond, dl.perSecond)
		add(&r.PerSecond, yl.perSecond)
		add(&r.Share, yl.perSecond/dl.perSecond)
		add(&r.P50, float64(yl.quantile(.5))/float64(dl.quantile(.5)))
		add(&r.P99, float64(yl.quantile(.99))/float64(dl.quantile(.99)))
	}
	for to, xs := range samples {
		*to = load.Median(xs)
	}
	return r, nil
}

func numbers(list string) []int {
	var out []int
	for s := range strings.SplitSeq(list, ",") {
		if n, err := strconv.Atoi(s); err == nil && n > 0 {
			out = append(out, n)
		}
	}
	return out
}

func sizeName(n int) string {
	if n >= 1<<10 {
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}
