package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/yaya-ai/yaya/cmd/yaya/chat"
)

// modelOption is the id of the option for the model of a session.
const modelOption = "model"

// configured returns the options of a session whose model was chosen, or is the active one if it is "".
// An editor without them can do everything else: no list of models is not an error.
func (a *agent) configured(ctx context.Context, chosen string) []configOption {
	all, err := a.api.Models(ctx)
	if err != nil {
		a.o.Log.Warn().Err(err).Msg("the list of models cannot be read: the editor offers none")
		return nil
	}
	if chosen != "" && !slices.ContainsFunc(all, func(c chat.Choice) bool { return c.ID == chosen }) {
		all = append(all, chat.Choice{ID: chosen})
	}
	out := configOption{ID: modelOption, Name: "Model", Description: "that answers in this session", Category: "model", Type: "select", Options: []configValue{}}
	for _, c := range all {
		if c.ID == chosen || c.Active && chosen == "" {
			out.Now = c.ID
		}
		v := configValue{Value: c.ID, Name: c.ID}
		if c.Model != "" && c.Model != c.ID {
			v.Description = c.Model
		}
		out.Options = append(out.Options, v)
	}
	if out.Now == "" { // no model is active: yaya says so when it is asked
		return nil
	}
	return []configOption{out}
}

// setOption sets an option of a session; it returns all of them.
func (a *agent) setOption(ctx context.Context, p setOption) (any, error) {
	if _, err := a.session(p.Session); err != nil {
		return nil, err
	}
	if p.Option != modelOption || p.Value == "" {
		return nil, wrong(fmt.Sprintf("yaya has no option %q with the value %q: it has %q, with the models that it named", p.Option, p.Value, modelOption))
	}
	if err := a.api.SetModel(ctx, p.Session, p.Value); err != nil {
		return nil, fault(err)
	}
	return optionsNow{a.configured(ctx, p.Value)}, nil
}

// modelChanged tells the editor that the session has another model, which may come from elsewhere.
func (s *session) modelChanged(data []byte) {
	var now struct {
		Model string `json:"model"`
	}
	if json.Unmarshal(data, &now) != nil {
		return // from a newer yaya
	}
	if options := s.a.configured(s.ctx, now.Model); options != nil {
		s.update(optionsChanged{"config_option_update", options})
	}
}
