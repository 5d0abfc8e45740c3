package jetstream_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/controltest"
	"github.com/yaya-ai/yaya/control/jetstream"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/freeport"
)

// cluster are servers, each with a node that is connected to it alone.
type cluster struct {
	t      testing.TB
	routes []*url.URL
	nodes  []*node
}

type node struct {
	name    string
	dir     string
	port    int
	mu      sync.Mutex // a connection is made to a server that runs, or not at all
	server  *server.Server
	conn    *nats.Conn
	files   *local.Log
	log     *jetstream.Log
	applied *controltest.Recorder
}

// newCluster starts three servers, and opens the log on each node.
func newCluster(t testing.TB) *cluster {
	t.Helper()
	return newClusterOf(t, 3)
}

// newClusterOf starts so many servers, and opens the log on each node.
func newClusterOf(t testing.TB, size int) *cluster {
	t.Helper()
	c := &cluster{t: t, nodes: make([]*node, size)}
	for i := range c.nodes {
		n := &node{name: fmt.Sprint("n", i), dir: t.TempDir(), port: freeport.Port(t), applied: &controltest.Recorder{}}
		c.nodes[i] = n
		c.routes = append(c.routes, &url.URL{Scheme: "nats", Host: fmt.Sprint("127.0.0.1:", n.port)})
	}
	for _, n := range c.nodes {
		c.start(n)
	}
	t.Cleanup(func() {
		for _, n := range c.nodes {
			if n.log != nil {
				if err := n.log.Close(); err != nil {
					t.Error(err)
				}
			}
			if n.files != nil {
				if err := n.files.Close(); err != nil {
					t.Error(err)
				}
			}
			if n.conn != nil {
				n.conn.Close()
			}
			c.stop(n)
		}
	})
	for _, n := range c.nodes {
		c.connect(n)
	}
	return c
}

// start starts the server of a node.
func (c *cluster) start(n *node) {
	c.t.Helper()
	s, err := server.NewServer(&server.Options{
		ServerName: n.name, Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: n.dir, SyncAlways: true, NoSigs: true, Routes: c.routes,
		Cluster: server.ClusterOpts{Name: "yaya", Host: "127.0.0.1", Port: n.port},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	n.mu.Lock()
	n.server = s
	n.mu.Unlock()
	s.Start()
	if !s.ReadyForConnections(30 * time.Second) {
		c.t.Fatalf("server %s is not ready", n.name)
	}
}

// stop ends the server of a node, whose connection goes on trying.
func (c *cluster) stop(n *node) {
	n.mu.Lock()
	s := n.server
	n.server = nil
	n.mu.Unlock()
	if s != nil {
		s.Shutdown()
		s.WaitForShutdown()
	}
}

func (n *node) up() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.server != nil
}

// inProcess has a connection find the server of a node, which may be another one later.
type inProcess struct{ n *node }

func (p inProcess) InProcessConn() (net.Conn, error) {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if p.n.server != nil {
		return p.n.server.InProcessConn()
	}
	return nil, errors.New("the server is down")
}

// connect connects a node, and opens its log.
func (c *cluster) connect(n *node) {
	c.t.Helper()
	var err error
	if n.conn, err = nats.Connect("", nats.InProcessServer(inProcess{n}), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond)); err != nil {
		c.t.Fatal(err)
	}
	n.files = replica(c.t, c.t.TempDir(), n.applied)
	o := jetstream.Options{Node: n.name, Replicas: len(c.nodes), Copy: n.files}
	if err := jetstream.Found(c.t.Context(), n.conn, o, n.files); err != nil { // the servers elect a leader first
		c.t.Fatal(err)
	}
	if n.log, err = jetstream.Open(c.t.Context(), n.conn, o); err != nil {
		c.t.Fatal(err)
	}
}

// leader returns the node whose server leads the stream.
func (c *cluster) leader() *node {
	c.t.Helper()
	var found *node
	eventually.True(c.t, "the stream has a leader", func() bool {
		for _, n := range c.nodes {
			if s := n.log.State(); s.Quorum {
				i := slices.IndexFunc(c.nodes, func(n *node) bool { return n.name == s.Leader })
				if i >= 0 && c.nodes[i].up() {
					found = c.nodes[i]
					return true
				}
			}
		}
		return false
	})
	return found
}

