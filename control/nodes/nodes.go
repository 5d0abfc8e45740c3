package nodes

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// Limits of invitations.
const (
	inviteLife = 30 * time.Minute
	maxInvites = 32
)

var (
	// ErrRefused is the error about an invitation that is wrong, used, or has expired.
	ErrRefused = errors.New("the invitation is wrong, was used, or has expired")
	// ErrTaken is the error about a name that another node has.
	ErrTaken = errors.New("another node has that name")
	// ErrUnknown is the error about a node that is not a member.
	ErrUnknown = errors.New("no node has that name")
	// ErrRemoved is the error about this node, if it was removed or has never joined.
	ErrRemoved = errors.New("it was removed")
	// ErrLast is the error about the only member.
	ErrLast = errors.New("it is the only node: a cluster has one at least")
	// ErrRoute is the error about the address of a node that asks to join.
	ErrRoute = errors.New("the address of the node cannot be that")
)

// The events of the control log.
const (
	evInvited = "node_invited"
	evJoined  = "node_joined"
	evStarted = "node_started"
	evRemoved = "node_removed"
	evDrained = "node_drained"
)

type (
	invited struct {
		Hash    []byte    `json:"hmac"` // of the secret
		Expires time.Time `json:"expires_at"`
	}
	joined struct {
		Invite string `json:"invite,omitempty"` // "" for the one that founded the cluster
		Route  string `json:"route,omitempty"`
		// Incarnation of a cluster that was founded again.
		Incarnation string `json:"incarnation,omitempty"`
	}
	started struct {
		Run    string `json:"run"`
		Kernel string `json:"kernel,omitempty"`
		Route  string `json:"route,omitempty"` // which may have changed
	}
)

var name = lazyregexp.New(`^[a-z0-9][a-z0-9-]{0,62}$`)

// ValidName reports whether a node can have that name: a label of a host name, in lower case.
func ValidName(s string) bool { return name().MatchString(s) }

// Member is a node of the cluster.
type Member struct {
	Name    string    `json:"name"`
	Joined  time.Time `json:"joined_at"`
	Started time.Time `json:"started_at,omitzero"` // for the last time
	Kernel  string    `json:"kernel_id,omitempty" doc:"its kernel; missing until it has started with a version that says so"`
	Route   string    `json:"route,omitempty" doc:"where the other nodes reach its server; missing if the team's NATS servers keep the log"`
	// Drained is since when it takes no new clients, until it starts again or somebody ends that.
	Drained time.Time `json:"drained_at,omitzero" doc:"since when it takes no new MCP clients; missing if it does"`
	run     string
}

// Config assembles [Nodes].
type Config struct {
	Node     Node
	Kernel   string             // id of this node's kernel, for the other nodes
	Identity ed25519.PrivateKey // of the cluster
	Now      func() time.Time   // default time.Now
	// Lost is called once, when this node may no longer be one: it was removed, or another
	// process has started as this node. It must not block, nor append.
	Lost func(error)
	// Leave takes the server of a node out of those that keep the log, before the node is removed;
	// nil: no node has one.
	Leave func(ctx context.Context, node string) error
}

// Nodes is a projection of the control log: pass it when you open the log, and then pass the
// log to [Nodes.Start]. All methods are safe for concurrent use.
type Nodes struct {
	cfg Config
	log control.Log
	run string // of this process

	mu      sync.Mutex
	members map[string]*Member
	invites map[string]invited
	removed map[string]bool
	drained atomic.Bool
	running bool // this process has started as the node
	lost    bool
}

var _ control.Projection = (*Nodes)(nil)

// New returns the nodes of a cluster that this one is a member of.
func New(cfg Config) *Nodes {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Nodes{cfg: cfg, run: rand.Text(), members: map[string]*Member{}, invites: map[string]invited{}, removed: map[string]bool{}}
}

// Apply implements [control.Projection].
func (n *Nodes) Apply(e control.Entry) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch e.Event {
	case evInvited:
		var p invited
		if err := e.Decode(&p); err != nil {
			return err
		}
		n.invites[e.Target] = p
	case evJoined:
		var p joined
		if err := e.Decode(&p); err != nil {
			return err
		}
		delete(n.invites, p.Invite)
		delete(n.removed, e.Target)
		n.members[e.Target] = &Member{Name: e.Target, Joined: e.Time, Route: p.Route}
	case evStarted:
		var p started
		if err := e.Decode(&p); err != nil {
			return err
		}
		if m := n.members[e.Target]; m != nil {
			m.Started, m.run, m.Kernel, m.Drained = e.Time, p.Run, p.Kernel, time.Time{}
			m.Route = cmp.Or(p.Route, m.Route)
		}
	case evDrained:
		var p drained
		if err := e.Decode(&p); err != nil {
			return err
		}
		if m := n.members[e.Target]; m != nil {
			m.Drained = p.since(e.Time)
		}
	case evRemoved:
		delete(n.members, e.Target)
		n.removed[e.Target] = true
	default:
		return nil
	}
	n.note()
	n.check()
	return nil
}

