//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// results are the figures of a run, for files and for comparisons.
type results struct {
	Relay     []relayRow  `json:"relay,omitempty"`
	Secure    []secureRow `json:"https,omitempty"`
	LoadedRSS float64     `json:"loaded_rss_mb,omitempty"`
	Start     []startRow  `json:"start,omitempty"`
}

// relayRow is a line of the relay's table. Shares are of the direct connection's calls per second.
type relayRow struct {
	Upstream        string  `json:"upstream"`
	InFlight        int     `json:"in_flight"`
	Size            int     `json:"size"`
	DirectPerSecond float64 `json:"direct_per_second"`
	PerSecond       float64 `json:"per_second"`
	Share           float64 `json:"share"`
	ByHand          float64 `json:"by_hand"`
	Reverse         float64 `json:"reverse"`
	TCPCopy         float64 `json:"tcp_copy"`
	P50             float64 `json:"p50"` // multiples of the direct connection's
	P99             float64 `json:"p99"`
	CPU             float64 `json:"cpu_us"`
	Allocs          float64 `json:"allocs"`
}

// startRow is a line of the table of starts.
type startRow struct {
	Servers   int     `json:"servers"`
	Ready     float64 `json:"ready_ms"`
	RSS       float64 `json:"rss_mb"`
	Anonymous float64 `json:"anonymous_mb"`
}

// goals are the shares that are wanted with 64 calls in flight, by upstream and size.
var goals = map[string]map[int]float64{
	"http":  {64: .52, 4 << 10: .55, 256 << 10: .45},
	toStdio: {64: .68, 4 << 10: .85, 256 << 10: .50},
}

func (r relayRow) String() string {
	goal := ""
	if g := goals[r.Upstream][r.Size]; g > 0 && r.InFlight == 64 {
		goal = fmt.Sprintf("%.2f", g)
	}
	return fmt.Sprintf("| %s | %d | %s | %.0f | %.0f | **%.2f** | %s | %.2f | %.2f | %.2f | %.1f | %.1f | %.1f | %.0f |",
		r.Upstream, r.InFlight, sizeName(r.Size), r.DirectPerSecond, r.PerSecond, r.Share, goal, r.ByHand, r.Reverse, r.TCPCopy, r.P50, r.P99, r.CPU, r.Allocs)
}

// noise is by how much a figure may differ on the same machine without a cause.
const noise = .15

// compared returns a table of the figures that both runs have. It marks those that are worse by
// more than noise.
func (r results) compared(base results) string {
	var b strings.Builder
	b.WriteString("\n| beside the baseline | before | now | change | |\n|---|---|---|---|---|\n")
	line := func(name string, was, is float64, moreIsBetter bool) {
		if was == 0 || is == 0 {
			return // not measured in one of them
		}
		change := is/was - 1
		worse, mark := change, ""
		if moreIsBetter {
			worse = -change
		}
		if worse > noise {
			mark = "worse"
		}
		fmt.Fprintf(&b, "| %s | %.3g | %.3g | %+.0f %% | %s |\n", name, was, is, 100*change, mark)
	}
	for _, is := range r.Relay {
		for _, was := range base.Relay {
			if is.Upstream == was.Upstream && is.InFlight == was.InFlight && is.Size == was.Size {
				name := fmt.Sprintf("%s, %d in flight, %s: ", is.Upstream, is.InFlight, sizeName(is.Size))
				line(name+"share of direct", was.Share, is.Share, true)
				line(name+"share of the relay by hand", was.Share/max(was.ByHand, .01), is.Share/max(is.ByHand, .01), true)
				line(name+"allocations a call", was.Allocs, is.Allocs, false)
			}
		}
	}
	for _, is := range r.Secure {
		for _, was := range base.Secure {
			if is.Name == was.Name && is.InFlight == was.InFlight && is.Size == was.Size {
				line(fmt.Sprintf("HTTPS %s, %s: share of the reverse proxy", is.Name, sizeName(is.Size)), was.Share/max(was.Reverse, .01), is.Share/max(is.Reverse, .01), true)
			}
		}
	}
	line("RSS after the relay's load, MB", base.LoadedRSS, r.LoadedRSS, false)
	for _, is := range r.Start {
		for _, was := range base.Start {
			if is.Servers == was.Servers {
				name := fmt.Sprintf("start with %d servers: ", is.Servers)
				line(name+"ready, ms", was.Ready, is.Ready, false)
				line(name+"anonymous memory, MB", was.Anonymous, is.Anonymous, false)
			}
		}
	}
	return b.String()
}

func readResults(file string) (r results, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

func (r results) write(file string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644) //nolint:gosec // figures
}
