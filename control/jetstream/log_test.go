package jetstream_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/controltest"
	"github.com/yaya-ai/yaya/control/jetstream"
)

// alone starts a server that is its own majority, and returns a connection to it.
func alone(t *testing.T) *nats.Conn {
	t.Helper()
	s, err := server.NewServer(&server.Options{ServerName: "alone", DontListen: true, JetStream: true, StoreDir: t.TempDir(), SyncAlways: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server is not ready")
	}
	conn, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func open(t *testing.T, conn *nats.Conn, o jetstream.Options) *jetstream.Log {
	t.Helper()
	l, err := jetstream.Open(t.Context(), conn, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// W-31, W-44, R34: a stream keeps the promises of every control log.
func TestLog(t *testing.T) {
	conn := alone(t)
	controltest.Log(t, func(t *testing.T, p control.Projection) (control.Log, func()) {
		l := open(t, conn, jetstream.Options{Node: "a", Projections: []control.Projection{p}})
		return l, func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestFanout(t *testing.T) {
	f, err := jetstream.NewFanout(alone(t), "", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	controltest.Fanout(t, f)
}