// same waits until all nodes have applied the same entries, and returns them.
func (c *cluster) same() []control.Entry {
	c.t.Helper()
	eventually.True(c.t, "all nodes have applied the same", func() bool {
		first := fmt.Sprint(c.nodes[0].applied.Entries())
		return fmt.Sprint(c.nodes[1].applied.Entries()) == first && fmt.Sprint(c.nodes[2].applied.Entries()) == first
	})
	return c.nodes[0].applied.Entries()
}

// CL-01: all nodes append while the server that leads is stopped and comes back, again and
// again. Each acknowledged change is in the log once, and all nodes have applied the same in the same order.
func TestLeadersFall(t *testing.T) {
	c := newCluster(t)
	acked := map[string]int64{}
	unknown := map[string]bool{}
	var mu sync.Mutex
	over := make(chan struct{})
	var writers sync.WaitGroup
	for _, n := range c.nodes {
		for w := range 2 {
			writers.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-over:
						return
					default:
					}
					target := fmt.Sprint(n.name, ".", w, ".", i)
					e, err := n.log.Append(t.Context(), control.Change{Event: "test_event", Actor: "tester", Target: target}, nil)
					mu.Lock()
					switch {
					case err == nil:
						acked[target] = e.Index
					case errors.Is(err, control.ErrUncertain):
						unknown[target] = true
					case !errors.Is(err, control.ErrUnavailable):
						t.Errorf("Append = %v, want ErrUnavailable", err)
					}
					mu.Unlock()
				}
			})
		}
	}
	for range 2 {
		grown(t, &mu, acked)
		n := c.leader()
		c.stop(n)
		grown(t, &mu, acked)
		c.start(n)
	}
	grown(t, &mu, acked)
	close(over)
	writers.Wait()
	entries := c.same()
	seen := map[string]int64{}
	for i, e := range entries {
		if e.Index != int64(i+1) {
			t.Fatalf("entry %d has index %d", i+1, e.Index)
		}
		if seen[e.Target] != 0 {
			t.Errorf("%s is in the log twice: entries %d and %d", e.Target, seen[e.Target], e.Index)
		}
		seen[e.Target] = e.Index
		if acked[e.Target] == 0 && !unknown[e.Target] {
			t.Errorf("entry %d, %s, is in the log and was refused", e.Index, e.Target)
		}
	}
	for target, index := range acked {
		if seen[target] != index {
			t.Errorf("%s was acknowledged as entry %d, and is %d", target, index, seen[target])
		}
	}
	t.Logf("%d acknowledged, %d uncertain, %d in the log", len(acked), len(unknown), len(entries))
}

// grown waits until more changes are acknowledged.
func grown(t *testing.T, mu *sync.Mutex, acked map[string]int64) {
	t.Helper()
	mu.Lock()
	before := len(acked)
	mu.Unlock()
	eventually.True(t, "more changes are made", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(acked) > before+30
	})
}

// R34: of many changes with the same check, on all nodes at once, exactly one succeeds.
func TestOnceAmongNodes(t *testing.T) {
	c := newCluster(t)
	taken := errors.New("taken")
	for round := range 5 {
		target := fmt.Sprint("code", round)
		var mu sync.Mutex
		won := 0
		var all sync.WaitGroup
		for _, n := range c.nodes {
			for range 4 {
				all.Go(func() {
					_, err := n.log.Append(t.Context(), control.Change{Event: "code_used", Actor: n.name, Target: target}, func() error {
						if slices.ContainsFunc(n.applied.Entries(), func(e control.Entry) bool { return e.Target == target }) {
							return taken
						}
						return nil
					})
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						won++
					} else if !errors.Is(err, taken) {
						t.Errorf("Append = %v, want that it is taken", err)
					}
				})
			}
		}
		all.Wait()
		if won != 1 {
			t.Errorf("%s was taken %d times, want once", target, won)
		}
	}
	c.same()
}

