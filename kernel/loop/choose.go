package loop

import (
	"cmp"
	"fmt"

	"github.com/yaya-ai/yaya/kernel/event"
)

// SetProvider gives a session and its sub-agents a provider, until the loop ends; "" takes it
// back. It counts more than the model that was chosen for the session, and less than one that was
// chosen for a sub-agent.
func (l *Loop) SetProvider(id, provider string) {
	thread := l.thread(id)
	l.mu.Lock()
	defer l.mu.Unlock()
	thread.provider = provider
}

// providerOf returns the provider that a session was given, "" for none.
func (l *Loop) providerOf(id string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if thread := l.threads[event.Root(id)]; thread != nil {
		return thread.provider
	}
	return ""
}

// chosen returns the provider and the model that were chosen for the session, "" if none were, and
// for the model of the provider.
func (t *turn) chosen() (provider, model string, err error) {
	given := t.l.providerOf(t.thread.id)
	if t.session == nil || given != "" && t.thread.id == event.Root(t.thread.id) {
		return given, "", nil
	}
	choice, err := t.session.Model()
	if err != nil || choice == "" {
		return given, "", err
	}
	if provider, model, err = t.l.cfg.Chosen(choice); err != nil {
		err = fmt.Errorf("this session: %w", err)
	}
	return provider, model, err
}

// target returns the provider and the model of a request: the fallback that answers, else those
// that were chosen for the session, else those that the strategy names, else the active ones.
// Without any, the request says so.
func (t *turn) target(d event.DecideResponse) (provider, model string, err error) {
	if t.fallback.Provider != "" {
		return t.fallback.Provider, t.fallback.Model, nil
	}
	provider, model, err = t.chosen()
	switch {
	case err != nil:
		return "", "", err
	case provider != "" && provider == d.Provider:
		model = cmp.Or(model, d.Model)
	case provider == "" && d.Provider != "":
		provider, model = d.Provider, d.Model
	case provider == "":
		if id, own, err := t.l.cfg.Provider(); err == nil {
			provider, model = id, cmp.Or(d.Model, own)
		}
	}
	return provider, cmp.Or(model, t.l.cfg.Model(provider, model).ID), nil
}
