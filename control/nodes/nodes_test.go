package nodes_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/control/nodes"
	"github.com/yaya-ai/yaya/internal/journal"
)

// world is a log that several nodes have applied.
type world struct {
	identity ed25519.PrivateKey
	log      *local.Log
	nodes    []*nodes.Nodes
	lost     []chan error
	now      time.Time
	left     []string // nodes whose servers were taken out
	leave    error    // why one cannot be
}

// newWorld founds a cluster with the first of the names; all of them see the log.
func newWorld(t *testing.T, names ...string) *world {
	t.Helper()
	var all []nodes.Node
	for _, name := range names {
		all = append(all, nodes.Node{Name: name, Servers: nodes.Servers{URL: "nats://nats.example:4222", Credentials: "creds"}})
	}
	return newWorldOf(t, all...)
}

func newWorldOf(t *testing.T, them ...nodes.Node) *world {
	t.Helper()
	w := &world{now: time.Now()}
	var err error
	if _, w.identity, err = ed25519.GenerateKey(rand.Reader); err != nil {
		t.Fatal(err)
	}
	var all []control.Projection
	for _, node := range them {
		lost := make(chan error, 1)
		n := nodes.New(nodes.Config{
			Node: node, Kernel: "kernel-of-" + node.Name, Identity: w.identity,
			Now: func() time.Time { return w.now }, Lost: func(err error) { lost <- err },
			Leave: func(_ context.Context, node string) error {
				if w.leave == nil {
					w.left = append(w.left, node)
				}
				return w.leave
			},
		})
		w.nodes, w.lost, all = append(w.nodes, n), append(w.lost, lost), append(all, n)
	}
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if w.log, err = local.Open(journal.Root(root), local.Options{Projections: all}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.log.Close()
		_ = root.Close()
	})
	if _, err := w.log.Append(t.Context(), nodes.Founded(them[0]), nil); err != nil {
		t.Fatal(err)
	}
	if err := w.nodes[0].Start(t.Context(), w.log); err != nil {
		t.Fatal(err)
	}
	return w
}

// invite returns an invitation as it was typed.
func (w *world) invite(t *testing.T) nodes.Invitation {
	t.Helper()
	i, err := w.nodes[0].Invite(t.Context(), control.Owner, "https://gate.example:8787")
	if err != nil {
		t.Fatal(err)
	}
	typed, err := nodes.ParseInvitation(" " + i.String() + "\n")
	if err != nil {
		t.Fatal(err)
	}
	return typed
}

func (w *world) join(ctx context.Context, i nodes.Invitation, name string) (nodes.Welcome, error) {
	asking, err := nodes.Ask(i, name, "")
	if err != nil {
		return nodes.Welcome{}, err
	}
	answer, err := w.nodes[0].Answer(ctx, asking.Request)
	if err != nil {
		return nodes.Welcome{}, err
	}
	return asking.Welcome(answer)
}

// CL-06: an invitation makes one node a member, which gets what it needs, and nobody twice.
func TestJoin(t *testing.T) {
	w := newWorld(t, "north", "south")
	i := w.invite(t)
	got, err := w.join(t.Context(), i, "south")
	if err != nil {
		t.Fatal(err)
	}
	if got.Node.Name != "south" || got.Node.Servers.URL != "nats://nats.example:4222" || got.Node.Servers.Credentials != "creds" || !bytes.Equal(got.Identity, w.identity.Seed()) {
		t.Errorf("the new node gets %+v, want the servers and the identity", got)
	}
	if m := w.nodes[1].Members(); len(m) != 2 || m[0].Name != "north" || m[1].Name != "south" || m[0].Started.IsZero() || !m[1].Started.IsZero() {
		t.Errorf("the members are %+v, want north, which has started, and south", m)
	} else if m[0].Kernel != "kernel-of-north" || m[1].Kernel != "" {
		t.Errorf("the kernels of north and south are %q and %q, want that of north: south has not started", m[0].Kernel, m[1].Kernel)
	}
	if _, err := w.join(t.Context(), i, "west"); !errors.Is(err, nodes.ErrRefused) {
		t.Errorf("the invitation a second time: %v, want ErrRefused", err)
	}
	if err := w.nodes[1].Start(t.Context(), w.log); err != nil {
		t.Errorf("the new node starts: %v", err)
	}
}

