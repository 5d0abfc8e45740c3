package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
)

const (
	// maxConns is how many connections a node has: a request, or a stream, has one for itself.
	maxConns = 4096
	// lookEvery is how often a node looks whether those are there that it has connections to.
	lookEvery = time.Second
	// silence is how long one may say nothing until its connections end.
	silence = 4 * time.Second
)

// ErrNobody means that no process is the node.
var ErrNobody = errors.New("the node is not running")

// The headers of a message at a door.
const (
	headFrom = "From" // the node that asks
	headRun  = "Run"  // of the process that asks, or answers
	headIdle = "Idle" // set if the process does not serve yet, or no longer
)

// Tunnel makes connections to other nodes, and takes those that they make. Its methods are safe for
// concurrent use.
type Tunnel struct {
	nc     *nats.Conn
	prefix string
	node   string
	run    string             // of this process
	sub    *nats.Subscription // at the door
	stop   context.CancelFunc
	job    sync.WaitGroup

	mu     sync.Mutex
	l      *listener // nil if nobody takes connections
	conns  map[*Conn]peer
	closed bool
}

// peer is the process at the other end of a connection.
type peer struct{ node, run string }

// New returns what makes the connections of a node until Close, and has others know that the node is
// there. The subjects begin with a prefix. If several processes are the same node, each is asked now
// and then.
func New(nc *nats.Conn, prefix, node string) (_ *Tunnel, err error) {
	t := &Tunnel{nc: nc, prefix: prefix, node: node, run: uuid.NewString(), conns: map[*Conn]peer{}}
	if t.sub, err = nc.QueueSubscribe(t.door(node), "node", t.asked); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	t.stop = stop
	t.job.Go(func() { t.watch(ctx) })
	return t, nil
}

// Listen takes connections from now on, once.
func (t *Tunnel) Listen() net.Listener {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.l = &listener{t: t, new: make(chan *Conn, maxConns), over: make(chan struct{})}
	return t.l
}

// door is the subject at which a node is asked.
func (t *Tunnel) door(node string) string { return t.prefix + ".door." + node }

// pipe is the subject of one end of a connection.
func (t *Tunnel) pipe() string { return t.prefix + ".pipe." + uuid.NewString() }

// ask asks a node: for a connection from a subject, or with "" whether it is there.
func (t *Tunnel) ask(ctx context.Context, node, from string) (to string, run string, err error) {
	m := nats.NewMsg(t.door(node))
	m.Header.Set(headFrom, t.node)
	m.Header.Set(headRun, t.run)
	m.Data = []byte(from)
	answer, err := t.nc.RequestMsgWithContext(ctx, m)
	if errors.Is(err, nats.ErrNoResponders) {
		return "", "", ErrNobody
	}
	if err != nil {
		return "", "", err
	}
	if from != "" && answer.Header.Get(headIdle) != "" {
		return "", "", ErrNobody // another process will be, or this one in a moment
	}
	return string(answer.Data), answer.Header.Get(headRun), nil
}

// Dial connects to a node. Its error wraps [ErrNobody] if no process is that node.
func (t *Tunnel) Dial(ctx context.Context, node string) (*Conn, error) {
	from := t.pipe()
	c, err := newConn(t.nc, from, addr(t.node), addr(node))
	if err != nil {
		return nil, fmt.Errorf("connect to node %s: %w", node, err)
	}
	to, run, err := t.ask(ctx, node, from)
	if err == nil && to == "" {
		err = errors.New("it takes no more connections")
	}
	if err == nil {
		c.mu.Lock()
		c.to = to
		c.mu.Unlock()
		err = t.keep(c, peer{node, run})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to node %s: %w", node, err), c.Close())
	}
	return c, nil
}

// keep adds a connection to those that are watched.
func (t *Tunnel) keep(c *Conn, p peer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return net.ErrClosed
	case len(t.conns) >= maxConns:
		return fmt.Errorf("this node has %d connections", maxConns)
	}
	t.conns[c] = p
	c.forget = func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.conns, c)
	}
	return nil
}

