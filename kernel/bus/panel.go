package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
)

// Panel says who answers a kind of request together. One that fails or says nothing does not
// cost the answers of the others.
type Panel struct {
	// Members returns the sources that answer now. Nobody else's answers count; if there is
	// none, the first answer does, whoever gives it.
	Members func() []string
	// Merge makes one answer of those that came, at least one, in the order of the members.
	Merge func(request event.Event, answers []event.Event) event.Event
	// Patience is how long a request waits for all members. Then those count that have
	// answered; if none has, the first that does.
	Patience time.Duration
}

// SetPanel sets who answers a kind of request together, before the first of them.
func (b *Bus) SetPanel(kind string, p Panel) {
	b.waitMu.Lock()
	defer b.waitMu.Unlock()
	if b.panels == nil {
		b.panels = map[string]Panel{}
	}
	b.panels[kind] = p
}

// sitting is a request to a panel. The bus's waitMu guards it.
type sitting struct {
	members []string
	open    map[string]bool // who has neither answered nor failed
	late    bool            // the patience has passed: one answer is enough
	got     []event.Event
	errs    []error
}

// sit begins a request to a panel; nil if its kind has none, or it has no members.
func (p *Pending) sit() *sitting {
	p.bus.waitMu.Lock()
	panel, ok := p.bus.panels[p.kind]
	p.bus.waitMu.Unlock()
	if !ok {
		return nil
	}
	members := panel.Members()
	if len(members) == 0 {
		return nil
	}
	s := &sitting{members: members, open: map[string]bool{}}
	for _, m := range members {
		s.open[m] = true
	}
	p.panel, p.sitting, p.asked = panel, s, time.Now()
	return s
}

// answered takes an answer, and reports whether nobody waits for another.
func (s *sitting) answered(ev event.Event) bool {
	if s == nil {
		return true
	}
	if !s.open[ev.Source] {
		return false
	}
	delete(s.open, ev.Source)
	s.got = append(s.got, ev)
	return s.late || len(s.open) == 0
}

// failed takes the failure of a source, and reports whether nobody waits for another.
func (s *sitting) failed(source string, err error) bool {
	if s == nil {
		return true
	}
	if !s.open[source] {
		return false
	}
	delete(s.open, source)
	s.errs = append(s.errs, err)
	return len(s.open) == 0
}

// waitAll is Wait for a panel.
func (p *Pending) waitAll(ctx context.Context) (event.Event, error) {
	patience := time.NewTimer(time.Until(p.asked.Add(p.panel.Patience)))
	defer patience.Stop()
	for {
		select {
		case <-p.reply:
			return p.merged(nil)
		case <-patience.C:
			if p.hurry() {
				return p.merged(nil)
			}
		case <-ctx.Done():
			return p.merged(fmt.Errorf("no answer to %s: %w", p.kind, context.Cause(ctx)))
		case <-p.bus.life.Done():
			return event.Event{}, ErrClosed
		}
	}
}

// hurry makes one answer enough, and reports whether there is one.
func (p *Pending) hurry() bool {
	p.bus.waitMu.Lock()
	defer p.bus.waitMu.Unlock()
	p.sitting.late = true
	return len(p.sitting.got) > 0
}

// merged returns the answers as one, and without any the failures, or what ended the wait.
func (p *Pending) merged(end error) (event.Event, error) {
	s := p.sitting
	p.bus.waitMu.Lock()
	got, errs := slices.Clone(s.got), slices.Clone(s.errs)
	p.bus.waitMu.Unlock()
	if len(got) == 0 {
		return event.Event{}, errors.Join(append(errs, end)...)
	}
	slices.SortFunc(got, func(a, b event.Event) int {
		return slices.Index(s.members, a.Source) - slices.Index(s.members, b.Source)
	})
	return p.panel.Merge(p.Event, got), nil
}
