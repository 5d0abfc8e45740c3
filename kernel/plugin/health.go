package plugin

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Health is a state of health.
type Health string

// The states, from good to bad.
const (
	Healthy  Health = "ok"
	Degraded Health = "degraded"
	Failing  Health = "failed"
)

// HealthCheck is the result of one check.
type HealthCheck struct {
	Name    string `json:"name"`
	Status  Health `json:"status"`
	Message string `json:"message"`
}

// HealthReport is a plugin's report about itself.
type HealthReport struct {
	Status  Health        `json:"status"`
	Summary string        `json:"summary"`
	Details []HealthCheck `json:"details,omitempty"`
}

// HealthChecker is implemented by plugins that can report their health. A check is
// quick, calls no model and no third party, changes nothing, and obeys ctx.
type HealthChecker interface {
	HealthCheck(ctx context.Context, c Context) HealthReport
}

// Diagnosis is one row of [Registry.Doctor].
type Diagnosis struct {
	Plugin string `json:"plugin"`
	HealthReport
}

// NoChecks is the summary of a loaded plugin that is not a [HealthChecker].
const NoChecks = "no checks registered"

// DefaultCheckTimeout is how long doctor waits for one plugin.
const DefaultCheckTimeout = 3 * time.Second

// Doctor checks the health of all plugins concurrently, and waits at most timeout
// for each. A plugin that does not answer is degraded; one that panics or could not
// be loaded has failed.
func (r *Registry) Doctor(ctx context.Context, timeout time.Duration) []Diagnosis {
	r.mu.Lock()
	all := slices.Clone(r.order)
	r.mu.Unlock()
	out := make([]Diagnosis, len(all))
	var wg sync.WaitGroup
	for i, l := range all {
		wg.Go(func() { out[i] = Diagnosis{l.manifest.Name, r.examine(ctx, l, timeout)} })
	}
	wg.Wait()
	return out
}

func (r *Registry) examine(ctx context.Context, l *loaded, timeout time.Duration) HealthReport {
	h := r.checkOf(ctx, l, timeout)
	r.mu.Lock()
	stale := l.stale
	r.mu.Unlock()
	var more []HealthCheck
	if stale != "" {
		more = append(more, HealthCheck{Name: "changed files", Status: Degraded, Message: "they were not loaded: " + stale})
	}
	if more = append(more, r.wrongSettings(l.manifest)...); len(more) > 0 {
		h.Details = append(slices.Clone(h.Details), more...)
		if h.Status == Healthy {
			h.Status = Degraded
		}
	}
	return h
}

// checkOf checks the plugin as it is.
func (r *Registry) checkOf(ctx context.Context, l *loaded, timeout time.Duration) HealthReport {
	r.mu.Lock()
	status, failure := l.status, l.failure
	r.mu.Unlock()
	if status != Loaded {
		h := HealthReport{Status: Failing, Summary: string(status)}
		if failure != "" {
			h.Summary += ": " + failure
		}
		if status == Unloaded {
			h.Status = Degraded
		}
		return h
	}
	hc, ok := l.plugin.(HealthChecker)
	if !ok {
		return HealthReport{Status: Healthy, Summary: NoChecks}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	done := make(chan HealthReport, 1)
	// Not waited for: a check that does not obey ctx must not hold up a shutdown.
	go func() {
		defer func() {
			if v := recover(); v != nil {
				done <- HealthReport{Status: Failing, Summary: fmt.Sprintf("the check panicked: %v", v)}
			}
		}()
		done <- hc.HealthCheck(ctx, l.ctx)
	}()
	select {
	case h := <-done:
		switch h.Status {
		case Healthy, Degraded, Failing:
		default:
			return HealthReport{Status: Failing, Summary: fmt.Sprintf("the check answered with status %q", h.Status)}
		}
		return r.concealed(h)
	case <-ctx.Done():
		return HealthReport{Status: Degraded, Summary: fmt.Sprintf("no answer within %v", timeout)}
	}
}

// concealed returns a report without the secrets in it.
func (r *Registry) concealed(h HealthReport) HealthReport {
	s := r.cfg.Secrets
	h.Summary = s.ConcealString(h.Summary)
	h.Details = slices.Clone(h.Details)
	for i := range h.Details {
		h.Details[i].Name, h.Details[i].Message = s.ConcealString(h.Details[i].Name), s.ConcealString(h.Details[i].Message)
	}
	return h
}

// Worst returns the worst state among diagnoses, ok when there are none.
func Worst(ds []Diagnosis) Health {
	rank := []Health{Healthy, Degraded, Failing}
	worst := 0
	for _, d := range ds {
		worst = max(worst, slices.Index(rank, d.Status))
	}
	return rank[worst]
}
