package plugin

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// Budget limits what the calls of models cost that plugins make themselves. All methods are safe for
// concurrent use.
type Budget interface {
	// Allow returns why nobody can call a model for a session now.
	Allow(session string) error
	// Spent adds the cost of a call in US dollars. An error means that the sum may be lost.
	Spent(session string, usd float64) error
}

// Bounds of the calls of plugins that wait for their answer: how many, since one beyond them could not
// be counted, and how long one of them counts that never ends.
const (
	maxOpenCalls = 1000
	longestCall  = time.Hour
)

var errOpenCalls = errors.New("plugins have too many calls of models that have not ended")

// spending counts the calls of models that plugins make; the loop counts its own.
type spending struct {
	budget Budget

	mu   sync.Mutex
	open map[string]time.Time // when requests were made, by their id
}

// follow begins to count.
func (s *spending) follow(b *bus.Bus) (*bus.Subscription, error) {
	return b.Subscribe(bus.SubscribeOptions{Name: "plugin-spending"}, []string{
		event.LLMCallRequest.Name(), event.LLMCallResponse.Name(), event.LLMCallError.Name(),
	}, s.onCall)
}

// allow returns why a plugin cannot call a model for a session.
func (s *spending) allow(session string) error {
	s.mu.Lock()
	if len(s.open) >= maxOpenCalls {
		maps.DeleteFunc(s.open, func(_ string, at time.Time) bool { return time.Since(at) > longestCall })
	}
	full := len(s.open) >= maxOpenCalls
	s.mu.Unlock()
	if full {
		return errOpenCalls
	}
	return s.budget.Allow(session)
}

func (s *spending) onCall(_ context.Context, ev event.Event) error {
	switch p := ev.Payload.(type) {
	case event.LLMRequest:
		if ev.Source != event.KernelSource {
			s.mu.Lock()
			s.open[ev.ID] = time.Now()
			s.mu.Unlock()
		}
	case event.LLMResponse:
		if s.ended(p.RequestID) {
			return s.budget.Spent(ev.SessionID, max(p.CostUSD, 0))
		}
	case event.LLMError:
		s.ended(p.RequestID)
	}
	return nil
}

// ended reports whether a request was a plugin's, and forgets it.
func (s *spending) ended(request string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, theirs := s.open[request]
	delete(s.open, request)
	return theirs
}
