package downstream

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// A client may open 100 sessions a second after the first 256, all clients of a principal together
// 400 a second after the first 1,024. A faster one waits. So a client that floods yaya with
// initialize takes a small share of the processor, and one that starts many sessions once does not
// wait.
var (
	clientRate    = pacing{100, 256}
	principalRate = pacing{400, 1024}
)

// pacing is how many sessions a party may open per second, after a number that it may open at once.
type pacing struct {
	perSecond rate.Limit
	burst     int
}

// longestPace is how long a client waits at most; it is refused instead.
const longestPace = 10 * time.Second

var errTooFast = errors.New("this client opens sessions too fast: use one session for many calls, or retry later")

// pace keeps clients from opening sessions too fast.
type pace struct {
	client, principal pacing

	mu      sync.Mutex
	parties map[paced]*rate.Limiter
}

// paced is a client, or all clients of a principal.
type paced struct {
	kind

	all bool
}

func newPace(client, principal pacing) *pace {
	return &pace{client: client, principal: principal, parties: map[paced]*rate.Limiter{}}
}

// maxPaced is how many parties are known before those that need not wait are forgotten.
const maxPaced = 1024

// reserve counts a session, and returns how long its client has to wait for it. It reports false,
// and counts nothing, if that is too long.
func (p *pace) reserve(k kind) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if len(p.parties) > maxPaced {
		for who, l := range p.parties {
			if l.TokensAt(now) >= float64(l.Burst()) {
				delete(p.parties, who)
			}
		}
	}
	client := p.of(paced{k, false}, p.client).ReserveN(now, 1)
	all := p.of(paced{kind{owner: k.owner}, true}, p.principal).ReserveN(now, 1)
	wait := max(client.DelayFrom(now), all.DelayFrom(now))
	if wait > longestPace {
		client.CancelAt(now)
		all.CancelAt(now)
		return wait, false
	}
	return wait, true
}

// of returns the limiter of a party; mu is held.
func (p *pace) of(who paced, at pacing) *rate.Limiter {
	l := p.parties[who]
	if l == nil {
		l = rate.NewLimiter(at.perSecond, at.burst)
		p.parties[who] = l
	}
	return l
}

// wait waits until a client may open a session.
func (p *pace) wait(ctx, life context.Context, k kind) error {
	d, ok := p.reserve(k)
	switch {
	case !ok:
		return errTooFast
	case d <= 0:
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return errNoAnswer
	case <-life.Done():
		return errSessionEnded
	}
}
