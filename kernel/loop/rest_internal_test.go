package loop

import (
	"context"
	"errors"
	"testing"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/journal/journaltest"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// A message of an adapter keeps its session from going away before its turn begins, and so does a queue
// behind a turn that has just ended.
func TestATurnThatIsAboutToBeginKeepsItsSession(t *testing.T) {
	m, err := session.OpenManager(session.Config{FS: journaltest.NewDisk(), Workspace: "/ws"})
	if err != nil {
		t.Fatal(err)
	}
	b := bus.New(bus.Config{Recorder: m})
	m.Bind(b)
	l, err := New(Config{Bus: b, Tools: new(tool.Registry), Sessions: m, Log: zerolog.Nop(), Boundary: func(ctx context.Context) { <-ctx.Done() }})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"adapter", "queue", "rest"} {
		s, err := m.Open(id, "")
		if err == nil && id == "queue" {
			_, err = s.SetQueue([]session.Prompt{{ID: "p", Text: "hello"}}, "")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	l.thread("adapter").newest = &event.Event{}
	l.thread("queue").followed = make(chan struct{})
	for id, want := range map[string]error{"adapter": ErrBusy, "queue": ErrBusy, "rest": nil} {
		called := false
		err := l.AtRest(id, nil, func() error {
			called = true
			return nil
		})
		if !errors.Is(err, want) || called != (want == nil) {
			t.Errorf("%s: AtRest = %v, called %t, want %v", id, err, called, want)
		}
	}
	if err := errors.Join(l.Close(t.Context()), b.Close(t.Context()), m.Close(t.Context())); err != nil {
		t.Error(err)
	}
}
