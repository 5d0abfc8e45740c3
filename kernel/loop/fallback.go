package loop

import (
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// instead makes the next of the fallbacks answer for the rest of the turn, after a model that cannot.
// It reports false if there is none that has not failed in this turn, and once a person has seen
// a part of the answer, which no other model can go on with.
func (t *turn) instead(req event.LLMRequest, e event.LLMError) (bool, error) {
	t.mu.Lock()
	shown := t.shown
	t.mu.Unlock()
	if shown || t.cut != "" || !e.Unavailable() {
		return false, nil
	}
	t.failing = append(t.failing, event.ModelRef{Provider: req.Provider, Model: req.Model})
	for _, choice := range t.l.cfg.Fallbacks() {
		provider, model, err := t.l.cfg.Chosen(choice)
		if err != nil {
			t.l.cfg.Log.Warn().Err(err).Str("model", choice).Msg("a fallback cannot answer (setting model.fallbacks)")
			continue
		}
		to := event.ModelRef{Provider: provider, Model: t.l.cfg.Model(provider, model).ID}
		if slices.Contains(t.failing, to) {
			continue
		}
		if _, err := bus.Publish(t.l.kernel.ForTurn(t.id), event.LLMFellBack, t.thread.id, event.LLMFallback{
			Failed: t.failing[len(t.failing)-1], Next: to, Error: e.Error, Kind: e.EffectiveKind(), StatusCode: e.StatusCode,
		}); err != nil {
			return false, &stepError{"storage", err}
		}
		t.fallback = to
		t.narrow, t.stuck = 0, 0 // which were the other model's
		return true, nil
	}
	return false, nil
}

// unanswering returns the error of a model that cannot answer, and of those that could not before.
func (t *turn) unanswering(e event.LLMError) error {
	if len(t.failing) < 2 {
		return failed(string(e.EffectiveKind()), "%s", e.Error)
	}
	var before []string
	for _, m := range t.failing[:len(t.failing)-1] {
		before = append(before, m.Provider+"/"+m.Model)
	}
	return failed(string(e.EffectiveKind()), "%s (before it, %s could not answer)", e.Error, strings.Join(before, ", "))
}
