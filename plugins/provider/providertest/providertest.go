// Package providertest loads a provider for its tests, with settings and an environment.
package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/fakellm"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// World is a plugin that a registry has loaded.
type World struct {
	Bus      *bus.Bus
	Registry *plugin.Registry

	t   *testing.T
	cfg *config.Store
}

// New loads the plugin with settings, whose values are JSON.
func New(t *testing.T, p plugin.Plugin, settings map[string]string) *World {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &World{t: t, Bus: bus.New(bus.Config{})}
	if w.cfg, err = config.Open(config.Options{Root: root}); err != nil {
		t.Fatal(err)
	}
	w.cfg.Bind(w.Bus)
	for k, v := range settings {
		w.Set(k, v)
	}
	if w.Registry, err = plugin.NewRegistry(plugin.Config{Bus: w.Bus, Config: w.cfg, Tools: new(tool.Registry), State: root, Log: zerolog.Nop()}); err != nil {
		t.Fatal(err)
	}
	w.Registry.Load(t.Context(), true, p)
	t.Cleanup(func() {
		if err := errors.Join(w.Registry.Stop(), w.Bus.Close(context.Background()), root.Close()); err != nil {
			t.Errorf("Stop of the plugins and Close of the bus = %v, want no error", err)
		}
	})
	return w
}

// Set changes a setting.
func (w *World) Set(key, v string) {
	w.t.Helper()
	if err := w.cfg.Set(key, json.RawMessage(v)); err != nil {
		w.t.Fatal(err)
	}
}

// Ask sends a request, with a message if it has none, and returns its one terminal event.
func (w *World) Ask(r event.LLMRequest) event.Event {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	if r.Messages == nil {
		r.Messages = []event.Message{{Role: "user", Content: "hi"}}
	}
	ev, err := bus.Request(ctx, w.Bus.Kernel(), event.LLMCallRequest, "s1", r, event.LLMCallResponse.Kind(), event.LLMCallError.Kind())
	if err != nil {
		w.t.Fatal(err)
	}
	return ev
}

// Answer sends a request and returns its answer.
func (w *World) Answer(r event.LLMRequest) event.LLMResponse {
	w.t.Helper()
	ev := w.Ask(r)
	res, ok := ev.Payload.(event.LLMResponse)
	if !ok {
		w.t.Fatalf("got %+v, want an LLMResponse", ev.Payload)
	}
	return res
}

// Serve starts a service that answers with steps.
func Serve(t *testing.T, steps ...fakellm.Step) *fakellm.Server {
	s := fakellm.New(steps...)
	t.Cleanup(s.Close)
	return s
}

// JSON returns a value as JSON.
func JSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