// CL-06: an invitation that is wrong, replayed, or has expired, and requests that are anything
// else, change nothing.
func TestBadJoins(t *testing.T) {
	w := newWorld(t, "north")
	i := w.invite(t)
	wrong, unknown := i, i
	wrong.Secret, unknown.ID = bytes.Repeat([]byte{1}, 16), "ABCDEFGHIJKL"
	other := newWorld(t, "north").invite(t)
	for what, bad := range map[string]nodes.Invitation{"a wrong secret": wrong, "an unknown id": unknown, "another cluster's": other} {
		if _, err := w.join(t.Context(), bad, "south"); !errors.Is(err, nodes.ErrRefused) {
			t.Errorf("%s: %v, want ErrRefused", what, err)
		}
	}
	for _, raw := range [][]byte{nil, []byte("{}"), bytes.Repeat([]byte{0}, 100), make([]byte, nodes.MaxJoin+1)} {
		if _, err := w.nodes[0].Answer(t.Context(), raw); !errors.Is(err, nodes.ErrRefused) {
			t.Errorf("a request of %d bytes: %v, want ErrRefused", len(raw), err)
		}
	}
	if _, err := w.join(t.Context(), i, "north"); !errors.Is(err, nodes.ErrTaken) {
		t.Errorf("the name of another node: %v, want ErrTaken", err)
	}
	for _, name := range []string{"", "North", "a b", "-x", "ä"} {
		if _, err := nodes.Ask(i, name, ""); err == nil {
			t.Errorf("%q is the name of a node, want an error", name)
		}
	}
	w.now = w.now.Add(31 * time.Minute)
	if _, err := w.join(t.Context(), i, "south"); !errors.Is(err, nodes.ErrRefused) {
		t.Errorf("an invitation that has expired: %v, want ErrRefused", err)
	}
	if m := w.nodes[0].Members(); len(m) != 1 {
		t.Errorf("the members are %+v, want one", m)
	}
	for _, s := range []string{"", "yaya-join-", "yaya-join-e30", i.String()[1:], "yaya-join-!"} {
		if _, err := nodes.ParseInvitation(s); err == nil {
			t.Errorf("%q is an invitation, want an error", s)
		}
	}
}

// CL-06: an answer is only for who has asked, and says nothing to others.
func TestAnswersAreSealed(t *testing.T) {
	w := newWorld(t, "north")
	asking, err := nodes.Ask(w.invite(t), "south", "")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := w.nodes[0].Answer(t.Context(), asking.Request)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(answer, w.identity.Seed()) || bytes.Contains(answer, []byte("creds")) || bytes.Contains(asking.Request, []byte("south")) {
		t.Error("what is sent shows what is in it")
	}
	if other, err := nodes.Ask(w.invite(t), "south", ""); err != nil {
		t.Fatal(err)
	} else if _, err := other.Welcome(answer); err == nil {
		t.Error("an answer to another node was accepted, want an error")
	}
	if _, err := asking.Welcome(asking.Request); err == nil {
		t.Error("a request passed for its answer, want an error")
	}
	answer[len(answer)-1] ^= 1
	if _, err := asking.Welcome(answer); err == nil {
		t.Error("an answer that was changed was accepted, want an error")
	}
}

// CL-06, R34: of several nodes with one invitation, one joins.
func TestOneInvitationOneNode(t *testing.T) {
	w := newWorld(t, "north")
	i := w.invite(t)
	var mu sync.Mutex
	var in int
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		all.Go(func() {
			_, err := w.join(t.Context(), i, name)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				in++
			} else if !errors.Is(err, nodes.ErrRefused) {
				t.Errorf("%s: %v, want ErrRefused", name, err)
			}
		})
	}
	all.Wait()
	if m := w.nodes[0].Members(); in != 1 || len(m) != 2 {
		t.Errorf("%d nodes joined, and there are %d members, want 1 and 2", in, len(m))
	}
}

// CL-07: of two processes with the name of one node the older one ends, and a node that was
// removed ends, and cannot start again.
func TestWhoIsNoLongerANode(t *testing.T) {
	w := newWorld(t, "north", "north", "south")
	if err := w.nodes[1].Start(t.Context(), w.log); err != nil {
		t.Fatal(err)
	}
	if len(w.lost[0]) != 1 || len(w.lost[1]) != 0 {
		t.Errorf("the older one lost: %d, the newer one: %d, want 1 and 0", len(w.lost[0]), len(w.lost[1]))
	}
	if err := w.nodes[2].Start(t.Context(), w.log); err == nil {
		t.Error("a node that has not joined has started, want an error")
	}
	if _, err := w.join(t.Context(), w.invite(t), "south"); err != nil {
		t.Fatal(err)
	}
	if err := w.nodes[2].Start(t.Context(), w.log); err != nil {
		t.Fatal(err)
	}
	if err := w.nodes[1].Remove(t.Context(), control.Owner, "south"); err != nil {
		t.Fatal(err)
	}
	if len(w.lost[2]) != 1 {
		t.Error("the node that was removed goes on")
	}
	if err := w.nodes[2].Start(t.Context(), w.log); err == nil {
		t.Error("the node that was removed starts again, want an error")
	}
	if err := w.nodes[1].Remove(t.Context(), control.Owner, "south"); !errors.Is(err, nodes.ErrUnknown) {
		t.Errorf("Remove of a node that is not there: %v, want ErrUnknown", err)
	}
	if len(w.lost[1]) != 0 {
		t.Error("another node ended")
	}
}

