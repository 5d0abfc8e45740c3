package embedded

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/controltest"
	"github.com/yaya-ai/yaya/control/jetstream"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/control/nodes"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/freeport"
	"github.com/yaya-ai/yaya/internal/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// team are the nodes of a cluster whose servers are
type team struct {
	t        *testing.T
	identity ed25519.PrivateKey
	all      []*node
}

type node struct {
	t       *testing.T
	name    string
	cfg     Config
	server  *Server
	conn    *nats.Conn
	files   *local.Log
	log     *jetstream.Log
	applied *controltest.Recorder
}

func folder(t *testing.T) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func config(t *testing.T, identity ed25519.PrivateKey, name string, routes ...string) Config {
	t.Helper()
	log := zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel).With().Str("node", name).Logger()
	return Config{Data: folder(t), Node: name, Identity: identity, Route: freeport.Addr(t), Routes: routes, Log: log}
}

// add adds a node, which knows those before.
func (m *team) add(name string) *node {
	m.t.Helper()
	var routes []string
	for _, n := range m.all {
		routes = append(routes, n.cfg.Route)
	}
	n := &node{t: m.t, name: name, cfg: config(m.t, m.identity, name, routes...)}
	m.t.Cleanup(n.stop)
	if len(m.all) == 0 {
		s, err := StartFirst(m.t.Context(), n.cfg)
		if err != nil {
			m.t.Fatal(err)
		}
		conn := connected(m.t, s, name)
		own := n.copy()
		if err := jetstream.Found(m.t.Context(), conn, jetstream.Options{Node: name}, own); err != nil {
			m.t.Fatal(err)
		}
		conn.Close()
		if err := errors.Join(s.Close(), own.Close()); err != nil {
			m.t.Fatal(err)
		}
	}
	n.start()
	m.all = append(m.all, n)
	return n
}

func connected(t *testing.T, s *Server, name string) *nats.Conn {
	t.Helper()
	conn, err := jetstream.Connect(nodes.Servers{}, name, zerolog.Nop(), s.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// copy opens the node's copy of the log.
func (n *node) copy() *local.Log {
	n.t.Helper()
	n.applied = &controltest.Recorder{}
	l, err := local.Open(journal.Root(n.cfg.Data), local.Options{Replica: true, Projections: []control.Projection{n.applied}})
	if err != nil {
		n.t.Fatal(err)
	}
	return l
}

func (n *node) start() {
	n.t.Helper()
	var err error
	if n.server, err = Start(n.t.Context(), n.cfg); err != nil {
		n.t.Fatal(err)
	}
	n.conn = connected(n.t, n.server, n.name)
	n.files = n.copy()
	if n.log, err = jetstream.Open(n.t.Context(), n.conn, jetstream.Options{Node: n.name, Copy: n.files}); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) stop() {
	n.t.Helper()
	if n.server == nil {
		return
	}
	err := n.log.Close()
	n.conn.Close()
	if err := errors.Join(err, n.files.Close(), n.server.Close()); err != nil {
		n.t.Error(err)
	}
	n.server = nil
}

func (n *node) append(target string) error {
	_, err := n.log.Append(n.t.Context(), control.Change{Event: "test_event", Actor: "tester", Target: target}, nil)
	return err
}

func (n *node) mustAppend(target string) {
	n.t.Helper()
	eventually.True(n.t, n.name+" makes the change "+target, func() bool { return n.append(target) == nil })
}

// keep resizes the log as the server that leads does, until so many servers keep it.
func (m *team) keep(copies int) {
	m.t.Helper()
	eventually.True(m.t, fmt.Sprint(copies, " servers keep the log"), func() bool {
		for _, n := range m.all {
			if n.server == nil || !n.server.Leads() {
				continue
			}
			size, err := n.server.Size()
			if err != nil {
				continue
			}
			if err := n.log.Resize(m.t.Context(), Copies(size)); err != nil {
				m.t.Log(err)
				continue
			}
			k, err := n.log.Keepers(m.t.Context())
			return err == nil && k.Copies == copies && len(k.Others) == copies-1 && n.log.State().Nodes == copies
		}
		return false
	})
}

// CL-01, CL-02: a cluster grows from one server to three, goes on without one of them and after a
// stop of all, and shrinks again; each entry stays where it was.
func TestGrowAndShrink(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	m := &team{t: t, identity: identityOf(t)}
	north := m.add("north")
	north.mustAppend("one")
	south := m.add("south")
	m.keep(2)
	south.mustAppend("two")
	for _, n := range []*node{south, north} { // whoever leads
		if err := north.log.Alone(t.Context(), n.name); err != nil {
			t.Fatal(err)
		}
		// A stream that one server keeps has no leader for a moment, as others see it.
		eventually.True(t, "the log is kept by "+n.name+" alone", func() bool {
			k, err := south.log.Keepers(t.Context())
			return err == nil && k.Leader == n.name && len(k.Others) == 0
		})
		n.mustAppend("by " + n.name)
		m.keep(2)
	}
	west := m.add("west")
	m.keep(3)
	west.mustAppend("three")

	south.stop()
	north.mustAppend("without south")
	south.start()
	south.mustAppend("again")

	for _, n := range m.all {
		n.stop()
	}
	for _, n := range m.all { // the first one starts without the others
		n.start()
	}
	west.mustAppend("after a start of all")

	west.stop()
	eventually.True(t, "the server of west no longer counts", func() bool {
		err := north.server.Drop(t.Context(), "west")
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
	m.keep(2)
	north.mustAppend("two again")
	var want []string
	for _, e := range north.applied.Entries() {
		want = append(want, e.Target)
	}
	eventually.True(t, "south has applied the same", func() bool {
		var got []string
		for _, e := range south.applied.Entries() {
			got = append(got, e.Target)
		}
		return slices.Equal(got, want)
	})
}
