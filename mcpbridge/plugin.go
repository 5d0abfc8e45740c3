package mcpbridge

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// Manifest implements [plugin.Plugin].
func (*Bridge) Manifest() plugin.Manifest {
	return plugin.Manifest{
		Name: Name, Version: "0.1.0", Category: plugin.Tool,
		ConfigSchema: json.RawMessage(`{"type":"object","properties":{"search_embeddings":{"type":"string"}}}`),
	}
}

// Subscriptions implements [plugin.Plugin]: the bridge's tools are called through
// the registry of tools.
func (*Bridge) Subscriptions() []string { return nil }

// OnEvent implements [plugin.Plugin].
func (*Bridge) OnEvent(context.Context, event.Event, plugin.Context) error { return nil }

// OnLoad implements [plugin.Plugin]. The configured servers start in the
// background, in parallel.
func (b *Bridge) OnLoad(ctx context.Context, c plugin.Context) error {
	b.mu.Lock()
	b.emit = c.Emit
	b.mu.Unlock()
	if err := b.registerResources(c); err != nil {
		return err
	}
	for _, inv := range b.cfg.Invalid {
		b.Invalid(inv)
	}
	for _, s := range b.cfg.Servers {
		for _, w := range b.Add(ctx, s) {
			b.cfg.Log.Warn().Msg(w)
		}
	}
	return nil
}

// OnUnload implements [plugin.Plugin]. It stops every server and waits for it.
func (b *Bridge) OnUnload(ctx context.Context, _ plugin.Context) error {
	if b.host == nil {
		return nil
	}
	return b.host.Close(ctx)
}

// HealthCheck implements [plugin.HealthChecker].
func (b *Bridge) HealthCheck(context.Context, plugin.Context) plugin.HealthReport {
	h := plugin.HealthReport{Status: plugin.Healthy}
	usable := 0
	worse := func(name string, status plugin.Health, msg string) {
		if h.Status != plugin.Failing {
			h.Status = status
		}
		h.Details = append(h.Details, plugin.HealthCheck{Name: name, Status: status, Message: msg})
	}
	b.mu.Lock()
	refused := b.refused
	b.mu.Unlock()
	for _, file := range slices.Sorted(maps.Keys(refused)) {
		worse(file, plugin.Failing, "not reloaded, so its previous content stays in force: "+feature.Clean(b.masked(refused[file]), 300))
	}
	for _, inv := range b.InvalidServers() {
		worse(inv.Name, plugin.Failing, feature.Clean(inv.Err.Error(), 300))
	}
	for _, st := range b.host.Status() {
		if st.State.Usable() {
			usable++
			continue
		}
		stderr, status := "", plugin.Degraded
		if st.State == feature.Failed || st.State == feature.Starting && st.Reason != "" { // it counts as failed until it works
			status = plugin.Failing
		}
		if d, ok := st.Detail.(upstream.Detail); ok && d.Stderr != "" && st.State == feature.Failed {
			stderr = "\n" + d.Stderr
		}
		why := feature.Clean(b.masked(cmp.Or(st.Reason, st.LastError)), 300)
		if st.State != feature.Failed || why == "" { // otherwise the status contains it
			why = strings.TrimSuffix(string(st.State)+": "+why, ": ")
		}
		worse(st.ID, status, why+stderr)
	}
	h.Summary = worded.Count(usable, "server works", "servers work")
	if n := len(h.Details) - len(refused); n > 0 {
		h.Summary += ", " + worded.Count(n, "does not", "do not")
	}
	for _, file := range slices.Sorted(maps.Keys(refused)) {
		h.Summary += "; " + feature.Clean(file, 300) + " has a mistake and was not reloaded"
	}
	return h
}
