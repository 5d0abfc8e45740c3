package upstream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Bounds of the sessions of one server.
const (
	maxSessions   = 256 // per client
	maxPrincipals = 16  // per principal: each may be a process
)

var errStopped = fmt.Errorf("%w: the server is being stopped", feature.ErrNotSent)

// slot holds the session of one key: opened by the first call that needs it,
// replaced when it is lost, closed when it is idle.
type slot struct {
	breaker breaker    // of a principal's own
	opening sync.Mutex // held while a session is opened

	mu    sync.Mutex
	s     *session
	users int
	last  time.Time
	gone  bool
}

func (sl *slot) open() bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return sl.s != nil
}

// take removes the session for good, to be closed by the caller.
func (sl *slot) take() *session {
	sl.opening.Lock() // a session that is being opened is waited for
	defer sl.opening.Unlock()
	sl.mu.Lock()
	defer sl.mu.Unlock()
	s := sl.s
	sl.s, sl.gone = nil, true
	return s
}

// retire ends the slot if nobody has used it for the idle time, or if it has no
// live session and nobody is opening one. A call that still holds the slot is told
// that it was not sent, and comes again.
func (sl *slot) retire(idle time.Duration) (*session, bool) {
	if !sl.opening.TryLock() {
		return nil, false
	}
	defer sl.opening.Unlock()
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.s != nil && (sl.users > 0 || (time.Since(sl.last) < idle && sl.s.t.failed() == nil)) {
		return nil, false
	}
	s := sl.s
	sl.s, sl.gone = nil, true
	return s, true
}

// apart reports whether a principal's calls go to a session of its own by the
// server's policy. The main session is the owner's, and that of yaya's agents.
func (p *Provider) apart(principal string) bool {
	policy, _ := p.cfg.Server.SessionPolicy()
	return policy == servers.PerPrincipal && principal != "" && principal != tool.Owner && !strings.HasPrefix(principal, tool.AgentPrefix)
}

// place is where a session is kept: by the name of the principal, client or member
// of a pool that it belongs to, "" for everybody's, and by era where calls of either
// go to connections of their own.
type place struct {
	name string
	era  servers.Era
}

// eraOf returns the era of the connection that a client's calls go to, "" where
// clients of both share one; mu is held. Over HTTP a connection costs little, so
// what clients share there is shared by era, and a server that speaks both answers
// each as it would answer it directly.
func (p *Provider) eraOf(peer relay.Peer) servers.Era {
	if p.cfg.Server.Transport != servers.HTTP || p.useSSE {
		return ""
	}
	switch policy, _ := p.cfg.Server.SessionPolicy(); policy {
	case servers.PerClient, servers.PerCall:
		return ""
	}
	return p.clientAsks(peer).first
}

// breakerOf returns the breaker of a client's calls.
func (p *Provider) breakerOf(principal string, peer relay.Peer) *breaker {
	if !p.apart(principal) {
		return &p.breaker
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if sl := p.sessions[place{principal, p.eraOf(peer)}]; sl != nil {
		return &sl.breaker
	}
	return new(breaker) // nothing is known of a session that is yet to be opened
}

// session returns the session that a call goes to, by the server's policy and the
// era of its client, and the function that ends its use.
func (p *Provider) session(ctx context.Context, client, principal string, peer relay.Peer) (*session, func(), error) {
	s, leave, err := p.sessionBut(ctx, "", client, principal, peer)
	if err == nil {
		return s, leave, nil
	}
	if e, ok := errors.AsType[*eraError](err); ok {
		s, leave, err := p.sessionBut(ctx, e.era, client, principal, peer)
		if err == nil && e.era == servers.EraModern {
			p.doubt(e)
		}
		return s, leave, err
	}
	return nil, nil, err
}

// sessionBut is session, in the other era than one that has just been refused.
func (p *Provider) sessionBut(ctx context.Context, not servers.Era, client, principal string, peer relay.Peer) (*session, func(), error) {
	policy, pool := p.cfg.Server.SessionPolicy()
	apart := p.apart(principal)
	p.mu.Lock()
	main, closed, era := p.main, p.closed, p.eraOf(peer)
	if era != "" && not != "" {
		era = otherEra(not)
	}
	at, of, most := place{era: era}, tenant{}, maxSessions
	ask := p.mainAsks()
	switch policy {
	case servers.PerPrincipal:
		if apart {
			at.name, of, most = principal, tenant{principal: principal}, maxPrincipals
		}
	case servers.PerClient:
		at.name, of, ask = client, tenant{client: client}, p.clientAsks(peer)
	case servers.PerCall:
		ask = p.clientAsks(peer)
	case servers.PolicyPool:
		p.next++
		at.name = strconv.Itoa(p.next % pool)
	}
	if era != "" {
		ask, most = asking{era, true}, 2*most // one of each era
	}
	if closed || main == nil {
		p.mu.Unlock()
		return nil, nil, errStopped
	}
	if policy == servers.PerCall {
		p.mu.Unlock()
		return p.single(ctx, ask, client, peer)
	}
	// Nobody's calls, and member 0 of a pool, use the session that is there.
	if (at.name == "" || (policy == servers.PolicyPool && at.name == "0")) && (era == "" || era == main.peer.Era) {
		p.mu.Unlock()
		return main, func() {}, nil
	}
	sl := p.sessions[at]
	if sl == nil {
		if len(p.sessions) >= most {
			p.mu.Unlock()
			return nil, nil, fmt.Errorf("%w: %d others have sessions with this server already; one that is idle ends after %v", feature.ErrNotSent, most, p.idle)
		}
		sl = new(slot)
		p.sessions[at] = sl
	}
	p.mu.Unlock()
	s, err := p.use(ctx, sl, ask, of, peer)
	if err != nil {
		return nil, nil, err
	}
	return s, func() { sl.leave() }, nil
}

func (sl *slot) leave() {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.s != nil {
		sl.s.opened()
	}
	sl.users--
	sl.last = time.Now()
}

// enter claims the slot's session if it has a live one.
func (sl *slot) enter() (s, dead *session, err error) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.gone {
		return nil, nil, errStopped
	}
	if sl.s != nil && sl.s.t.failed() != nil {
		dead, sl.s = sl.s, nil
	}
	if sl.s != nil {
		sl.users++
	}
	return sl.s, dead, nil
}

