package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/yaya-ai/yaya/internal/netaddr"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Bounds of asks about hosts.
const (
	maxAsks      = 8  // of a command
	maxTurnAsks  = 24 // of a turn
	maxDenials   = 16 // that a result names
	maxSessions  = 4096
	maxReachable = 256 // hosts that a session may reach
)

// hostAnswers stores the answers about hosts. It is safe for concurrent use.
type hostAnswers struct {
	mu       sync.Mutex
	sessions map[string]map[string]bool // allowed hosts, by root session
	turns    map[string]*turnHosts      // by session
}

// turnHosts stores the answers about hosts during a turn.
type turnHosts struct {
	turn    string
	asked   int
	refused map[string]string // reason, by host
}

// of returns the answers of a turn; the caller holds mu.
func (h *hostAnswers) of(session, turn string) *turnHosts {
	t := h.turns[session]
	if t == nil || t.turn != turn {
		if h.turns == nil || len(h.turns) >= maxSessions {
			h.turns = map[string]*turnHosts{}
		}
		t = &turnHosts{turn: turn, refused: map[string]string{}}
		h.turns[session] = t
	}
	return t
}

// begin returns whether a host is allowed without asking. If it is not, why is the reason not
// to ask; "" means that a person has to be asked.
func (h *hostAnswers) begin(session, turn, host string) (ok bool, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sessions[event.Root(session)][host] {
		return true, ""
	}
	t := h.of(session, turn)
	if why := t.refused[host]; why != "" {
		return false, why
	}
	if t.asked++; t.asked > maxTurnAsks {
		return false, fmt.Sprintf("this turn has already asked about %d hosts", maxTurnAsks)
	}
	return false, ""
}

// allowed reports whether a session may reach a host without asking.
func (h *hostAnswers) allowed(session, host string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions[event.Root(session)][host]
}

// allow allows a host for a session from now on.
func (h *hostAnswers) allow(session, host string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := event.Root(session)
	if h.sessions == nil || len(h.sessions) >= maxSessions {
		h.sessions = map[string]map[string]bool{}
	}
	if h.sessions[at] == nil || len(h.sessions[at]) >= maxReachable {
		h.sessions[at] = map[string]bool{}
	}
	h.sessions[at][host] = true
}

// refuse prevents further questions about a host in a turn.
func (h *hostAnswers) refuse(session, turn, host, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of(session, turn).refused[host] = why
}

// reach controls the hosts of one command beyond those in its list: it asks a person about
// others, and remembers refusals. The questions end with the command.
type reach struct {
	p       *Plugin
	call    tool.Call
	command string
	cwd     string
	clock   *clock
	quiet   bool // nobody is asked: hosts that are allowed are reached

	ctx    context.Context // a base context: of one command, for the connections that it makes
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex
	ended  bool
	asked  map[string]*hostAsk
	denied []sandbox.Denial
	failed []sandbox.Denial // that were allowed
	more   int              // those not in denied
}

// hostAsk is a question about a host, for all connections of a command that wait for the
// answer.
type hostAsk struct {
	done chan struct{} // closed with the answer
	ok   bool
	why  string // not
}

func (p *Plugin) newReach(ctx context.Context, call tool.Call, command, cwd string, c *clock) *reach {
	r := &reach{p: p, call: call, command: command, cwd: cwd, clock: c, asked: map[string]*hostAsk{}}
	r.ctx, r.cancel = context.WithCancel(ctx)
	return r
}

// end withdraws the questions after the command has ended.
func (r *reach) end() {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.cancel()
	r.work.Wait()
}

// ask implements [sandbox.Net.Ask]. It blocks only one connection.
func (r *reach) ask(ctx context.Context, host string, port int) bool {
	key := net.JoinHostPort(host, strconv.Itoa(port))
	a := r.question(key, host, port)
	select {
	case <-a.done:
		return a.ok
	case <-ctx.Done():
		return false
	}
}

// question returns the question about a host, and asks it if necessary.
func (r *reach) question(key, host string, port int) *hostAsk {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.asked[key]; a != nil {
		return a
	}
	a := &hostAsk{done: make(chan struct{})}
	switch {
	case r.quiet:
		a.ok = !private(host) && r.p.hosts.allowed(r.call.SessionID, key)
	case r.ended, private(host), len(r.asked) >= maxAsks: // see why
	default:
		r.asked[key] = a
		if a.ok, a.why = r.p.hosts.begin(r.call.SessionID, r.call.Turn, key); !a.ok && a.why == "" {
			r.work.Go(func() { r.put(a, key, host, port) })
			return a
		}
	}
	close(a.done)
	return a
}

// private reports whether a host is an address that the proxy dials only if it is listed
// itself, or the name of one: an answer would have no effect, or concern yaya's own port.
func private(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") { // RFC 6761 section 6.3
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && !netaddr.Public(addr)
}

// put asks a person. An approval applies to this command, or to the session.
func (r *reach) put(a *hostAsk, key, host string, port int) {
	defer close(a.done)
	r.clock.pause()
	defer r.clock.resume()
	a.ok, a.why = r.p.putHost(r.ctx, r.call, key, struct {
		Host    string `json:"host"`
		Port    int    `json:"port"`
		Command string `json:"command"`
		Cwd     string `json:"cwd"`
	}{host, port, r.command, r.cwd}, "the command wants to reach "+key)
	if !a.ok && r.ctx.Err() != nil {
		a.why = "nobody answered before the command ended"
	}
}

// refused implements [sandbox.Net.Denied].
func (r *reach) refused(d sandbox.Denial) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.denied, d) {
		return
	}
	if len(r.denied) >= maxDenials {
		r.more++
		return
	}
	r.denied = append(r.denied, d)
}

// unreached implements [sandbox.Net.Unreached].
func (r *reach) unreached(host string, port int, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := (sandbox.Denial{Host: host, Port: port, Why: why}); len(r.failed) < maxDenials && !slices.Contains(r.failed, d) {
		r.failed = append(r.failed, d)
	}
}

// notes describes the denials of the command, and how to allow them. It is called after end.
func (r *reach) notes(profile string) (notes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var allow []string
	for _, d := range r.denied {
		notes = append(notes, fmt.Sprintf("the command was kept from reaching %s (profile %s): %s", net.JoinHostPort(d.Host, strconv.Itoa(d.Port)), profile, r.why(d)))
		if d.Allow != "" {
			allow = append(allow, d.Allow)
		}
	}
	if r.more > 0 {
		notes = append(notes, fmt.Sprintf("the command was kept from reaching hosts %d more times", r.more))
	}
	for _, d := range r.failed {
		notes = append(notes, fmt.Sprintf("the command could not reach %s (profile %s): %s", net.JoinHostPort(d.Host, strconv.Itoa(d.Port)), profile, d.Why))
	}
	if by := r.p.AllowHosts(allow...); by != "" {
		notes = append(notes, "its user can allow it: "+by)
	}
	return notes
}

// why returns the reason why the command was kept from a host; the caller holds mu.
func (r *reach) why(d sandbox.Denial) string {
	a := r.asked[net.JoinHostPort(d.Host, strconv.Itoa(d.Port))]
	switch {
	case a != nil && a.why != "":
		return a.why
	case private(d.Host) && d.Allow != "":
		return "yaya does not ask about addresses outside the public internet"
	case r.quiet:
		return "nobody is asked about hosts of a command in the background"
	case a == nil && len(r.asked) >= maxAsks:
		return fmt.Sprintf("one command can ask about at most %d hosts", maxAsks)
	}
	return d.Why
}
