package daemon

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/control/tapes"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/session"
)

// A session that cannot be copied does not keep a node from copying the others.
func TestUnreadableSessionHoldsUpNobody(t *testing.T) {
	s, err := server.NewServer(&server.Options{ServerName: "n0", Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the server is not ready")
	}
	conn, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
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
	if held := o.tapes.Held(); len(held) != len(whole) {
		t.Errorf("the node holds %q, want %q", held, whole)
	}
}