// check finds out whether this process is still the node; mu is held.
func (n *Nodes) check() {
	if !n.running || n.lost {
		return
	}
	if err := n.still(); err != nil {
		n.lose(err)
	}
}

// Lose ends this process as a node, for a reason that the log does not have.
func (n *Nodes) Lose(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lose(err)
}

// lose is Lose; mu is held.
func (n *Nodes) lose(err error) {
	if !n.lost && n.cfg.Lost != nil {
		n.cfg.Lost(err)
	}
	n.lost = true
}

// still returns why this process is no longer the node; mu is held.
func (n *Nodes) still() error {
	switch m := n.members[n.cfg.Node.Name]; {
	case m == nil:
		return fmt.Errorf("the node %s is not a member of the cluster: %w; to have it join again: yaya cluster join INVITATION", n.cfg.Node.Name, ErrRemoved)
	case n.running && m.run != n.run:
		return fmt.Errorf("another process has started as the node %s: each node needs a data directory of its own, and no copy of another one's", n.cfg.Node.Name)
	}
	return nil
}

// Start says in the log that this process is the node from now on; another one that was it
// finds out. An error that wraps [control.ErrUnavailable] can be retried: so that a node starts
// while nothing can be written.
func (n *Nodes) Start(ctx context.Context, log control.Log) error {
	n.mu.Lock()
	n.log = log
	n.mu.Unlock()
	_, err := log.Append(ctx, control.Change{Event: evStarted, Actor: n.cfg.Node.Name, Target: n.cfg.Node.Name, Payload: started{n.run, n.cfg.Kernel, n.cfg.Node.Route}}, func() error {
		n.mu.Lock()
		defer n.mu.Unlock()
		if err := n.still(); err != nil {
			return err
		}
		return n.freeRoute(n.cfg.Node.Name, n.cfg.Node.Route)
	})
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.running = true
	n.note()
	n.check() // another one may have started since
	return nil
}

// freeRoute returns an error if another node has an address; mu is held.
func (n *Nodes) freeRoute(node, route string) error {
	for _, m := range n.members {
		if route != "" && m.Route == route && m.Name != node {
			return fmt.Errorf("%w: the node %s has it", ErrRoute, m.Name)
		}
	}
	return nil
}

// Members returns the nodes of the cluster, by name.
func (n *Nodes) Members() []Member {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]Member, 0, len(n.members))
	for _, m := range n.members {
		out = append(out, *m)
	}
	slices.SortFunc(out, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Name returns the name of this node.
func (n *Nodes) Name() string { return n.cfg.Node.Name }

// Removed reports whether a node was a member and was removed. A node that this one does not know
// yet was not.
func (n *Nodes) Removed(node string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.removed[node]
}

// Check returns an error if this node was removed, as far as it knows: it may not have heard of that.
func (n *Nodes) Check() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.removed[n.cfg.Node.Name] {
		return n.still()
	}
	return nil
}

// Routes returns where the other nodes are reached, as far as this one knows them: from the log, and
// before it has read that from when it joined.
func (n *Nodes) Routes() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.members[n.cfg.Node.Name] == nil {
		return slices.Clone(n.cfg.Node.Routes)
	}
	var out []string
	for _, m := range n.members {
		if m.Name != n.cfg.Node.Name && m.Route != "" {
			out = append(out, m.Route)
		}
	}
	slices.Sort(out)
	return out
}

// Remove removes a node, by the decision of somebody. That node stops when it hears of it. It has
// seen the identity key, and what it needs for the servers of the log.
func (n *Nodes) Remove(ctx context.Context, actor, node string) error {
	member := func() error {
		n.mu.Lock()
		defer n.mu.Unlock()
		switch {
		case n.members[node] == nil:
			return ErrUnknown
		case len(n.members) == 1:
			return ErrLast
		}
		return nil
	}
	if err := member(); err != nil {
		return err
	}
	if n.cfg.Leave != nil { // first: a node ends when it hears that it was removed, and may be needed for this
		if err := n.cfg.Leave(ctx, node); err != nil {
			return err
		}
	}
	_, err := n.log.Append(ctx, control.Change{Event: evRemoved, Actor: actor, Target: node}, member)
	return err
}

// hash returns the form of an invitation's secret in the log.
func (n *Nodes) hash(id string, secret []byte) []byte {
	m := hmac.New(sha256.New, n.cfg.Identity.Seed())
	fmt.Fprintf(m, "yaya-node-invite-v1\n%s\n", id)
	m.Write(secret)
	return m.Sum(nil)
}

// Founded returns the change by which the first node becomes a member.
func Founded(n Node) control.Change {
	return control.Change{Event: evJoined, Actor: control.Owner, Target: n.Name, Payload: joined{Route: n.Route, Incarnation: n.Incarnation}}
}
