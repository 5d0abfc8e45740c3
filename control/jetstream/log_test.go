package jetstream_test

import (
	"errors"
	"os"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/controltest"
	"github.com/yaya-ai/yaya/control/jetstream"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/natstest"
)

func isUnavailable(err error) bool {
	return errors.Is(err, control.ErrUnavailable) && !errors.Is(err, control.ErrUncertain)
}

// alone returns a connection to a server that is its own majority.
func alone(t testing.TB) *nats.Conn {
	t.Helper()
	return natstest.Connect(t, natstest.Start(t))
}

// replica opens the copy of a node in a folder. It is closed with the test.
func replica(t testing.TB, dir string, p ...control.Projection) *local.Log {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := local.Open(journal.Root(root), local.Options{Replica: true, Projections: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = l.Close() // a test may have
		_ = root.Close()
	})
	return l
}

func refused(err error) bool {
	_, ok := errors.AsType[*jetstream.RefusedError](err)
	return ok
}

// open opens a log, whose stream it makes if there is none.
func open(t testing.TB, conn *nats.Conn, o jetstream.Options) *jetstream.Log {
	t.Helper()
	if err := jetstream.Found(t.Context(), conn, o, replica(t, t.TempDir())); err != nil {
		t.Fatal(err)
	}
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
		files := replica(t, t.TempDir(), p)
		l := open(t, conn, jetstream.Options{Node: "a", Copy: files})
		return l, func() {
			if err := errors.Join(l.Close(), files.Close()); err != nil {
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
