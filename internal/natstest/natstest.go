// Package natstest has a NATS server for tests.
package natstest

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Start starts a server with JetStream in this process, which is its own majority, listens nowhere, and
// ends with the test.
func Start(t testing.TB) *server.Server {
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
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the server is not ready")
	}
	return s
}

// Connect connects to a server until the test ends.
func Connect(t testing.TB, s *server.Server, more ...nats.Option) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect("", append([]nats.Option{nats.InProcessServer(s)}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}
