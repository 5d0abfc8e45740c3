package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/models"
)

// openAIPlugin is that of a provider whose ID is not the name of a preset.
const openAIPlugin = "llm-openai"

// presetNames are the IDs that mean a well-known service.
func presetNames(context.Context, *daemon.Flags) (names []string, _ error) {
	for _, p := range models.Presets() {
		names = append(names, p.Name)
	}
	return names, nil
}

// presetHelp lists the names of presets.
func presetHelp() string {
	names, _ := presetNames(context.Background(), nil)
	half := (len(names) + 1) / 2
	return strings.Join(names[:half], ", ") + ",\n" + strings.Join(names[half:], ", ")
}

// sets reports whether --set has a field.
func (n newProvider) sets(field string) bool {
	return slices.ContainsFunc(n.fields, func(f string) bool { return strings.HasPrefix(f, field+"=") })
}

// addressed reports whether a flag says where the provider is.
func (n newProvider) addressed() bool { return n.base != "" || n.sets("base_url") }

// keyed reports whether a flag gives the provider a key of its own.
func (n newProvider) keyed() bool { return n.keyEnv != "" || n.keyStdin || n.sets("api_key") }

// preset takes what the flags leave open from the preset of the ID, if there is one: none with an
// address, or with another plugin, which say what the provider is. The key of the environment is copied
// if the plugin would not use it: it does at its own address alone.
func (n newProvider) preset(id string) (_ newProvider, p models.Preset, ok bool) {
	p, ok = models.PresetOf(id)
	if !ok || n.addressed() || n.plug != "" && n.plug != p.Plugin {
		return n, models.Preset{}, false
	}
	n.plug = p.Plugin
	if p.Own && !n.keyed() {
		return n, p, true // address and key are those of the plugin, which may be set otherwise
	}
	n.base = p.URL // a key goes to the service that the preset names, whatever the plugin's address is
	if !p.Own && p.KeyVar != "" && !n.keyed() && os.Getenv(p.KeyVar) != "" {
		n.keyEnv = p.KeyVar
	}
	return n, p, true
}

// tellPreset says what a provider has from a preset, and where its key is from.
func tellPreset(w io.Writer, p models.Preset, made admin.Provider, keyEnv string) error {
	at, key := "at "+p.URL, ""
	switch own := (config.Instance{Config: made.Config}).Text("api_key") != ""; {
	case own && keyEnv != "":
		key = "; its key is a copy of " + keyEnv
	case own || p.Local:
	case p.Own:
		at = "with its address and its key"
		key = fmt.Sprintf(" (unless you have set others, %s and %s in yaya's environment); yaya provider test %s tries them", p.URL, p.KeyVar, made.ID)
	default:
		key = fmt.Sprintf("; it has no key yet: yaya config set providers.%s.api_key -", made.ID)
	}
	_, err := fmt.Fprintf(w, "from the preset %s: the plugin %s, %s%s\n", p.Name, p.Plugin, at, key)
	return err
}

// tellKeyless warns of a service that needs a key, if neither the provider nor the environment has one.
func (n newProvider) tellKeyless(w io.Writer, b *daemon.Backend, made admin.Provider) {
	own := slices.IndexFunc(models.Presets(), func(p models.Preset) bool { return p.Own && p.KeyVar != "" && p.Plugin == made.Plugin })
	if own < 0 || n.addressed() || n.base != "" || (config.Instance{Config: made.Config}).Text("api_key") != "" {
		return // tellPreset tells of other services
	}
	name := models.Presets()[own].KeyVar
	if os.Getenv(name) != "" || os.Getenv(strings.TrimSuffix(name, "_API_KEY")+"_BASE_URL") != "" {
		return
	}
	unless := ""
	if b.Remote {
		unless = ", unless the running yaya has " + name
	}
	fmt.Fprintf(w, "%s has no key%s: give it one with yaya config set providers.%s.api_key - (or set %s in yaya's environment)\n", made.ID, unless, made.ID, name)
}

// addCommand is a command that adds a provider whose key is in the environment, or one as an example.
func addCommand() string {
	for _, p := range models.Presets() {
		if p.KeyVar != "" && os.Getenv(p.KeyVar) != "" {
			return fmt.Sprintf("yaya provider add %s --model %s --use", p.Name, cmp.Or(usualModels[p.Name], "MODEL"))
		}
	}
	return "yaya provider add anthropic --model " + usualModels["anthropic"] + " --api-key-stdin --use"
}

// usualModels are models that the examples name.
var usualModels = map[string]string{"openai": "gpt-5-mini", "anthropic": "claude-sonnet-4-5", "gemini": "gemini-3.5-flash"}

// checkModel refuses a model of another service for a provider that nothing but the default makes
// one of OpenAI: the other service's key would be sent there.
func (n newProvider) checkModel(ctx context.Context, b *daemon.Backend, id string) error {
	if n.plug != "" || n.addressed() || n.model == "" {
		return nil
	}
	var known admin.ModelList
	if err := b.API(ctx, http.MethodGet, "/api/models", nil, &known); err != nil {
		return err
	}
	var list models.List
	for _, m := range known.Models {
		list.Models = append(list.Models, models.Model{Service: m.Service, ID: m.ID})
	}
	p, ok := list.Elsewhere("openai", n.model)
	if !ok {
		return nil
	}
	flags := "--plugin " + p.Plugin
	if !p.Own {
		flags = "--base-url " + p.URL
	}
	return fmt.Errorf("%s is a model of %s, and the provider %s would be one of OpenAI: add %s, or use the ID %s (a service that passes requests on to %[2]s needs its --base-url; with OPENAI_BASE_URL, say --plugin %[6]s)", n.model, p.Title, id, flags, p.Name, openAIPlugin)
}

// request is the body that creates the provider.
func (n newProvider) request(id string, fields any) map[string]any {
	in := map[string]any{"id": id, "plugin": cmp.Or(n.plug, openAIPlugin), "config": fields}
	if n.label != "" {
		in["label"] = n.label
	}
	return in
}