// CL-02: without a majority nothing is appended, what was applied is read, and the state says so.
// With one again, everything goes on, and what was refused is not there.
func TestWithoutMajority(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	c := newCluster(t)
	if _, err := c.nodes[0].log.Append(t.Context(), control.Change{Event: "test_event", Actor: "tester", Target: "before"}, nil); err != nil {
		t.Fatal(err)
	}
	c.same()
	c.stop(c.nodes[1])
	c.stop(c.nodes[2])
	eventually.True(t, "the quorum is lost", func() bool { return !c.nodes[0].log.State().Quorum })
	_, err := c.nodes[0].log.Append(t.Context(), control.Change{Event: "test_event", Actor: "tester", Target: "during"}, nil)
	if !errors.Is(err, control.ErrUnavailable) {
		t.Errorf("Append without a majority = %v, want ErrUnavailable", err)
	}
	uncertain := errors.Is(err, control.ErrUncertain)
	var read []string
	if err := c.nodes[0].log.Read(1, func(e control.Entry) error {
		read = append(read, e.Target)
		return fs.SkipAll
	}); err != nil || len(read) != 1 || read[0] != "before" {
		t.Errorf("Read without a majority = %q, %v, want the entry before", read, err)
	}
	c.start(c.nodes[1])
	c.start(c.nodes[2])
	eventually.True(t, "there is a quorum again", func() bool { return c.nodes[0].log.State().Quorum && c.nodes[0].log.State().Nodes == 3 })
	eventually.True(t, "a change is made again", func() bool {
		_, err := c.nodes[1].log.Append(t.Context(), control.Change{Event: "test_event", Actor: "tester", Target: "after"}, nil)
		return err == nil
	})
	for _, e := range c.same() {
		if e.Target == "during" && !uncertain {
			t.Error("a change that was refused is in the log")
		}
	}
}

// An event reaches the subscribers of all nodes.
func TestFanoutReachesNodes(t *testing.T) {
	c := newCluster(t)
	got := make(chan string, 16)
	var outs []*jetstream.Fanout
	for _, n := range c.nodes {
		f, err := jetstream.NewFanout(n.conn, "", zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		f.Subscribe(func(topic, event string, payload any) {
			got <- fmt.Sprintf("%s %s %s %s", n.name, topic, event, payload)
		})
		if err := n.conn.FlushTimeout(10 * time.Second); err != nil {
			t.Fatal(err)
		}
		outs = append(outs, f)
	}
	seen := map[string]bool{}
	eventually.True(t, "all nodes have the event", func() bool { // interest in a subject takes its time to spread
		outs[0].Publish("topic", "event", "x")
		for len(got) > 0 {
			seen[<-got] = true
		}
		return len(seen) == 3
	})
	for _, want := range []string{"n0 topic event x", `n1 topic event "x"`, `n2 topic event "x"`} {
		if !seen[want] {
			t.Errorf("got %v, want %q among them", seen, want)
		}
	}
}

// CL-05: a stream from which entries can be deleted, or whose entries do not follow each other, is refused.
func TestStreamsThatLose(t *testing.T) {
	conn := alone(t)
	api, err := js.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	l := open(t, conn, jetstream.Options{Node: "a", Copy: replica(t, t.TempDir())})
	if _, err := l.Append(t.Context(), control.Change{Event: "test_event", Actor: "tester"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Publish(t.Context(), "yaya_control", []byte(`{"id":"x","term":1,"event":"forged","actor":"owner","payload":{},"before":"x"}`)); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "a forged entry stops the log", func() bool {
		_, err := l.Append(t.Context(), control.Change{Event: "test_event", Actor: "tester"}, nil)
		return errors.Is(err, control.ErrUnavailable) && l.State().Last == 1 && !l.State().Quorum
	})
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := jetstream.Open(t.Context(), conn, jetstream.Options{Node: "a", Copy: replica(t, t.TempDir())}); !refused(err) {
		t.Errorf("Open of a log with a forged entry: %v, want that it is refused", err)
	}
	if _, err := api.CreateStream(t.Context(), js.StreamConfig{Name: "losing", Subjects: []string{"losing"}, AllowDirect: true, MaxAge: time.Hour, RePublish: &js.RePublish{Source: "losing", Destination: "losing.committed"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := jetstream.Open(t.Context(), conn, jetstream.Options{Node: "a", Stream: "losing", Copy: replica(t, t.TempDir())}); !refused(err) {
		t.Errorf("Open of a stream that forgets: %v, want that it is refused", err)
	}
}
