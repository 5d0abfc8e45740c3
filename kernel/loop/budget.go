package loop

import (
	"cmp"
	"fmt"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
)

// Budget limits what sessions cost. All methods are safe for concurrent use.
type Budget interface {
	// Allow returns why a session cannot call a model now.
	Allow(session string) error
	// Spent adds the cost of a call in US dollars. An error means that the sum may be lost.
	Spent(session string, usd float64) error
	// Limited returns the setting that limits costs, false if none does.
	Limited() (setting string, ok bool)
	// Forget drops what is in memory of a session.
	Forget(session string)
}

// unlimited is the [Budget] of a loop without one.
type unlimited struct{}

func (unlimited) Allow(string) error          { return nil }
func (unlimited) Spent(string, float64) error { return nil }
func (unlimited) Limited() (string, bool)     { return "", false }
func (unlimited) Forget(string)               {}

// failedBudget is the kind of a turn that has ended at a limit of costs.
const failedBudget = "budget"

// allowed returns the failure of a turn whose session may not spend more.
func (t *turn) allowed() error {
	if err := t.l.cfg.Budget.Allow(t.thread.id); err != nil {
		return &stepError{failedBudget, err}
	}
	return nil
}

// spent counts what a call took.
func (t *turn) spent(req event.LLMRequest, r event.LLMResponse) {
	usd := max(r.CostUSD, 0)
	t.out.Usage, t.out.CostUSD = llm.Add(t.out.Usage, r.Usage), t.out.CostUSD+usd
	if err := t.l.cfg.Budget.Spent(t.thread.id, usd); err != nil { // the next call is not allowed, if there is a limit
		t.l.cfg.Log.Error().Err(err).Str("session", t.thread.id).Msg("what a call has cost could not be recorded")
	}
	if usd > 0 || r.Usage.Total == 0 {
		return
	}
	setting, limited := t.l.cfg.Budget.Limited()
	model := cmp.Or(r.Model, req.Model)
	known := t.l.cfg.Model(req.Provider, model)
	if !limited || known.Priced || known.Free || !t.l.unpriced(event.Root(t.thread.id), req.Provider+"/"+model) {
		return
	}
	of := req.Provider
	if model != "" {
		of = "the model " + model + " of " + of
	}
	_, err := bus.Publish(t.l.kernel.ForTurn(t.id), event.TurnNotice, t.thread.id, event.Notice{Text: fmt.Sprintf(
		"The prices of %s are not known, so its calls do not count towards %s: set providers.%s.input_price and output_price (US dollars for a million tokens).", of, setting, req.Provider)})
	t.l.report(err)
}

// unpriced reports whether a model without prices is the first news of it in a session.
func (l *Loop) unpriced(root, model string) bool {
	thread := l.thread(root)
	l.mu.Lock()
	defer l.mu.Unlock()
	if thread.unpriced[model] {
		return false
	}
	if thread.unpriced == nil {
		thread.unpriced = map[string]bool{}
	}
	thread.unpriced[model] = true
	return true
}
