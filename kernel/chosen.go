package kernel

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/yaya-ai/yaya/internal/members"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/models"
)

// maxChoice bounds the name of a model that is chosen, in bytes.
const maxChoice = 256

// namedModel is a model that a setting names.
type namedModel struct{ setting, choice string }

func (k *Kernel) namedModels() (out []namedModel) {
	for _, setting := range []string{"model.agent", "model.fallbacks"} {
		for _, choice := range k.Settings.Texts(setting) {
			out = append(out, namedModel{setting, choice})
		}
	}
	const summary = "model.summary"
	if choice := k.Settings.Text(summary); choice != "" {
		out = append(out, namedModel{summary, choice})
	}
	return out
}

// Misnamed returns an error for each model that a setting names and that cannot be chosen.
func (k *Kernel) Misnamed() (errs []error) {
	for _, n := range k.namedModels() {
		if err := k.checkModel(n.choice); err != nil {
			errs = append(errs, fmt.Errorf("setting %s: %w", n.setting, err))
		}
	}
	return errs
}

// Choices returns the models that are configured: those of the providers, and those that settings
// name.
func (k *Kernel) Choices() []models.Choice {
	view := k.Settings.Providers()
	out := []models.Choice{}
	for _, i := range view.ListInstances() {
		out = append(out, k.choice(i.ID, i, ""))
	}
	for _, n := range k.namedModels() {
		name := n.choice
		provider, model, _ := strings.Cut(name, "/")
		i := view.GetInstance(provider)
		if i == nil || model == "" || model == k.modelOf(*i) || slices.ContainsFunc(out, func(c models.Choice) bool { return c.ID == name }) {
			continue
		}
		out = append(out, k.choice(name, *i, model))
	}
	return out
}

func (k *Kernel) choice(id string, i config.Instance, model string) models.Choice {
	known := k.model(i.ID, model)
	return models.Choice{ID: id, Provider: i.ID, Label: i.Label, Model: known.ID, Active: id == k.Settings.Providers().ActiveID(), Window: cmp.Or(known.Window, k.Loop.NamedWindow(i.ID, known.ID), known.Likely, loop.DefaultWindow)}
}

// Choose returns the model that a choice names, "" for the active one. The error says why it cannot be
// chosen.
func (k *Kernel) Choose(choice string) (models.Choice, error) {
	if choice == "" {
		i, model, err := k.Settings.Providers().Active()
		if err != nil {
			return models.Choice{}, err
		}
		return k.choice(i.ID, i, model), nil
	}
	if err := k.checkModel(choice); err != nil {
		return models.Choice{}, err
	}
	provider, model, _ := strings.Cut(choice, "/")
	i, err := k.instance(provider)
	if err != nil { // it was removed meanwhile
		return models.Choice{}, err
	}
	return k.choice(choice, *i, model), nil
}

// checkModel returns why a model cannot be chosen. A model of a service in the catalogue has to be in
// it, or to be the provider's own; what other services have, nobody knows.
func (k *Kernel) checkModel(choice string) error {
	provider, model, sub := strings.Cut(choice, "/")
	if len(choice) > maxChoice || strings.ContainsFunc(choice, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }) || (sub && model == "") {
		return fmt.Errorf("%.80q is not a model: it is the id of a provider, or ID/MODEL, such as openai/gpt-5-mini", choice)
	}
	i, err := k.instance(provider)
	if err != nil || model == "" || model == k.modelOf(*i) {
		return err
	}
	service := k.service(*i)
	if service == "" {
		return nil
	}
	if found, known := k.cfg.Models.Find(service, model); known && found.Service == service {
		return nil
	}
	ids := []string{}
	for _, m := range k.cfg.Models.List().Models {
		if m.Service == service {
			ids = append(ids, m.ID)
		}
	}
	return fmt.Errorf("the provider %q has no model %q that yaya knows%s: yaya provider models %s lists those that it knows, and yaya provider refresh gets a newer list", provider, model, members.Meant(model, ids), service)
}

// instance returns a provider, or an error that names those that there are.
func (k *Kernel) instance(id string) (*config.Instance, error) {
	view := k.Settings.Providers()
	if i := view.GetInstance(id); i != nil {
		return i, nil
	}
	ids := []string{}
	for _, i := range view.ListInstances() {
		ids = append(ids, i.ID)
	}
	const shown = 10
	more := ""
	if len(ids) > shown {
		more = ", …"
	}
	return nil, fmt.Errorf("there is no provider %q%s; the configured ones are %s%s (yaya provider list)", id, members.Meant(id, ids), strings.Join(ids[:min(len(ids), shown)], ", "), more)
}

// chosen returns the provider and the model that a choice names. The provider may have
// been removed since.
func (k *Kernel) chosen(choice string) (provider, model string, err error) {
	provider, model, _ = strings.Cut(choice, "/")
	if _, err := k.instance(provider); err != nil {
		return "", "", fmt.Errorf("the model %q: %w: choose another one, or add the provider again", choice, err)
	}
	return provider, model, nil
}

// service returns the service of the catalogue at which a provider is, "" for another.
func (k *Kernel) service(i config.Instance) string {
	var at string
	for _, raw := range [][]byte{k.setting(i, "base_url"), k.Plugins.Default(i.Plugin, "base_url")} {
		if at = config.TextOf(raw); at != "" {
			break
		}
	}
	return models.ServiceAt(at)
}
