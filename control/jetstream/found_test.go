package jetstream_test

import (
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/controltest"
	"github.com/yaya-ai/yaya/control/jetstream"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/natstest"
)

// written returns a replica with that many entries, whose targets begin with a name.
func written(t *testing.T, dir, name string, n int) *local.Log {
	t.Helper()
	l := replica(t, dir)
	for i := range n {
		e := control.Entry{Index: int64(i + 1), Term: 7, Time: time.Unix(1e9, 0).UTC(), Event: "test_event", Actor: "tester", Target: fmt.Sprint(name, i), Payload: []byte("{}")}
		if err := l.Put(e); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// A cluster begins with the log of the node that founds it: other nodes get its entries with
// their indexes, terms and times. To found it again changes nothing.
func TestFound(t *testing.T) {
	conn := alone(t)
	first := written(t, t.TempDir(), "first", 30)
	o := jetstream.Options{Node: "a", Copy: first}
	for range 2 {
		if err := jetstream.Found(t.Context(), conn, o, first); err != nil {
			t.Fatal(err)
		}
	}
	applied := new(controltest.Recorder)
	a := open(t, conn, o)
	defer func() { _ = a.Close() }()
	b := open(t, conn, jetstream.Options{Node: "b", Copy: replica(t, t.TempDir(), applied)})
	defer func() { _ = b.Close() }()
	e, err := b.Append(t.Context(), control.Change{Event: "test_event", Actor: "tester", Target: "next"}, nil)
	if err != nil || e.Index != 31 || e.Term != 8 {
		t.Errorf("the first change of the cluster is %+v, %v, want entry 31 of term 8", e, err)
	}
	got := applied.Entries()
	if len(got) != 31 {
		t.Fatalf("the other node applied %d entries, want 31", len(got))
	}
	for i, e := range got[:30] {
		if e.Index != int64(i+1) || e.Term != 7 || e.Target != fmt.Sprint("first", i) || !e.Time.Equal(time.Unix(1e9, 0)) {
			t.Errorf("entry %d is %+v, want it as it was", i+1, e)
		}
	}
	eventually.True(t, "the first node has the change", func() bool { return a.State().Last == 31 })
}

// CL-05: a node with entries that are not those of the stream is refused, whether it founds, or joins:
// of two truths nobody can make one.
func TestOtherEntriesAreRefused(t *testing.T) {
	conn := alone(t)
	first := written(t, t.TempDir(), "first", 5)
	if err := jetstream.Found(t.Context(), conn, jetstream.Options{Node: "a"}, first); err != nil {
		t.Fatal(err)
	}
	for what, other := range map[string]*local.Log{"fewer": written(t, t.TempDir(), "other", 3), "as many": written(t, t.TempDir(), "other", 5), "more": written(t, t.TempDir(), "first", 6)} {
		o := jetstream.Options{Node: "b", Copy: other}
		if _, err := jetstream.Open(t.Context(), conn, o); !refused(err) {
			t.Errorf("%s entries of another log: Open = %v, want that they are refused", what, err)
		}
		if what == "more" {
			continue // they go on where the stream ends
		}
		if err := jetstream.Found(t.Context(), conn, o, other); !refused(err) {
			t.Errorf("%s entries of another log: Found = %v, want that they are refused", what, err)
		}
	}
	if _, err := jetstream.Open(t.Context(), conn, jetstream.Options{Node: "a", Stream: "missing", Copy: replica(t, t.TempDir())}); !refused(err) {
		t.Errorf("Open of a stream that does not exist: %v, want that it is refused", err)
	}
}

// later has a connection find a server that is not there at first.
type later struct {
	conn  func() (net.Conn, error)
	there atomic.Bool
}

func (l *later) InProcessConn() (net.Conn, error) {
	if !l.there.Load() {
		return nil, fmt.Errorf("the server is down")
	}
	return l.conn()
}

// CL-02, W-67: a node starts while no server can be reached, with what it has, and says that it
// changes nothing. It goes on with the stream when there is one.
func TestStartsWithoutServers(t *testing.T) {
	s := natstest.Start(t)
	dir := t.TempDir()
	setUp := natstest.Connect(t, s)
	first := replica(t, dir)
	o := jetstream.Options{Node: "a", Copy: first}
	l := open(t, setUp, o)
	if _, err := l.Append(t.Context(), control.Change{Event: "test_event", Actor: "tester", Target: "before"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	to := &later{conn: s.InProcessConn}
	conn, err := nats.Connect("", nats.InProcessServer(to), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.RetryOnFailedConnect(true))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	applied := new(controltest.Recorder)
	o.Copy = replica(t, dir, applied)
	l, err = jetstream.Open(t.Context(), conn, o)
	if err != nil {
		t.Fatalf("Open without a server: %v", err)
	}
	defer func() { _ = l.Close() }()
	if s := l.State(); s.Quorum || s.Last != 1 || len(applied.Entries()) != 1 {
		t.Errorf("without a server the state is %+v, want the entry that is here, and no quorum", s)
	}
	change := control.Change{Event: "test_event", Actor: "tester", Target: "after"}
	if _, err := l.Append(t.Context(), change, nil); !isUnavailable(err) {
		t.Errorf("Append without a server: %v, want ErrUnavailable", err)
	}
	to.there.Store(true)
	eventually.True(t, "the node goes on when there is a server", func() bool {
		_, err := l.Append(t.Context(), change, nil)
		return err == nil
	})
	eventually.True(t, "there is a quorum", func() bool { return l.State().Quorum })
}
