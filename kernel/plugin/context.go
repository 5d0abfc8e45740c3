package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// pluginContext is the [Context] of a plugin in this process.
type pluginContext struct {
	r        *Registry
	manifest Manifest
	emitter  *bus.Emitter
	log      zerolog.Logger
	before   *pluginContext // of the plugin whose tools this one takes over; nil for none

	mu    sync.Mutex
	tools []string
}

func (c *pluginContext) Emit(kind, session string, payload any) error {
	if err := c.may(kind, session); err != nil {
		return err
	}
	raw, err := json.Marshal(payload)
	if err != nil {
		return fmt.Errorf("emit %s: %w", kind, err)
	}
	if string(raw) == "null" {
		raw = []byte("{}")
	}
	_, err = c.emitter.Emit(kind, session, raw)
	return err
}

// Request implements [Speaker].
func (c *pluginContext) Request(ctx context.Context, kind, session string, payload json.RawMessage) (event.Event, error) {
	replies, ok := answers[kind]
	if !ok {
		return event.Event{}, fmt.Errorf("plugin %s requests %s: %w: it is not a request", c.manifest.Name, kind, bus.ErrRefused)
	}
	if err := c.may(kind, session); err != nil {
		return event.Event{}, err
	}
	p, err := c.emitter.AskRaw(kind, session, payload, replies...)
	if err != nil {
		return event.Event{}, err
	}
	return p.Wait(ctx)
}

// Report implements [Speaker].
func (c *pluginContext) Report(err error) {
	c.r.mu.Lock()
	l := c.r.byName[c.manifest.Name]
	current := l != nil && l.ctx == c // otherwise it is the outcome of an earlier one of its name
	if current && err == nil {
		l.failures = 0
	}
	c.r.mu.Unlock()
	if err == nil || !current {
		return
	}
	c.log.Error().Err(err).Msg("a plugin failed")
	c.r.announce(l.manifest.Name, err)
	c.r.strike(l, firstLine(err))
}

// Fail implements [Speaker].
func (c *pluginContext) Fail(request string, err error) {
	c.r.cfg.Bus.Fail(request, c.manifest.Name, err)
}

func (c *pluginContext) may(kind, session string) error {
	if kind == event.LLMCallRequest.Name() && c.manifest.Category == Skill && c.r.spent != nil {
		if err := c.r.spent.allow(session); err != nil {
			return fmt.Errorf("plugin %s calls a model: %w", c.manifest.Name, err)
		}
	}
	if event.IsExtension(kind) || c.manifest.Category == Skill || slices.Contains(emits[c.manifest.Category], kind) {
		return nil // the bus refuses kinds that only the kernel emits
	}
	return fmt.Errorf("plugin %s emits %s: %w (%s)", c.manifest.Name, kind, ErrCategory, c.manifest.Category)
}

func (c *pluginContext) Log() *zerolog.Logger { return &c.log }

func (c *pluginContext) Config(field string) json.RawMessage {
	key := "plugin." + config.Namespace(c.manifest.Name) + "." + field
	v, err := c.r.cfg.Config.Reveal(c.get(key))
	if err != nil {
		c.log.Error().Err(err).Str("key", key).Msg("a setting refers to a secret that cannot be had, and counts as not set")
		return nil
	}
	return v
}

// enabled reports whether the plugin is switched on; that is the default.
func (c *pluginContext) enabled() bool { return c.r.enabled(c.manifest.Name) }

func (r *Registry) enabled(name string) bool {
	v, _, ok := r.cfg.Config.Get("plugin." + config.Namespace(name) + ".enabled")
	on := true
	return !ok || json.Unmarshal(v, &on) != nil || on
}

func (c *pluginContext) Kernel(key string) json.RawMessage {
	if strings.HasPrefix(key, "plugin.") || strings.HasPrefix(key, "providers.") || strings.HasPrefix(key, "_") {
		return nil // another plugin's setting
	}
	return c.get(key)
}

func (c *pluginContext) get(key string) json.RawMessage {
	v, _, ok := c.r.cfg.Config.Get(key)
	if !ok {
		return nil
	}
	return v
}

func (c *pluginContext) Providers() config.Providers { return c.r.cfg.Config.Providers() }

func (c *pluginContext) StateDir() (string, error) {
	if err := c.r.cfg.State.MkdirAll(c.manifest.Name, 0o700); err != nil {
		return "", fmt.Errorf("state directory of plugin %s: %w", c.manifest.Name, err)
	}
	return filepath.Join(c.r.cfg.State.Name(), c.manifest.Name), nil
}

func (c *pluginContext) Secrets() *masked.Secrets { return c.r.cfg.Secrets }

func (c *pluginContext) RegisterTool(t tool.Tool) error {
	if c.manifest.Category != Tool {
		return fmt.Errorf("plugin %s registers a tool: %w (%s)", c.manifest.Name, ErrCategory, c.manifest.Category)
	}
	enter := func(t tool.Tool) error { return c.r.cfg.Tools.Register(t) }
	if c.before.leave(t.Definition().Name) {
		enter = c.r.cfg.Tools.Exchange
	}
	if err := enter(t); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tools = append(c.tools, t.Definition().Name)
	return nil
}

func (c *pluginContext) RenewTool(t tool.Tool) error {
	// The lock is held so that a plugin that is unloaded meanwhile leaves no tool behind.
	c.mu.Lock()
	defer c.mu.Unlock()
	if name := t.Definition().Name; !slices.Contains(c.tools, name) {
		return fmt.Errorf("plugin %s renews the tool %s: it has not registered it", c.manifest.Name, name)
	}
	return c.r.cfg.Tools.Exchange(t)
}

// registered returns the names of the plugin's tools.
func (c *pluginContext) registered() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.tools)
}

// leave leaves a tool to a successor, and reports whether there is one of that name.
func (c *pluginContext) leave(name string) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.tools)
	c.tools = slices.DeleteFunc(c.tools, func(have string) bool { return have == name })
	return len(c.tools) < n
}

// withdraw removes the tools of a plugin that is unloaded.
func (c *pluginContext) withdraw() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.tools) > 0 {
		c.r.cfg.Tools.Unregister(c.tools...)
		c.tools = nil
	}
}
