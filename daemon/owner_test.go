package daemon

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/control/tapes"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/natstest"
	"github.com/yaya-ai/yaya/kernel"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/session"
)

// A session that cannot be copied does not keep a node from copying the others.
func TestUnreadableSessionHoldsUpNobody(t *testing.T) {
	conn := natstest.Connect(t, natstest.Start(t))
	data, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = data.Close() }() // of a test
	open := func(own session.Owner) (m *session.Manager, end func()) {
		t.Helper()
		m, err := session.OpenManager(session.Config{FS: journal.Root(data), Workspace: "/ws", Owner: own, Log: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		b := bus.New(bus.Config{Recorder: m})
		m.Bind(b)
		return m, func() {
			if err := errors.Join(m.Close(context.Background()), b.Close(context.Background())); err != nil {
				t.Error(err)
			}
		}
	}
	m, end := open(nil)
	whole := []string{"a", "b", "c", "x", "y", "z"}
	for _, id := range append(whole[:3:3], append([]string{"m"}, whole[3:]...)...) {
		if _, err := m.Open(id, ""); err != nil {
			t.Fatal(err)
		}
	}
	end()
	o := &owner{log: zerolog.Nop(), ready: make(chan struct{})}
	m, end = open(o)
	defer end()
	o.tapes, err = tapes.Open(conn, tapes.Options{
		Node: "north", Data: data, Log: o.log, Copies: func(context.Context) (int, error) { return 1, nil }, Lost: o.lost,
		Files: func(id string) ([]tapes.File, error) {
			if id == "m" {
				return nil, errors.New("the disk fails")
			}
			files, err := m.Files(id)
			return mapped(files), err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := o.tapes.Close(); err != nil {
			t.Error(err)
		}
	}()
	o.serve(&kernel.Kernel{Sessions: m})
	eventually.True(t, "the node has a lease", func() bool { _, known := o.tapes.Owner(t.Context(), "a"); return known })
	o.renewed(t.Context())
	for _, id := range whole {
		if node, known := o.tapes.Owner(t.Context(), id); !known || node != o.tapes.Node() {
			t.Errorf("the node %q owns session %s (%v), want this one", node, id, known)
		}
	}
}
