package follow_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/gateway/follow"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	linger = 10 * time.Second
	delay  = 50 * time.Millisecond // of what a view flushes
)

// world is a set on a manager of sessions, with hooks between them. It lives in a bubble.
type world struct {
	t testing.TB
	*session.Manager
	set *follow.Set[*view]

	// Called before the manager is asked, if set; a test sets them while nothing runs.
	attach func() error
	drop   func()
	beat   func()
	open   func() error             // asked by views
	take   func(session.Item) error // asked by views
	asks   func() bool              // AttachOptions.Answers

	mu    sync.Mutex
	log   []string
	views int
}

// Attach implements [follow.Sessions].
func (w *world) Attach(id string, o session.AttachOptions) (*session.Connection, error) {
	if w.attach != nil {
		if err := w.attach(); err != nil {
			return nil, err
		}
	}
	return w.Manager.Attach(id, o)
}

// Drop implements [follow.Sessions].
func (w *world) Drop(id, connection string) error {
	if w.drop != nil {
		w.drop()
	}
	return w.Manager.Drop(id, connection)
}

// Heartbeat implements [follow.Sessions].
func (w *world) Heartbeat(id, connection string) error {
	if w.beat != nil {
		w.beat()
	}
	return w.Manager.Heartbeat(id, connection)
}

// each runs a test in a bubble and with a world of its own.
func each(t *testing.T, name string, test func(t *testing.T, w *world)) {
	t.Run(name, func(t *testing.T) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) { test(t, newWorld(t, dir)) })
	})
}

func newWorld(t testing.TB, dir string) *world {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t}
	w.Manager, err = session.OpenManager(session.Config{FS: journal.Root(root), Workspace: "/ws", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	b := bus.New(bus.Config{Recorder: w.Manager})
	w.Bind(b)
	w.set = follow.New(follow.Config[*view]{Sessions: w, Linger: linger, New: func(f *follow.Follower) *view {
		w.views++
		return &view{Follower: f, w: w, n: w.views}
	}})
	ctx, cancel := context.WithCancel(context.Background())
	reaped := make(chan error, 1)
	go func() { reaped <- w.Run(ctx) }()
	t.Cleanup(func() {
		w.set.Close()
		cancel()
		if err := errors.Join(<-reaped, w.Close(context.Background()), b.Close(context.Background()), root.Close()); err != nil {
			t.Errorf("Close of the world = %v, want no error", err)
		}
	})
	return w
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// happened checks what was noted so far, once everything waits.
func (w *world) happened(want ...string) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.log, want) {
		w.t.Errorf("happened:\n got  %s\n want %s", strings.Join(w.log, ", "), strings.Join(want, ", "))
	}
}

func (w *world) join(id string) *view {
	w.t.Helper()
	v, err := w.set.Join(w.t.Context(), id)
	if err != nil {
		w.t.Fatalf("Join(%q) = %v, want nil", id, err)
	}
	return v
}

// joined is the result of a Join that may have to wait.
type joined struct {
	v   *view
	err error
}

func (w *world) joins(ctx context.Context, id string) <-chan joined {
	out := make(chan joined, 1)
	go func() {
		v, err := w.set.Join(ctx, id)
		out <- joined{v, err}
	}()
	return out
}

// waits checks that a join has not returned once everything waits.
func (w *world) waits(j <-chan joined) {
	w.t.Helper()
	synctest.Wait()
	select {
	case got := <-j:
		w.t.Fatalf("Join = %v, %v; want that it waits", got.v, got.err)
	default:
	}
}

// say has a session say something.
func (w *world) say(id, text string) {
	w.t.Helper()
	s, err := w.Open(id, "")
	if err == nil {
		_, err = s.Say(session.Message{Role: "user", Content: text}, "", "")
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// session returns one that is there.
func (w *world) session(id string) *session.Session {
	w.t.Helper()
	s, err := w.Open(id, "")
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// view is a projection that notes what it is asked.
type view struct {
	*follow.Follower
	w *world
	n int // of the views of the world
}

// Open implements [follow.Projection].
func (v *view) Open() (session.AttachOptions, error) {
	v.w.note("open %d", v.n)
	if v.w.open != nil {
		if err := v.w.open(); err != nil {
			return session.AttachOptions{}, err
		}
	}
	return session.AttachOptions{Adapter: "test", Snapshot: true, Entries: true, Answers: v.w.asks}, nil
}

// Take implements [follow.Projection].
func (v *view) Take(it session.Item) error {
	if v.w.take != nil {
		if err := v.w.take(it); err != nil {
			return err
		}
	}
	switch {
	case it.Snapshot != nil:
		v.Ready()
	case it.Resync != nil:
		v.w.note("resync %d: %s", v.n, it.Resync.Reason)
	case it.Entry.Kind == session.KindMessage:
		v.w.note("take %d: %d", v.n, it.Entry.ID)
		v.Later(delay)
	}
	return nil
}

// Flush implements [follow.Projection].
func (v *view) Flush() { v.w.note("flush %d", v.n) }

// Close implements [follow.Projection].
func (v *view) Close(lost bool) {
	v.Lock()
	defer v.Unlock()
	if !v.Ended() {
		v.w.t.Error("Ended() = false in Close, want true")
	}
	v.w.note("close %d lost=%t", v.n, lost)
}
