package tapes_test

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/yaya-ai/yaya/control/tapes"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/natstest"
)

// onList has f called each time after a node has listed the files of a session.
func (n *node) onList(f func() error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listed = f
}

// A session that is claimed is not its node's before its files are compared with the stream; what is written
// meanwhile is copied.
func TestWrittenWhileCompared(t *testing.T) {
	south := start(t, natstest.Start(t), "south")
	var late tapes.File
	south.onList(func() error {
		if all := south.Held(); len(all) != 0 {
			t.Errorf("the node may act for %v before it has compared them", all)
		}
		late = south.write("sess_a", "tapes/a.jsonl", "gen1", "gen1 one\n")
		return nil
	})
	south.holds("sess_a")
	south.onList(nil)
	south.kept("sess_a", late)
}

// A node acknowledges nothing of a session whose claim has failed before it has claimed it again.
func TestWrittenWhileNotClaimed(t *testing.T) {
	south := start(t, natstest.Start(t), "south")
	var f tapes.File
	broken := errors.New("the disk fails")
	south.onList(func() error {
		f = south.write("sess_a", "tapes/a.jsonl", "gen1", "gen1 one\n")
		return broken
	})
	if err := south.Hold(t.Context(), "sess_a", "/work"); !errors.Is(err, broken) {
		t.Fatalf("Hold() = %v, want %v", err, broken)
	}
	now, cancel := context.WithCancel(t.Context())
	cancel()
	if err := south.Kept(now, "sess_a", f); !errors.Is(err, tapes.ErrUnavailable) {
		t.Errorf("Kept() = %v, want that nobody knows yet", err)
	}
	south.onList(nil)
	south.holds("sess_a")
	south.kept("sess_a", f)
}

// purge has a stream forget what it has of subjects.
func (n *node) purge(stream, subjects string) {
	n.t.Helper()
	api, err := js.New(n.conn)
	if err != nil {
		n.t.Fatal(err)
	}
	s, err := api.Stream(n.t.Context(), stream)
	if err == nil {
		err = s.Purge(n.t.Context(), js.WithPurgeSubject(subjects))
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// A node whose sessions somebody has removed from the stream copies them again: nobody else has them.
func TestPurgedSessions(t *testing.T) {
	s := natstest.Start(t)
	south, north := start(t, s, "south"), start(t, s, "north")
	south.holds("sess_a")
	south.kept("sess_a", south.write("sess_a", "tapes/a.jsonl", "gen1", "gen1 one\n"))
	north.purge("yaya_sessions", "yaya_sessions.>")
	f := south.write("sess_a", "tapes/a.jsonl", "gen1", "two\n")
	eventually.True(t, "south knows", func() bool { return len(south.Held()) == 0 })
	now, cancel := context.WithCancel(t.Context())
	cancel()
	if err := south.Kept(now, "sess_a", f); !errors.Is(err, tapes.ErrUnavailable) {
		t.Fatalf("Kept() = %v, want that the stream does not have it", err)
	}
	south.holds("sess_a")
	south.kept("sess_a", f)
	dir, err := north.Fetch(t.Context(), "sess_a")
	if err != nil {
		t.Fatal(err)
	}
	if got := north.read(dir)["tapes/a.jsonl"]; got != "gen1 one\ntwo\n" {
		t.Errorf("north gets %q", got)
	}
	south.stop()
	select {
	case got := <-south.lost:
		t.Errorf("a session that nobody else has is given up: %q", got)
	default:
	}
}

// A node that runs is not dead because somebody has removed its lease from the stream.
func TestPurgedLease(t *testing.T) {
	s := natstest.Start(t)
	south, north := start(t, s, "south"), start(t, s, "north")
	south.holds("sess_a")
	north.purge("yaya_state", "yaya_state.lease.south")
	_, err := north.Takeover(t.Context(), "sess_a", func(string) error { return nil })
	if e, is := errors.AsType[*tapes.ElsewhereError](err); !is || e.Node != "south" {
		t.Errorf("Takeover() = %v, want that south runs", err)
	}
}

// CL-04: a session that another node has taken over and deleted does not come back with the node that had it,
// whether that one was dead or stood still. Its id can be used again.
func TestDeletedElsewhere(t *testing.T) {
	s := natstest.Start(t)
	way := &freezer{s: s}
	south, north := start(t, s, "south", nats.InProcessServer(way)), start(t, s, "north")
	goes := func(session string) {
		t.Helper()
		north.takes(session)
		if err := north.Gone(t.Context(), session); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"sess_a", "sess_b"} {
		south.holds(id)
		south.kept(id, south.write(id, "tapes/"+id, "gen1", "gen1 one\n"))
	}
	way.mu.Lock()
	goes("sess_a")
	way.mu.Unlock()
	err := south.Hold(t.Context(), "sess_a", "/work")
	if e, is := errors.AsType[*tapes.ElsewhereError](err); !is || e.Node != "north" {
		t.Errorf("Hold() of a session that was deleted meanwhile = %v, want that it is not here", err)
	}
	south.stop()
	goes("sess_b")
	south.open()
	eventually.True(t, "south knows who has deleted the session", func() bool {
		node, known := south.Owner(t.Context(), "sess_b")
		return known && node == "north"
	})
	south.holds("sess_b")
	if node, known := south.Owner(t.Context(), "sess_b"); node != "south" || !known {
		t.Errorf("Owner() = %q, %t, want south", node, known)
	}
}
