//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/yaya-ai/yaya/internal/bench/load"
)

// observed measures what telemetry costs the relay: one yaya without it and one that records 1 %
// of the calls, in alternating rounds.
func observed(bin, dir string, rounds int, per time.Duration) error {
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer collector.Close()
	open := func(name string, env ...string) (*daemon, error) {
		place := filepath.Join(dir, name)
		if err := os.MkdirAll(place, 0o700); err != nil {
			return nil, err
		}
		d, _, err := start(bin, place, map[string]any{"stdio": map[string]any{"command": self(), "args": []string{"-fixture", "stdio"}}}, env...)
		return d, err
	}
	without, err := open("off", "OTEL_SDK_DISABLED=true")
	if err != nil {
		return err
	}
	defer without.stop()
	with, err := open("on", "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.01")
	if err != nil {
		return err
	}
	defer with.stop()
	fmt.Println("Telemetry: calls over stdio, 64 B, with OpenTelemetry (1 % of the traces, metrics every minute) as a share of those without.")
	fmt.Println()
	fmt.Println("| in flight | off/s | on at 1 %/s | share | CPU µs/call off | on | allocs/call off | on |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for _, inFlight := range numbers(inFlights) {
		var off, on measured
		for range rounds + 1 { // the first warms up
			for d, m := range map[*daemon]*measured{without: &off, with: &on} {
				if err := m.round(d, inFlight, per); err != nil {
					return err
				}
			}
		}
		share := make([]float64, rounds)
		for i := range share {
			share[i] = on.perSecond[i+1] / off.perSecond[i+1]
		}
		fmt.Printf("| %d | %.0f | %.0f | **%.3f** | %.1f | %.1f | %.1f | %.1f |\n", inFlight, load.Median(off.perSecond[1:]), load.Median(on.perSecond[1:]), load.Median(share),
			load.Median(off.cpu[1:]), load.Median(on.cpu[1:]), load.Median(off.allocs[1:]), load.Median(on.allocs[1:]))
	}
	fmt.Println()
	return nil
}

// measured are the figures of each round.
type measured struct{ perSecond, cpu, allocs []float64 }

func (m *measured) round(d *daemon, inFlight int, per time.Duration) error {
	t := &target{addr: d.addr, path: "/mcp", tool: "stdio__echo"}
	if err := t.open(); err != nil {
		return err
	}
	a0, c0 := d.allocs(), d.cpu()
	l, err := t.run(inFlight, 64, per)
	if err != nil {
		return err
	}
	calls := float64(l.calls)
	m.perSecond = append(m.perSecond, l.perSecond)
	m.cpu = append(m.cpu, float64((d.cpu()-c0).Microseconds())/calls)
	m.allocs = append(m.allocs, (d.allocs()-a0)/calls)
	return nil
}
