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

// errNoCaller is returned for a call without a principal.
var errNoCaller = errors.New("the principal of this call is not established, and the server has a session for each principal")

var errStopped = fmt.Errorf("%w: the server is being stopped", feature.ErrNotSent)

// slot holds the session of one key: opened by the first call that needs it,
// replaced when it is lost, closed when it is idle.
type slot struct {
	breaker breaker    // belongs to one principal
	opening sync.Mutex // held while a session is opened

	mu    sync.Mutex
	s     *session
	users int
	last  time.Time
	gone  bool
}

// gate returns the gate of the slot's session, nil if none is open.
func (sl *slot) gate() *gate {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.s == nil {
		return nil
	}
	return sl.s.gate
}

// take removes the session for good; the caller closes it.
func (sl *slot) take() *session {
	sl.opening.Lock() // if a session is being opened, this waits for it
	defer sl.opening.Unlock()
	sl.mu.Lock()
	defer sl.mu.Unlock()
	s := sl.s
	sl.s, sl.gone = nil, true
	return s
}

// retire ends the slot if it was not used for the idle time, or if it has no live session and
// none is being opened. A call that still holds the slot gets an error that says it was not
// sent, and is retried.
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

// apart reports whether the server's policy gives a principal a session of its own. The main
// session belongs to the owner and to yaya's agents.
func (p *Provider) apart(principal string) bool {
	policy, _ := p.cfg.Server.SessionPolicy()
	return policy == servers.PerPrincipal && principal != tool.Owner && !strings.HasPrefix(principal, tool.AgentPrefix)
}

// place is the key of a session: the name of the principal, client or pool member that it
// belongs to, "" for a shared one, and its era if the calls of each era have their own
// connections.
type place struct {
	name string
	era  servers.Era
}

// eraOf returns the era of the connection for a client's calls, "" if clients of both eras
// share one; the caller holds mu. Over HTTP a connection costs little, so clients share
// connections by era, and a server that speaks both eras answers each client as it would
// directly.
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
	return new(breaker) // nothing is known about a session that is not open yet
}

// lease is the use of a session by a call.
type lease struct {
	*session
	slot   *slot // nil for the main session
	single bool  // the session is of this call alone
}

// end ends the use.
func (l lease) end() {
	switch {
	case l.single:
		l.p.closeLater(l.session)
	case l.slot != nil:
		l.slot.leave()
	}
}

// session returns the session for a call, by the server's policy and the client's era.
func (p *Provider) session(ctx context.Context, client, principal string, peer relay.Peer) (lease, error) {
	l, err := p.sessionBut(ctx, "", client, principal, peer)
	if err == nil {
		return l, nil
	}
	if e, ok := errors.AsType[*eraError](err); ok {
		l, err := p.sessionBut(ctx, e.era, client, principal, peer)
		if err == nil && e.era == servers.EraModern {
			p.doubt(e)
		}
		return l, err
	}
	return lease{}, err
}

// sessionBut is session, but in the era other than one that was just refused.
func (p *Provider) sessionBut(ctx context.Context, not servers.Era, client, principal string, peer relay.Peer) (lease, error) {
	policy, pool := p.cfg.Server.SessionPolicy()
	apart := p.apart(principal)
	if apart && principal == "" { // not the owner's, whose session the main one is
		return lease{}, errNoCaller
	}
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
		return lease{}, errStopped
	}
	if policy == servers.PerCall {
		p.mu.Unlock()
		return p.single(ctx, ask, client, peer)
	}
	// Calls without a client, and member 0 of a pool, use the main session.
	if (at.name == "" || (policy == servers.PolicyPool && at.name == "0")) && (era == "" || era == main.peer.Era) {
		p.mu.Unlock()
		return lease{session: main}, nil
	}
	sl := p.sessions[at]
	if sl == nil {
		if len(p.sessions) >= most {
			p.mu.Unlock()
			return lease{}, fmt.Errorf("%w: %d others have sessions with this server; idle ones end after %v", feature.ErrNotSent, most, p.idle)
		}
		sl = new(slot)
		p.sessions[at] = sl
	}
	p.mu.Unlock()
	s, err := p.use(ctx, sl, ask, of, peer)
	if err != nil {
		return lease{}, err
	}
	return lease{session: s, slot: sl}, nil
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
	defer context.AfterFunc(life, cancel)() // a stop must not wait for a slow server
	s, err = p.open(ctx, ask, of, peer)
	if life.Err() != nil && err != nil {
		return nil, errStopped
	}
	if err != nil && of.principal != "" { // the server that others use has not failed
		return nil, fmt.Errorf("start the server for %s: %w", of.principal, err)
	}
	if err != nil {
		return nil, p.notOpened(err)
	}
	switch {
	case peer != nil && relay.Asks(peer.Capabilities()):
		s.heard(ctx)
	case of == tenant{}: // the next client may support questions
		s.hear()
	}
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.s = s
	sl.users++
	return s, nil
}

// lostMain tells the supervisor, before the call is retried, that the main session is gone; the
// goroutine that watches it may not have noticed yet.
func (p *Provider) lostMain(s *session, err error) {
	p.mu.Lock()
	main, failed := p.main, p.signals.Failed
	p.mu.Unlock()
	if s == main && s.t.failed() != nil {
		failed(err)
	}
}

// notOpened marks the failure to open a session: the call was never sent. If the server cannot
// be reached at all, the provider fails, too.
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
func (p *Provider) single(ctx context.Context, ask asking, client string, peer relay.Peer) (lease, error) {
	s, err := p.open(ctx, ask, tenant{client: client}, peer)
	if err != nil {
		return lease{}, p.notOpened(err)
	}
	return lease{session: s, single: true}, nil
}

// closeLater closes a session in the background, or at once if the provider is stopping.
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

// Release closes the session of a client that is gone, if it has one.
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

// recycle closes sessions that were not used for the idle time.
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
			if at.name == "" { // shared, like the main one
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
