// Package provider is what the plugins of model services share: their life as plugins, their
// instances, and where an instance's address and key come from.
//
// An instance has the fields base_url, api_key, model, thinking_effort, max_tokens and temperature,
// those of package models (context_window, images and prices), and those that its plugin adds. Missing fields come from plugin.<name>.*; an instance without an address of its own
// also uses the variables of the environment. A key from the environment is never sent to an
// instance's own address.
package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/llmhttp"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
	"github.com/yaya-ai/yaya/kernel/models"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// Service describes a model service to [New].
type Service struct {
	Name string // of the plugin, and of its first instance
	ID   string // of the provider
	// Fields are the properties of the plugin's settings beside those that all have, in JSON
	// Schema, by name.
	Fields map[string]string
	// AddressVar and KeyVar are the variables of the environment, the first one set counts.
	AddressVar string
	KeyVars    []string
	Address    string // of the service itself, where instances without another lead
	Model      string // of an instance that names none
	Keyless    bool   // it needs no key
	// Client returns the client of an instance. It makes no requests.
	Client func(Settings) llm.Provider
}

// Settings are those of one instance.
type Settings struct {
	ID, BaseURL, Key, Model, Effort string
	HTTP                            *llmhttp.Client
	// Facts returns what is known of a model at this instance.
	Facts func(model string) models.Facts
	field func(string) json.RawMessage
}

// Int returns a number among the instance's fields, 0 if there is none.
func (s Settings) Int(field string) int {
	var n int
	if v := s.field(field); v != nil && json.Unmarshal(v, &n) != nil {
		return 0
	}
	return n
}

// Plugin is the provider of a service.
type Plugin struct {
	service Service
	env     Env
	http    *llmhttp.Client
	runner  *llm.Runner
	clients *plugin.Instances[instance]
}

// instance is one of the plugin's. It is immutable: running calls keep the one that they started
// with.
type instance struct {
	client  llm.Provider
	facts   func(model string) models.Facts
	params  params
	hasKey  bool
	missing error // why its key cannot be read, or what is wrong with its settings
}

// keyless is a client whose key cannot be read, or with another setting that is wrong: the service
// would refuse without a clear reason.
type keyless struct {
	llm.Provider
	missing error
}

// Generate implements [llm.Provider].
func (k keyless) Generate(context.Context, llm.Request) (llm.Stream, error) { return nil, k.missing }

// Env holds the surroundings of the plugins of services.
type Env struct {
	Getenv func(string) string // looks an environment variable up
	Models *models.Catalogue
}

// New returns the plugin of a service.
func New(s Service, env Env) *Plugin {
	p := &Plugin{service: s, env: env, http: llmhttp.New()}
	p.clients = plugin.NewInstances(s.Name, p.build)
	return p
}

