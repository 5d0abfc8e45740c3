package admin

import (
	"context"
	"slices"
	"time"

	"github.com/yaya-ai/yaya/gateway/wire"
)

// readEvery is how often the metrics are read.
const readEvery = 5 * time.Second

// Reading is how yaya was doing at a moment. Counters count from its start.
type Reading struct {
	Time       time.Time `json:"ts"`
	Calls      float64   `json:"calls" doc:"of tools, since the start"`
	Errors     float64   `json:"errors"`
	P50MS      float64   `json:"p50_ms" doc:"of all calls"`
	P95MS      float64   `json:"p95_ms"`
	Servers    float64   `json:"servers_ready"`
	Clients    float64   `json:"mcp_sessions"`
	Sockets    float64   `json:"websockets"`
	Goroutines float64   `json:"goroutines"`
	Memory     float64   `json:"rss_bytes"`
	CPU        float64   `json:"cpu_seconds" doc:"since the start"`
	TokensIn   float64   `json:"tokens_in" doc:"that models were sent since the start, cached ones among them"`
	TokensOut  float64   `json:"tokens_out" doc:"that models have written since the start"`
}

// window keeps readings of a time: one each so often, and at most so many. Since counters
// only grow, the rate between two of them is right however far they are apart.
type window struct {
	name     string
	every    time.Duration
	kept     int
	readings []Reading
}

func newWindows() []window {
	return []window{
		{name: "30m", every: readEvery, kept: 360},
		{name: "24h", every: 12 * time.Minute, kept: 120},
		{name: "7d", every: 84 * time.Minute, kept: 120},
		{name: "30d", every: 6 * time.Hour, kept: 120},
	}
}

func (w *window) add(r Reading) {
	// A ticker may be a little early.
	if n := len(w.readings); n > 0 && r.Time.Sub(w.readings[n-1].Time) < w.every-readEvery/2 {
		return
	}
	w.readings = append(w.readings, r)
	if n := len(w.readings) - w.kept; n > 0 {
		w.readings = slices.Delete(w.readings, 0, n)
	}
}

// Sample is reading on dashboard:metrics.
type Sample struct {
	Type    string  `json:"type"` // "reading"
	Reading Reading `json:"reading"`
}

func (l *Live) read(ctx context.Context) {
	t := time.NewTicker(readEvery)
	defer t.Stop()
	for {
		r := l.cfg.Read()
		l.mu.Lock()
		for i := range l.readings {
			l.readings[i].add(r)
		}
		l.mu.Unlock()
		l.cfg.Server.Publish(metricsTopic, wire.Event{Name: "reading", Payload: Sample{"reading", r}})
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

// Readings are the readings that are kept of a window, oldest first, and the newest one.
func (l *Live) Readings(name string) []Reading {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := []Reading{}
	for _, w := range l.readings {
		if w.name == name {
			out = append(out, w.readings...)
		}
	}
	if all := l.readings[0].readings; len(all) > 0 {
		if last := all[len(all)-1]; len(out) == 0 || out[len(out)-1].Time.Before(last.Time) {
			out = append(out, last)
		}
	}
	return out
}
