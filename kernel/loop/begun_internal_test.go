package loop

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/journal/journaltest"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// An interrupt of an adapter counts for the turn whose message is being taken in, which does not come to its
// first step: the look at the folder that began with the message ends all the same.
func TestInterruptedBeforeItBegins(t *testing.T) {
	b := bus.New(bus.Config{})
	held := 0
	l, err := New(Config{Bus: b, Tools: new(tool.Registry), Ready: func(string) error { return errors.New("there is none") }, Look: func(string) func() {
		held++
		return func() { held-- }
	}})
	if err != nil {
		t.Fatal(err)
	}
	thread := l.thread("s")
	thread.admit.Lock()
	over := l.starting(thread, "turn_1")
	if _, err := bus.Publish(b.Kernel().Named("web"), event.UserInterrupt, "s", event.Empty{}); err != nil {
		t.Fatal(err)
	}
	x, err := l.start(thread, startWith{event: event.Event{SessionID: "s", Kind: event.UserMessageReceived.Name(), Payload: event.UserMessage{Text: "hello"}}, id: "turn_1"})
	if err != nil {
		t.Fatal(err)
	}
	over()
	thread.admit.Unlock()
	<-x.done
	if !errors.Is(x.out.Err, ErrInterrupted) || held != 0 {
		t.Errorf("the turn ended with %v, and the folder is held %d times; want it interrupted, and none", x.out.Err, held)
	}
	if err := errors.Join(l.Close(t.Context()), b.Close(t.Context())); err != nil {
		t.Error(err)
	}
}

// REL-1: a turn that the disk does not let begin is tried again after pauses that grow up to a minute, even
// if the disk is well between the tries; it runs once that stays so.
func TestATurnThatCannotBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var full, well atomic.Bool
		disk := &journaltest.Faults{FS: journaltest.NewDisk(), Before: func(journaltest.Step) error {
			if full.Load() {
				return syscall.ENOSPC
			}
			return nil
		}}
		m, err := session.OpenManager(session.Config{FS: disk, Workspace: "/ws"})
		if err != nil {
			t.Fatal(err)
		}
		b := bus.New(bus.Config{Recorder: m})
		m.Bind(b)
		tries := 0
		log := zerolog.New(io.Discard).Hook(zerolog.HookFunc(func(_ *zerolog.Event, _ zerolog.Level, text string) {
			if strings.HasPrefix(text, "a turn cannot begin") {
				tries++
				full.Store(false)
				well.Store(tries > 100) // without pauses there would be no end
			}
		}))
		l, err := New(Config{Bus: b, Tools: new(tool.Registry), Sessions: m, Log: log, Prepare: func(string) { full.Store(!well.Load()) }})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Submit(t.Context(), Prompt{SessionID: "s", ID: "p", Text: "hello"}); err != nil {
			t.Fatalf("Submit = %v, want no error", err)
		}
		time.Sleep(10 * time.Minute)
		well.Store(true)
		if tries < 5 || tries > 30 {
			t.Errorf("the turn was tried %d times in ten minutes, want pauses that grow", tries)
		}
		time.Sleep(3 * time.Minute)
		s, err := m.Find("s", "")
		if err != nil {
			t.Fatal(err)
		}
		if sn, err := s.Snapshot(); err != nil || sn.LastTurn.ID == "" || sn.Owed {
			t.Errorf("once the disk is well: %+v, %v; want the turn over", sn, err)
		}
		if err := errors.Join(l.Close(t.Context()), b.Close(t.Context()), m.Close(t.Context())); err != nil {
			t.Error(err)
		}
	})
}
