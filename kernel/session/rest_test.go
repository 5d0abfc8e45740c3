package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

func newManager(t *testing.T, dir string) (*Manager, *bus.Bus) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := OpenManager(Config{FS: journal.Root(root), Workspace: "/ws", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	b := bus.New(bus.Config{Recorder: m})
	m.Bind(b)
	t.Cleanup(func() {
		if err := errors.Join(m.Close(context.Background()), b.Close(context.Background()), root.Close()); err != nil {
			t.Errorf("Close of the sessions and the bus = %v, want no error", err)
		}
	})
	return m, b
}

// memory counts the sessions that the manager has in memory.
func (m *Manager) memory() (used, resting int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.sessions), len(m.resting)
}

// OP-102, REL-8: sessions that nobody uses leave memory, however many were opened. One that
// somebody holds stays the session of its id, one that a reader follows loses nothing, and
// an event of a session that has left brings it back.
func TestIdleSessionsLeaveMemory(t *testing.T) {
	m, b := newManager(t, t.TempDir())
	if err := m.Index(t.Context()); err != nil {
		t.Fatal(err)
	}
	const n = 50
	for i := range n {
		s, err := m.Open(fmt.Sprint("s", i), "")
		if err == nil {
			_, err = s.Say(Message{Role: "user", Content: "hello"}, "", "")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	held, _ := m.Get("s1")
	seen := make(chan Item, 64)
	if _, err := m.Attach("s2", AttachOptions{Send: func(_ context.Context, i Item) error { seen <- i; return nil }}); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	eventually.True(t, "only the session that is followed is in use, and the one that is held rests", func() bool {
		for _, s := range m.all() {
			if err := s.unload(later); err != nil {
				t.Fatal(err)
			}
			m.rest(s)
		}
		runtime.GC()
		m.forget()
		used, resting := m.memory()
		return used == 1 && resting == 1
	})
	if again, err := m.Find("s1", ""); err != nil || again != held {
		t.Errorf("Find(s1) = %p, %v, want the session that is held, %p", again, err, held)
	}
	if _, err := held.Say(Message{Role: "user", Content: "again"}, "", ""); err != nil {
		t.Errorf("Say to a session that is held = %v", err)
	}
	for _, id := range []string{"s2", "s3"} {
		if _, err := bus.Publish(b.Kernel(), event.TurnWasCancelled, id, event.TurnCancelled{TurnID: "t", Reason: "test"}); err != nil {
			t.Fatal(err)
		}
		last := ""
		if err := m.View(id, "", 0, func(e Entry) error { last = e.Kind; return nil }); err != nil || last != KindEvent {
			t.Errorf("the last entry of %s is a %s, %v, want the event", id, last, err)
		}
	}
	if i := <-seen; i.Event.Kind != event.TurnWasCancelled.Name() {
		t.Errorf("the reader saw %q, want the event of its session", i.Event.Kind)
	}
}

// OP-102: of more sessions than may be open, those that were used last stay open.
func TestTapesUsedLastStayOpen(t *testing.T) {
	before := maxOpen
	maxOpen = 8
	t.Cleanup(func() { maxOpen = before })
	m, _ := newManager(t, t.TempDir())
	for i := range 9 {
		if _, err := m.Open(fmt.Sprint("s", i), ""); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 9 {
		s, _ := m.Get(fmt.Sprint("s", i))
		if open := s.j != nil; open != (i >= 5) {
			t.Errorf("s%d is open: %v, want the last four open", i, open)
		}
	}
}
