package nodes_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/nodes"
)

func (w *world) joinAt(ctx context.Context, i nodes.Invitation, name, route string) (nodes.Welcome, error) {
	asking, err := nodes.Ask(i, name, route)
	if err != nil {
		return nodes.Welcome{}, err
	}
	answer, err := w.nodes[0].Answer(ctx, asking.Request)
	if err != nil {
		return nodes.Welcome{}, err
	}
	return asking.Welcome(answer)
}

// CL-06: nodes that keep the log themselves tell each other where their servers are: a node that joins
// hears of those before it, and everybody of it. An address is that of one node.
func TestRoutes(t *testing.T) {
	w := newWorldOf(t, nodes.Node{Name: "north", Route: "10.0.0.1:6222"}, nodes.Node{Name: "south", Route: "10.0.0.2:6222", Routes: []string{"10.0.0.1:6222"}})
	south := w.nodes[1]
	if got := south.Routes(); !slices.Equal(got, []string{"10.0.0.1:6222"}) {
		t.Errorf("before its join is in the log, south knows %v, want what it was told", got)
	}
	i := w.invite(t)
	for _, route := range []string{"", "10.0.0.2", "0.0.0.0:6222", "[::]:6222", ":6222", "host:0", "host:65536", "host:06222", "HOST:1", "a/b:1", "u@h:1", "[fe80::1%eth0]:1", strings.Repeat("a.", 200) + "b:1"} {
		if _, err := w.joinAt(t.Context(), i, "south", route); !errors.Is(err, nodes.ErrRoute) {
			t.Errorf("join at %q = %v, want ErrRoute", route, err)
		}
	}
	if _, err := w.joinAt(t.Context(), i, "south", "10.0.0.1:6222"); !errors.Is(err, nodes.ErrRoute) {
		t.Errorf("join at the address of another node = %v, want ErrRoute", err)
	}
	got, err := w.joinAt(t.Context(), i, "south", "10.0.0.2:6222")
	if err != nil || got.Node.Route != "10.0.0.2:6222" || !slices.Equal(got.Node.Routes, []string{"10.0.0.1:6222"}) {
		t.Errorf("the new node gets %+v, %v, want its address and that of north", got.Node, err)
	}
	if _, err := w.joinAt(t.Context(), w.invite(t), "west", "[2001:db8::1]:6222"); err != nil {
		t.Error(err)
	}
	if got := south.Routes(); !slices.Equal(got, []string{"10.0.0.1:6222", "[2001:db8::1]:6222"}) {
		t.Errorf("south knows %v, want north and west", got)
	}
	if m := south.Members(); len(m) != 3 || m[2].Route != "[2001:db8::1]:6222" {
		t.Errorf("the members are %+v, want west with its address", m)
	}
	forged := i
	forged.Route = false
	if _, err := w.joinAt(t.Context(), forged, "east", ""); err == nil {
		t.Error("a node without an address has joined, want an error")
	}
	plain := newWorld(t, "north")
	if _, err := plain.joinAt(t.Context(), plain.invite(t), "south", "10.0.0.2:6222"); !errors.Is(err, nodes.ErrRoute) {
		t.Errorf("join with an address where NATS servers keep the log = %v, want ErrRoute", err)
	}
}

// CL-07: the server of a node leaves before the node does. If it cannot, the node stays; the only
// node stays in any case.
func TestLeave(t *testing.T) {
	w := newWorldOf(t, nodes.Node{Name: "north", Route: "10.0.0.1:6222"}, nodes.Node{Name: "south", Route: "10.0.0.2:6222"})
	if err := w.nodes[0].Remove(t.Context(), control.Owner, "north"); !errors.Is(err, nodes.ErrLast) || len(w.left) > 0 {
		t.Errorf("Remove of the only node = %v, and %v left, want ErrLast and nobody", err, w.left)
	}
	if _, err := w.joinAt(t.Context(), w.invite(t), "south", "10.0.0.2:6222"); err != nil {
		t.Fatal(err)
	}
	w.leave = errors.New("no majority")
	if err := w.nodes[0].Remove(t.Context(), control.Owner, "south"); !errors.Is(err, w.leave) || w.nodes[0].Removed("south") || w.nodes[1].Check() != nil {
		t.Errorf("Remove of a node whose server cannot leave = %v, want that it stays", err)
	}
	w.leave = nil
	if err := w.nodes[0].Remove(t.Context(), control.Owner, "south"); err != nil || !slices.Equal(w.left, []string{"south"}) {
		t.Errorf("Remove = %v, and %v left, want south", err, w.left)
	}
	if err := w.nodes[1].Check(); !errors.Is(err, nodes.ErrRemoved) || !w.nodes[0].Removed("south") {
		t.Errorf("Check of the node that was removed = %v, want ErrRemoved", err)
	}
	if _, err := w.joinAt(t.Context(), w.invite(t), "south", "10.0.0.2:6222"); err != nil || w.nodes[0].Removed("south") {
		t.Errorf("the node joins again: %v, want that it is no longer removed", err)
	}
}