// Manifest implements [plugin.Plugin].
func (p *Plugin) Manifest() plugin.Manifest {
	fields := map[string]json.RawMessage{
		"base_url": p.address(), "api_key": json.RawMessage(`{"type":"string"}`), "model": json.RawMessage(`{"type":"string","default":` + strconv.Quote(p.service.Model) + `}`),
		"thinking_effort": json.RawMessage(`{"type":"string","default":"off"}`), config.WindowField: json.RawMessage(`{"type":"integer"}`),
		maxTokensField: json.RawMessage(`{"type":"integer"}`), temperatureField: json.RawMessage(`{"type":"number"}`), config.ImagesField: json.RawMessage(`{"type":"boolean"}`),
		config.InputPriceField: json.RawMessage(`{"type":"number"}`), config.OutputPriceField: json.RawMessage(`{"type":"number"}`),
		config.CacheReadPriceField: json.RawMessage(`{"type":"number"}`), config.CacheWritePriceField: json.RawMessage(`{"type":"number"}`),
	}
	for name, schema := range p.service.Fields {
		fields[name] = json.RawMessage(schema)
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": fields})
	if err != nil { // a field of the service is not JSON: its tests say so
		panic(err)
	}
	return plugin.Manifest{Name: p.service.Name, Version: "0.1.0", Category: plugin.LLMProvider, ProviderID: p.service.ID, ConfigSchema: schema}
}

// address is the schema of base_url. Its default tells the kernel at which service an instance is that
// names no address; others say nothing about prices.
func (p *Plugin) address() json.RawMessage {
	at := cmp.Or(p.env.Getenv(p.service.AddressVar), p.service.Address)
	if models.ServiceAt(at) == "" {
		return json.RawMessage(`{"type":"string"}`)
	}
	return json.RawMessage(`{"type":"string","default":` + strconv.Quote(at) + `}`)
}

// Subscriptions implements [plugin.Plugin].
func (*Plugin) Subscriptions() []string {
	return []string{event.LLMCallRequest.Name(), event.ConfigWasUpdated.Name(), event.UserInterrupt.Name()}
}

// OnLoad implements [plugin.Plugin].
func (p *Plugin) OnLoad(_ context.Context, c plugin.Context) error {
	p.runner = llm.NewRunner(llm.RunnerConfig{
		Emit:    c.Emit,
		Secrets: c.Secrets(),
		Price: func(id, model string, u event.Usage) float64 {
			i, ok := p.clients.Get(c, id)
			if !ok { // was removed meanwhile
				return 0
			}
			return i.facts(model).Cost(u)
		},
		Report: func(err error) { c.Log().Error().Err(err).Msg("cannot publish an answer") },
	})
	p.clients.Load(c)
	return nil
}

func (p *Plugin) build(c plugin.Context, i config.Instance) instance {
	shared := func(field string) string {
		var s string
		if v := c.Config(field); v != nil && json.Unmarshal(v, &s) != nil {
			return ""
		}
		return s
	}
	base, key := i.Text("base_url"), i.Text("api_key")
	if base == "" {
		base = shared("base_url")
		key = cmp.Or(key, shared("api_key"))
		if base == "" {
			base = p.env.Getenv(p.service.AddressVar)
			for _, name := range p.service.KeyVars {
				key = cmp.Or(key, p.env.Getenv(name))
			}
		}
	}
	if !masked.Common(key) {
		c.Secrets().Declare(key)
	}
	at := models.ServiceAt(cmp.Or(base, p.service.Address))
	facts := func(model string) models.Facts { return p.env.Models.Of(i, model, at) }
	field := func(name string) json.RawMessage {
		if v, ok := i.Config[name]; ok {
			return v
		}
		return c.Config(name)
	}
	params, err := paramsOf(field, "providers."+i.ID+".")
	i.Missing = errors.Join(i.Missing, err)
	client := p.service.Client(Settings{
		Facts: facts, ID: i.ID, BaseURL: strings.TrimSuffix(base, "/"), Key: key, HTTP: p.http,
		Model:  cmp.Or(i.Text("model"), shared("model"), p.service.Model),
		Effort: cmp.Or(i.Text("thinking_effort"), shared("thinking_effort"), "off"),
		field:  field,
	})
	if i.Missing != nil {
		client = keyless{client, i.Missing}
	}
	return instance{client, facts, params, key != "" || base != "" || p.service.Keyless, i.Missing}
}

// OnEvent implements [plugin.Plugin].
func (p *Plugin) OnEvent(_ context.Context, ev event.Event, c plugin.Context) error {
	switch e := ev.Payload.(type) {
	case event.ConfigUpdated:
		p.clients.Changed(c, e.Key)
	case event.Empty:
		p.runner.Interrupt(ev.SessionID)
	case event.LLMRequest:
		if cl, ok := p.clients.Get(c, e.Provider); ok { // otherwise a sibling's
			ev.Payload = cl.params.with(e)
			p.runner.Start(ev, cl.client)
		}
	}
	return nil
}

// OnUnload implements [plugin.Plugin].
func (p *Plugin) OnUnload(ctx context.Context, _ plugin.Context) error {
	if p.runner == nil {
		return nil
	}
	err := p.runner.Close(ctx)
	p.http.Close()
	return err
}

// HealthCheck implements [plugin.HealthChecker]. It makes no requests.
func (p *Plugin) HealthCheck(_ context.Context, c plugin.Context) plugin.HealthReport {
	all := p.clients.All()
	h := plugin.HealthReport{Status: plugin.Healthy, Summary: worded.Count(len(all), "instance", "instances")}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		cl := all[id]
		check := plugin.HealthCheck{Name: id, Status: plugin.Healthy}
		if cl.missing != nil {
			check.Status, check.Message = plugin.Degraded, cl.missing.Error()
			h.Status, h.Summary = plugin.Degraded, check.Message
		} else if !cl.hasKey {
			check.Status, check.Message = plugin.Degraded, "no api_key; set providers."+id+".api_key or "+p.service.KeyVars[0]
			h.Status, h.Summary = plugin.Degraded, check.Message
		} else if last, ok := p.runner.Last(id); ok && last.Err != nil {
			check.Status, check.Message = plugin.Degraded, fmt.Sprintf("its last call, at %s, failed: %s", last.At.UTC().Format(time.RFC3339), cut.Text(c.Secrets().ConcealString(last.Err.Error()), 300))
			h.Status, h.Summary = plugin.Degraded, id+": "+check.Message
		} else if ok {
			check.Message = "its last call succeeded, at " + last.At.UTC().Format(time.RFC3339)
		}
		h.Details = append(h.Details, check)
	}
	return h
}
