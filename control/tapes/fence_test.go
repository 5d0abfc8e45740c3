package tapes_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/yaya-ai/yaya/control/tapes"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/natstest"
)

// freezer is a way to a server that can be held up in both directions, like a machine that stands still.
type freezer struct {
	s  *server.Server
	mu sync.RWMutex
}

type frozen struct {
	net.Conn
	f *freezer
}

func (f *freezer) InProcessConn() (net.Conn, error) {
	c, err := f.s.InProcessConn()
	return frozen{c, f}, err
}

func (c frozen) Write(p []byte) (int, error) {
	c.f.mu.RLock()
	defer c.f.mu.RUnlock()
	return c.Conn.Write(p)
}

func (c frozen) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.f.mu.RLock()
	defer c.f.mu.RUnlock()
	return n, err
}

// CL-04: a node that stands still longer than its lease is refused when it goes on: what it writes then
// reaches nobody, and it knows.
func TestFence(t *testing.T) {
	s := natstest.Start(t)
	way := &freezer{s: s}
	south := start(t, s, "south", nats.InProcessServer(way))
	north := start(t, s, "north")
	south.holds("sess_a")
	south.kept("sess_a", south.write("sess_a", "tapes/a.jsonl", "gen1", "gen1 one\n"))

	way.mu.Lock()
	got := north.takes("sess_a")
	if got["tapes/a.jsonl"] != "gen1 one\n" {
		t.Errorf("north got %q", got)
	}
	if err := north.data.MkdirAll("tapes", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := north.data.WriteFile("tapes/a.jsonl", []byte("gen1 one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	north.kept("sess_a", north.write("sess_a", "tapes/a.jsonl", "gen1", "two of north\n"))
	late := south.write("sess_a", "tapes/a.jsonl", "gen1", "two of south\n")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := south.Hold(ctx, "sess_a", "/work"); !errors.Is(err, tapes.ErrUnavailable) {
		t.Errorf("a node without a lease may act: %v", err)
	}
	way.mu.Unlock()

	if got := <-south.lost; got != "sess_a north" {
		t.Errorf("south learns that it lost %q", got)
	}
	err := south.Kept(t.Context(), "sess_a", late)
	if e, is := errors.AsType[*tapes.ElsewhereError](err); !is || e.Node != "north" {
		t.Errorf("what it wrote late: %v", err)
	}
	if is, err := south.Copied(t.Context(), "sess_a", []tapes.File{late}); is || err != nil {
		t.Errorf("what it wrote late is said to be copied: %v, %v", is, err)
	}
	dir, err := south.Fetch(t.Context(), "sess_a")
	if err != nil {
		t.Fatal(err)
	}
	if got := south.read(dir)["tapes/a.jsonl"]; got != "gen1 one\ntwo of north\n" {
		t.Errorf("the cluster has %q", got)
	}
}

// A session that several nodes begin in the same moment has one owner.
func TestOneOwner(t *testing.T) {
	s := natstest.Start(t)
	var all []*node
	for i := range 4 {
		all = append(all, start(t, s, fmt.Sprint("n", i)))
	}
	for i := range 20 {
		var owners atomic.Int64
		var work sync.WaitGroup
		for _, n := range all {
			work.Go(func() {
				err := n.Hold(t.Context(), fmt.Sprint("sess_", i), "/work")
				if err == nil {
					owners.Add(1)
				} else if _, is := errors.AsType[*tapes.ElsewhereError](err); !is {
					t.Error(err)
				}
			})
		}
		work.Wait()
		if owners.Load() != 1 {
			t.Errorf("session %d has %d owners", i, owners.Load())
		}
	}
}

// Other nodes get the files of a session as they are, whatever happens to them, and also those that changed
// while the node did not run.
func TestCopiesFollow(t *testing.T) {
	s := natstest.Start(t)
	south, north := start(t, s, "south"), start(t, s, "north")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // for a test
	south.holds("sess_a")
	generation := 1
	south.write("sess_a", "tapes/a.jsonl", "gen1", "gen1 begins\n")
	for i := range 300 {
		name := fmt.Sprintf("sessions/sess_a/f%d", r.IntN(3))
		switch k := r.IntN(20); {
		case k == 0: // the tape begins again
			generation++
			if err := south.data.WriteFile("tapes/a.jsonl", nil, 0o600); err != nil {
				t.Fatal(err)
			}
			south.write("sess_a", "tapes/a.jsonl", fmt.Sprint("gen", generation), fmt.Sprintf("gen%d begins\n", generation))
		case k == 1: // it is cut, and goes on
			if got, err := south.data.ReadFile("tapes/a.jsonl"); err == nil && len(got) > 40 {
				if err := south.data.WriteFile("tapes/a.jsonl", got[:20], 0o600); err != nil {
					t.Fatal(err)
				}
				south.Grew("sess_a", tapes.File{Name: "tapes/a.jsonl", Generation: fmt.Sprint("gen", generation)})
				south.write("sess_a", "tapes/a.jsonl", fmt.Sprint("gen", generation), "cut\n")
			}
		case k == 2:
			south.stop()
			south.write("sess_a", name, "", fmt.Sprint("while it was off ", i))
			south.open()
			south.holds("sess_a")
		case k < 8:
			south.write("sess_a", name, "", strings.Repeat(fmt.Sprint(i, " "), r.IntN(40000)))
		default:
			south.write("sess_a", "tapes/a.jsonl", fmt.Sprint("gen", generation), fmt.Sprintf("gen%d %d %s\n", generation, i, strings.Repeat("x", r.IntN(3000))))
		}
	}
	want := south.read(".")
	maps.DeleteFunc(want, func(name, _ string) bool { return strings.HasPrefix(name, "arriving/") })
	var last map[string]string
	eventually.True(t, "north can get what south has", func() bool {
		dir, err := north.Fetch(t.Context(), "sess_a")
		if err != nil {
			t.Fatal(err)
		}
		last = north.read(dir)
		return maps.Equal(last, want)
	})
	names := slices.Sorted(maps.Keys(last))
	t.Logf("%v, the tape has %d bytes", names, len(last["tapes/a.jsonl"]))
}

// A node that has less of a session than the cluster does not write to it.
func TestBehind(t *testing.T) {
	s := natstest.Start(t)
	south := start(t, s, "south")
	south.holds("sess_a")
	south.write("sess_a", "tapes/a.jsonl", "gen1", "gen1 one\n")
	south.kept("sess_a", south.write("sess_a", "tapes/a.jsonl", "gen1", "two\n"))
	south.stop()
	if err := south.data.WriteFile("tapes/a.jsonl", []byte("gen1 one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	south.files["sess_a"][0].Size = int64(len("gen1 one\n"))
	south.open()
	if err := south.Hold(t.Context(), "sess_a", "/work"); !errors.Is(err, tapes.ErrBehind) {
		t.Fatalf("Hold() = %v, want that the cluster has more", err)
	}
	if got := south.takes("sess_a"); got["tapes/a.jsonl"] != "gen1 one\ntwo\n" {
		t.Errorf("it gets %q", got)
	}
}

// Nodes list what others have said of their sessions, as long as these exist.
func TestRows(t *testing.T) {
	s := natstest.Start(t)
	south, north := start(t, s, "south"), start(t, s, "north")
	south.holds("sess_a")
	south.holds("sess_b")
	south.Describe("sess_a", []byte(`{"title":"one"}`))
	south.Describe("sess_a", []byte(`{"title":"two"}`))
	rows := func(n *node, of ...string) string {
		t.Helper()
		all, err := n.Rows(t.Context(), of)
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, r := range all {
			words = append(words, fmt.Sprint(r.Session, "@", r.Node, r.Workspace, string(r.Data)))
		}
		slices.Sort(words)
		return strings.Join(words, " ")
	}
	eventually.True(t, "north knows the sessions of south", func() bool {
		return rows(north, "south", "west") == `sess_a@south/work{"title":"two"} sess_b@south/work`
	})
	if got := rows(north, "north"); got != "" {
		t.Errorf("north has %s", got)
	}
	south.write("sess_a", "tapes/a.jsonl", "gen1", "gen1 one\n")
	south.kept("sess_a", tapes.File{Name: "tapes/a.jsonl", Generation: "gen1", Size: 9})
	if err := south.Gone(t.Context(), "sess_b"); err != nil {
		t.Fatal(err)
	}
	south.stop()
	north.takes("sess_a")
	eventually.True(t, "north has said that the session is its own", func() bool {
		return rows(north, "north", "south") == `sess_a@north/work{"title":"two"}`
	})
	if _, err := north.Takeover(t.Context(), "sess_b", func(string) error { return nil }); !errors.Is(err, tapes.ErrUnknown) {
		t.Errorf("a session that was deleted: %v", err)
	}
	north.holds("sess_b") // its id can be used again
}
