package kernel

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"net/url"
	"strings"

	"github.com/yaya-ai/yaya/internal/netaddr"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/models"
)

// model returns what is known of a model at a provider; "" is the one that the provider has.
func (k *Kernel) model(provider, model string) loop.Model {
	view := k.Settings.Providers()
	i := view.GetInstance(cmp.Or(provider, view.ActiveID()))
	if i == nil {
		return loop.Model{ID: model}
	}
	out := loop.Model{ID: cmp.Or(model, k.modelOf(*i))}
	facts := k.cfg.Models.Of(*i, out.ID, k.service(*i))
	out.Blind, out.Priced, out.Likely, out.Cost = !facts.Pictures, facts.Prices != nil, facts.Room(), facts.Cost
	if n, ok := number(k.setting(*i, config.WindowField)); ok {
		out.Window = n
	} else if n, ok := number(k.Plugins.Default(i.Plugin, config.WindowField)); ok { // which the plugin asks for
		if out.Window = n; facts.Known {
			out.Window = min(n, facts.Room())
		}
	}
	out.Free, out.Listed = k.free(*i, out.ID), k.service(*i) != "" && k.service(*i) != models.Local
	if facts.Service == models.Local { // how much of it there is, is up to the program that runs it
		out.Likely = min(out.Likely, loop.DefaultWindow)
	}
	if n, ok := number(k.setting(*i, "max_tokens")); ok {
		out.Answer = n
	}
	return out
}

// free reports whether nobody pays for calls of a model: those of the plugin for tests, and those that
// Ollama runs in a network of the user's own. A model of Ollama's cloud has its name there.
func (k *Kernel) free(i config.Instance, model string) bool {
	switch i.Plugin {
	case "llm-echo":
		return true
	case "llm-ollama":
		at := config.TextOf(k.setting(i, "base_url")) // by default this machine
		u, err := url.Parse(at)
		if err != nil || strings.HasSuffix(model, "-cloud") || strings.HasSuffix(model, ":cloud") {
			return false
		}
		if at == "" {
			return true
		}
		addr, err := netip.ParseAddr(u.Hostname())
		return netaddr.Loopback(u.Hostname()) || err == nil && !netaddr.Public(addr)
	}
	return false
}

// summaryModel returns the provider and the model of model.summary. One that does not exist is
// logged, and the turn's own model counts.
func (k *Kernel) summaryModel() (provider, model string) {
	set := k.Settings.Text("model.summary")
	if set == "" {
		return "", ""
	}
	provider, model, _ = strings.Cut(set, "/")
	i := k.Settings.Providers().GetInstance(provider)
	if i == nil {
		k.cfg.Log.Warn().Str("provider", provider).Msg("model.summary names a provider that does not exist: yaya provider list shows those that do")
		return "", ""
	}
	return provider, cmp.Or(model, k.modelOf(*i))
}

// modelOf returns the model that a provider uses: by its settings, those of its plugin, or the
// default in the plugin's schema.
func (k *Kernel) modelOf(i config.Instance) string {
	return cmp.Or(config.TextOf(k.setting(i, "model")), config.TextOf(k.Plugins.Default(i.Plugin, "model")))
}

// setting returns a field of a provider, or else the setting of its plugin; nil if there is none.
func (k *Kernel) setting(i config.Instance, field string) json.RawMessage {
	if v, ok := i.Config[field]; ok {
		return v
	}
	v, _, _ := k.Settings.Get("plugin." + config.Namespace(i.Plugin) + "." + field)
	return v
}

func number(raw json.RawMessage) (n int, ok bool) {
	return n, len(raw) > 0 && json.Unmarshal(raw, &n) == nil && n > 0
}