// A drained node is one until it starts again, or somebody ends that, and one node takes clients at
// least.
func TestDrain(t *testing.T) {
	w := newWorld(t, "north", "south")
	north, south := w.nodes[0], w.nodes[1]
	ctx := t.Context()
	if err := north.Drain(ctx, control.Owner, "north", false); !errors.Is(err, nodes.ErrDrained) || north.Drained() {
		t.Errorf("the only node is drained: %v", err)
	}
	if _, err := w.join(ctx, w.invite(t), "south"); err != nil {
		t.Fatal(err)
	}
	if err := north.Drain(ctx, control.Owner, "south", false); err != nil || north.Drained() {
		t.Errorf("Drain(south) = %v, and north is drained: %v", err, north.Drained())
	}
	if south.Drained() {
		t.Error("a process that has not started as the node is drained")
	}
	if err := south.Start(ctx, w.log); err != nil || south.Drained() || !north.Members()[1].Drained.IsZero() {
		t.Errorf("a node that starts is drained, Start() = %v", err)
	}
	for _, over := range []bool{false, true} {
		if err := north.Drain(ctx, control.Owner, "south", over); err != nil || south.Drained() == over || north.Members()[1].Drained.IsZero() != over {
			t.Errorf("Drain(south, %v) = %v, and it is drained: %v", over, err, south.Drained())
		}
	}
	if err := errors.Join(north.Drain(ctx, control.Owner, "south", false), north.Drain(ctx, control.Owner, "south", false)); err != nil || !south.Drained() {
		t.Errorf("twice: %v, %v", err, south.Drained())
	}
	if err := south.Drain(ctx, control.Owner, "north", false); !errors.Is(err, nodes.ErrDrained) {
		t.Errorf("both are drained: %v", err)
	}
	if err := north.Drain(ctx, control.Owner, "west", false); !errors.Is(err, nodes.ErrUnknown) {
		t.Errorf("a node that is not there: %v", err)
	}
}

// A member goes on as the only node of another incarnation, whose certificates nobody of the earlier one
// accepts.
func TestFoundedAgain(t *testing.T) {
	w := newWorldOf(t, nodes.Node{Name: "north", Route: "10.0.0.1:6222"}, nodes.Node{Name: "south", Route: "10.0.0.2:6222"})
	for _, name := range []string{"south", "west"} {
		route := map[string]string{"south": "10.0.0.2:6222", "west": "10.0.0.3:6222"}[name]
		asking, err := nodes.Ask(w.invite(t), name, route)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.nodes[0].Answer(t.Context(), asking.Request); err != nil {
			t.Fatal(err)
		}
	}
	again := nodes.Node{Name: "south", Route: "10.0.0.9:6222", Incarnation: "ABC"}
	for _, c := range nodes.FoundedAgain(again, w.nodes[1].Members()) {
		if _, err := w.log.Append(t.Context(), c, nil); err != nil {
			t.Fatal(err)
		}
	}
	left := w.nodes[1].Members()
	if len(left) != 1 || left[0].Name != "south" || left[0].Route != "10.0.0.9:6222" || !w.nodes[1].Removed("north") || !w.nodes[1].Removed("west") {
		t.Errorf("the members are %+v, want south alone, at its new address", left)
	}
	keys := map[string]bool{}
	for _, n := range []nodes.Node{{}, again, {Incarnation: "ABD"}} {
		key, err := n.Key(w.identity)
		if err != nil {
			t.Fatal(err)
		}
		if keys[string(key)] = true; n.Incarnation == "" && !key.Equal(w.identity) {
			t.Error("the key of the first incarnation is not that of the identity")
		}
	}
	if len(keys) != 3 {
		t.Errorf("three incarnations have %d keys", len(keys))
	}
}

// A node tells the others its address when it starts, and cannot have that of another one.
func TestMove(t *testing.T) {
	w := newWorldOf(t, nodes.Node{Name: "north", Route: "10.0.0.1:6222"}, nodes.Node{Name: "south", Route: "10.0.0.7:6222"}, nodes.Node{Name: "south", Route: "10.0.0.1:6222"})
	asking, err := nodes.Ask(w.invite(t), "south", "10.0.0.2:6222")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.nodes[0].Answer(t.Context(), asking.Request); err != nil {
		t.Fatal(err)
	}
	if err := w.nodes[2].Start(t.Context(), w.log); !errors.Is(err, nodes.ErrRoute) {
		t.Errorf("a node that has moved to the address of another one: Start() = %v, want %v", err, nodes.ErrRoute)
	}
	if err := w.nodes[1].Start(t.Context(), w.log); err != nil {
		t.Fatal(err)
	}
	if got := w.nodes[0].Routes(); len(got) != 1 || got[0] != "10.0.0.7:6222" {
		t.Errorf("the other node is reached at %v, want its new address", got)
	}
}