// asked answers another node.
func (t *Tunnel) asked(m *nats.Msg) {
	answer := nats.NewMsg(m.Reply)
	answer.Header.Set(headRun, t.run)
	if len(m.Data) == 0 {
		_ = t.nc.PublishMsg(answer) // who asks gives up by itself
		return
	}
	other := peer{m.Header.Get(headFrom), m.Header.Get(headRun)}
	from := t.pipe()
	c, err := newConn(t.nc, from, addr(t.node), addr(other.node))
	if err != nil {
		return
	}
	c.to = string(m.Data)
	kept := t.keep(c, other) == nil
	if kept && !t.offer(c) {
		answer.Header.Set(headIdle, "1")
		kept = false
	}
	if !kept {
		_ = c.Close()
		_ = t.nc.PublishMsg(answer)
		return
	}
	answer.Data = []byte(from)
	if t.nc.PublishMsg(answer) != nil {
		_ = c.Close()
	}
}

// offer gives a connection to the listener, if there is one.
func (t *Tunnel) offer(c *Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.l == nil {
		return false
	}
	t.l.new <- c // there is room for all
	return true
}

// Close ends all connections.
func (t *Tunnel) Close() error {
	t.mu.Lock()
	first, l := !t.closed, t.l
	t.closed = true
	t.mu.Unlock()
	if !first {
		return nil
	}
	t.stop()
	t.job.Wait()
	if l != nil {
		_ = l.Close()
	}
	t.fail(net.ErrClosed, func(peer) bool { return true })
	if err := t.sub.Unsubscribe(); !errors.Is(err, nats.ErrConnectionClosed) {
		return err
	}
	return nil
}

// listener gets the connections that other nodes make.
type listener struct {
	t    *Tunnel
	new  chan *Conn
	over chan struct{}
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c, ok := <-l.new:
		if ok {
			return c, nil
		}
	case <-l.over:
	}
	return nil, net.ErrClosed
}

// Close implements [net.Listener]. Connections that were accepted go on.
func (l *listener) Close() error {
	l.t.mu.Lock()
	first := l.t.l == l
	if first {
		l.t.l = nil
	}
	l.t.mu.Unlock()
	if !first {
		return nil
	}
	close(l.over)
	close(l.new)
	for c := range l.new {
		_ = c.Close()
	}
	return nil
}

// Addr implements [net.Listener]: it is the name of the node.
func (l *listener) Addr() net.Addr { return addr(l.t.node) }

// watch ends the connections to processes that are no longer there.
func (t *Tunnel) watch(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	heard := map[string]time.Time{} // by node
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := time.Now()
		for node := range heard {
			if !t.has(node) {
				delete(heard, node)
			}
		}
		for _, node := range t.others() {
			if heard[node].IsZero() {
				heard[node] = now
			}
			asking, done := context.WithTimeout(ctx, lookEvery)
			_, run, err := t.ask(asking, node, "")
			done()
			switch {
			case err == nil:
				heard[node] = time.Now()
				t.fail(errors.New("another process is that node now"), func(p peer) bool { return p.node == node && p.run != run })
			case errors.Is(err, ErrNobody) || time.Since(heard[node]) > silence:
				t.fail(fmt.Errorf("it is gone: %w", err), func(p peer) bool { return p.node == node })
			}
		}
	}
}

// others are the nodes with connections.
func (t *Tunnel) others() (out []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := map[string]bool{}
	for _, p := range t.conns {
		if !seen[p.node] {
			seen[p.node] = true
			out = append(out, p.node)
		}
	}
	return out
}

func (t *Tunnel) has(node string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.conns {
		if p.node == node {
			return true
		}
	}
	return false
}

// fail ends connections.
func (t *Tunnel) fail(err error, which func(peer) bool) {
	t.mu.Lock()
	var gone []*Conn
	for c, p := range t.conns {
		if which(p) {
			gone = append(gone, c)
			delete(t.conns, c)
		}
	}
	t.mu.Unlock()
	for _, c := range gone {
		c.mu.Lock()
		if c.end == nil {
			c.fail(err)
		}
		c.mu.Unlock()
		if errors.Is(err, net.ErrClosed) {
			_ = c.Close()
		}
	}
}
