package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// outcome keeps count of a plugin's failures.
func (r *Registry) outcome(l *loaded, o bus.Outcome) {
	if o.Err == nil {
		r.mu.Lock()
		l.failures = 0
		r.mu.Unlock()
		return
	}
	// Nobody has to wait for this plugin's answer any longer.
	if serves[l.manifest.Category] == o.Event.Kind {
		r.cfg.Bus.Fail(o.Event.ID, l.manifest.Name, fmt.Errorf("plugin %s failed: %s", l.manifest.Name, firstLine(o.Err)))
	}
	r.cfg.Log.Error().Err(o.Err).Str("plugin", l.manifest.Name).Str("kind", o.Event.Kind).Msg("a plugin failed")
	// A failure to handle the report of a failure is not reported again.
	if o.Event.Kind != event.PluginFailed.Name() && o.Event.Kind != event.KernelFailed.Name() {
		r.announce(l.manifest.Name, o.Err)
	}
	r.strike(l, firstLine(o.Err))
}

// strike counts a failure, and starts the unloading at the threshold.
func (r *Registry) strike(l *loaded, reason string) {
	limit := cmp.Or(r.cfg.Config.Int("plugins.max_failures"), 3)
	r.mu.Lock()
	l.failures++
	over := l.failures >= limit && l.status == Loaded
	if over {
		l.failure = worded.Count(l.failures, "failure", "failures in a row, the last") + ": " + r.cfg.Secrets.ConcealString(reason)
	}
	r.mu.Unlock()
	if over {
		r.background(func() {
			if err := r.unload(l, Failed); err != nil && !errors.Is(err, ErrUnloading) {
				r.cfg.Log.Error().Err(err).Str("plugin", l.manifest.Name).Msg("a plugin could not be unloaded cleanly")
			}
		})
	}
}

// lagging counts as a failure of a plugin that did not keep up with its events; it
// continues with new ones.
func (r *Registry) lagging(l *loaded, kinds []string) {
	r.announce(l.manifest.Name, bus.ErrLagging)
	r.mu.Lock()
	l.subs = nil
	again := l.status == Loaded
	r.mu.Unlock()
	r.strike(l, bus.ErrLagging.Error())
	if again {
		if err := r.subscribe(l, kinds); err != nil {
			r.cfg.Log.Error().Err(err).Str("plugin", l.manifest.Name).Msg("a plugin could not be subscribed again")
		}
	}
}

// unload stops a plugin and leaves it in the given state.
func (r *Registry) unload(l *loaded, end State) error {
	r.mu.Lock()
	if l.status != Loaded {
		defer r.mu.Unlock()
		return fmt.Errorf("plugin %s is %s: %w", l.manifest.Name, l.status, ErrUnloading)
	}
	l.status = Unloading
	r.mu.Unlock()
	if end == Unloaded {
		r.drain(l)
	} else {
		r.unsubscribe(l)
	}
	l.ctx.withdraw()
	err := r.onUnload(l)
	r.mu.Lock()
	l.status = end
	r.mu.Unlock()
	_, perr := bus.Publish(r.kernel, event.PluginWasRemoved, event.KernelSession, event.PluginRemoved{Name: l.manifest.Name})
	r.report(perr)
	return err
}

// drain delivers the earlier events to a plugin that is unloaded in good order.
func (r *Registry) drain(l *loaded) {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	r.mu.Lock()
	subs := l.subs
	l.subs = nil
	r.mu.Unlock()
	for _, s := range subs {
		s.Drain(ctx)
	}
}

func (r *Registry) onUnload(l *loaded) error {
	ctx, cancel := context.WithTimeout(context.Background(), unloadTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				done <- fmt.Errorf("plugin %s: unload: panic: %v", l.manifest.Name, v)
			}
		}()
		done <- l.plugin.OnUnload(ctx, l.ctx)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("plugin %s did not unload within %v", l.manifest.Name, unloadTimeout)
	}
}
