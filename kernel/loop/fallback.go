package loop

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

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
// It names the model, the status and a remedy: the service's own words rarely do.
func (t *turn) unanswering(req event.LLMRequest, e event.LLMError) error {
	what, kind := named(t.l.cfg, req, e), string(e.EffectiveKind())
	if t.cut != "" {
		return failed(kind, "%s; the answer broke off: send a message to go on", what)
	}
	if len(t.failing) < 2 {
		return failed(kind, "%s%s", what, t.remedy(req, e))
	}
	var before []string
	for _, m := range t.failing[:len(t.failing)-1] {
		before = append(before, m.Provider+"/"+m.Model)
	}
	return failed(kind, "%s (before it, %s could not answer)%s", what, strings.Join(before, ", "), t.remedy(req, e))
}

// named is the text of an error with the model and the status before it.
func named(cfg Config, req event.LLMRequest, e event.LLMError) string {
	model := cmp.Or(req.Model, cfg.Model(req.Provider, req.Model).ID)
	who := strings.TrimSuffix(req.Provider+"/"+model, "/")
	if e.EffectiveKind() != event.LLMStatus || e.StatusCode == 0 {
		return who + ": " + e.Error
	}
	if code := strconv.Itoa(e.StatusCode); !strings.HasPrefix(e.Error, code) { // otherwise the text is the status
		return fmt.Sprintf("%s: status %s: %s", who, code, e.Error)
	}
	return fmt.Sprintf("%s: status %s", who, e.Error)
}

const later = "; try again later, or let others answer (setting model.fallbacks)"

// remedy ends the text of an error with what may help, as far as its kind tells.
func (t *turn) remedy(req event.LLMRequest, e event.LLMError) string {
	switch e.EffectiveKind() {
	case event.LLMConnection:
		return "; does the service run? (yaya provider list has its address)"
	case event.LLMStatus:
		switch e.StatusCode {
		case 401, 403:
			return fmt.Sprintf("; to set another key: yaya secret set %[1]s, then yaya config set providers.%[1]s.api_key '${secret:%[1]s}'", req.Provider)
		case 404:
			if !t.l.cfg.Model(req.Provider, req.Model).Listed {
				return "; does the service have this model, and is this the address of its API? (yaya provider list)"
			}
			return "; yaya provider models lists the models"
		case 402:
			return "; the account at the service has no credit left: add some there, or let others answer (setting model.fallbacks)"
		case 429:
			wait := "wait"
			if e.RetryAfterS > 0 {
				wait = "wait " + time.Duration(math.Ceil(e.RetryAfterS)*float64(time.Second)).String()
			}
			return "; " + wait + ", or let others answer (setting model.fallbacks)"
		}
		if e.StatusCode >= 500 {
			return later
		}
	case event.LLMTimeout:
		return later
	case event.LLMEmpty:
		return "; send a message to try again, or choose another model"
	case event.LLMOther: // the service's words are all there is
	}
	return ""
}