func (p *Provider) use(ctx context.Context, sl *slot, ask asking, of tenant, peer relay.Peer) (*session, error) {
	if s, dead, err := sl.enter(); s != nil || err != nil {
		return s, err
	} else if dead != nil {
		p.closeLater(dead)
	}
	p.mu.Lock()
	life := p.life
	p.mu.Unlock()
	sl.opening.Lock()
	defer sl.opening.Unlock()
	s, dead, err := sl.enter()
	if dead != nil {
		p.closeLater(dead)
	}
	if s != nil || err != nil {
		return s, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(life, cancel)() // a stop does not wait for a slow server
	s, err = p.open(ctx, ask, of, peer)
	if life.Err() != nil && err != nil {
		return nil, errStopped
	}
	if err != nil && of.principal != "" { // the server that others use has not failed with it
		return nil, fmt.Errorf("start the server for %s: %w", of.principal, err)
	}
	if err != nil {
		return nil, p.notOpened(err)
	}
	switch {
	case peer != nil && relay.Asks(peer.Capabilities()):
		s.heard(ctx)
	case of == tenant{}: // the next client may be one that can be asked
		s.hear()
	}
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.s = s
	sl.users++
	return s, nil
}

// lostMain tells the supervisor, before the call is tried again, that the main
// session is gone; the goroutine that watches it may not have come to it yet.
func (p *Provider) lostMain(s *session, err error) {
	p.mu.Lock()
	main, failed := p.main, p.signals.Failed
	p.mu.Unlock()
	if s == main && s.t.failed() != nil {
		failed(err)
	}
}

// notOpened marks the failure to open a session: the call was never sent. When
// the server cannot be reached at all, the provider has failed with it.
func (p *Provider) notOpened(err error) error {
	if errors.Is(err, feature.ErrNotSent) {
		p.mu.Lock()
		failed := p.signals.Failed
		p.mu.Unlock()
		failed(err)
		return err
	}
	return fmt.Errorf("open a session: %w", err)
}

// single opens a session for one call.
func (p *Provider) single(ctx context.Context, ask asking, client string, peer relay.Peer) (*session, func(), error) {
	s, err := p.open(ctx, ask, tenant{client: client}, peer)
	if err != nil {
		return nil, nil, p.notOpened(err)
	}
	return s, func() { p.closeLater(s) }, nil
}

// closeLater closes a session off the path of the call, or at once when the
// provider is being stopped.
func (p *Provider) closeLater(s *session) {
	end := func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
		defer cancel()
		s.close(ctx)
	}
	p.mu.Lock()
	work := p.work
	p.mu.Unlock()
	if !work.Go(end) {
		end()
	}
}

// Release closes the session that a client had, if any: the client is gone.
func (p *Provider) Release(client string) {
	if policy, _ := p.cfg.Server.SessionPolicy(); policy != servers.PerClient {
		return
	}
	p.mu.Lock()
	sl := p.sessions[place{name: client}]
	delete(p.sessions, place{name: client})
	p.mu.Unlock()
	if sl == nil {
		return
	}
	if s := sl.take(); s != nil {
		p.closeLater(s)
	}
}

// recycle closes sessions that nobody has used for the idle time.
func (p *Provider) recycle(life context.Context) {
	tick := time.NewTicker(max(p.idle/4, 10*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-tick.C:
		}
		var idle []*session
		p.mu.Lock()
		for at, sl := range p.sessions {
			idleFor := p.idle
			if at.name == "" { // everybody's, like the main one
				idleFor = math.MaxInt64
			}
			if s, ok := sl.retire(idleFor); ok {
				delete(p.sessions, at)
				if s != nil {
					idle = append(idle, s)
				}
			}
		}
		p.mu.Unlock()
		for _, s := range idle {
			p.closeLater(s)
		}
	}
}
