package session_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/journal/journaltest"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// OP-14, REL-1: the tape of a session that is being forked stays for the fork, however early it is deleted
// or reset.
func TestTheTapeOfAForkStays(t *testing.T) {
	for name, away := range map[string]func(w *world) error{
		"delete": func(w *world) error {
			_, err := w.Delete("parent", "", nil)
			return err
		},
		"reset": func(w *world) error {
			_, err := w.open("parent").Reset(false)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var w *world
			var forking atomic.Bool
			var took sync.WaitGroup
			disk := &journaltest.Faults{Before: func(journaltest.Step) error {
				if !forking.CompareAndSwap(true, false) {
					return nil
				}
				over := make(chan struct{})
				took.Go(func() {
					defer close(over)
					if err := away(w); err != nil {
						t.Errorf("%s = %v, want no error", name, err)
					}
				})
				select { // it waits for the fork, or is over long before
				case <-over:
				case <-time.After(200 * time.Millisecond):
				}
				return nil
			}}
			w = newWorld(t, dir, func(c *session.Config) { disk.FS = c.FS; c.FS = disk })
			w.say("parent", "hello")
			if err := w.open("parent").Sync(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
			forking.Store(true)
			if _, err := w.Fork("parent", "child"); err != nil {
				t.Fatalf("Fork = %v, want no error", err)
			}
			took.Wait()
			w.stop()
			w = newWorld(t, dir)
			if msgs, err := w.open("child").Messages(); err != nil || len(msgs) != 1 || msgs[0].Content != "hello" {
				t.Errorf("the fork has %+v, %v, want the message of its parent", msgs, err)
			}
		})
	}
}

// Y-179: a fork begins with what the model has seen of its parent, where that stands: the half of an
// answer that was cancelled, no message that was denied, and calls whose results are the parent's.
func TestWhatAForkInherits(t *testing.T) {
	for name, tt := range map[string]struct {
		before func(w *world)
		want   []string
	}{
		"an answer that was cancelled": {func(w *world) {
			publish(w, event.LLMCallResponse, "p", event.LLMResponse{Text: "half", StopReason: event.StopInterrupted})
			publish(w, event.TurnWasCancelled, "p", event.TurnCancelled{TurnID: "t1", Reason: "interrupted"})
		}, []string{"user: go", "assistant: half" + session.StoppedHere}},
		"an answer of which the rest comes": {func(w *world) {
			publish(w, event.LLMCallResponse, "p", event.LLMResponse{Text: "half", StopReason: event.StopLength})
		}, []string{"user: go", "assistant: half" + session.StoppedHere}},
		"a message that was denied": {func(w *world) {
			publish(w, event.TurnHasFailed, "p", event.TurnFailed{TurnID: "t1", Error: "denied", Kind: event.Denied})
		}, nil},
		"calls that run": {func(w *world) {
			publish(w, event.LLMCallResponse, "p", event.LLMResponse{ToolCalls: toolCalls("c1", "c2", "c3")})
			publish(w, event.ToolCallRequest, "p", event.ToolRequest{ID: "c1", Name: "echo", Args: []byte(`{}`)})
			publish(w, event.ToolCallResult, "p", event.ToolResult{ID: "c1", OK: true, Value: []byte(`1`)})
			publish(w, event.ToolCallRequest, "p", event.ToolRequest{ID: "c2", Name: "echo", Args: []byte(`{}`)})
		}, []string{"user: go", "assistant:  [c1] [c2] [c3]", "tool c1: 1", "tool c2: " + session.Elsewhere, "tool c3: " + session.Elsewhere}},
		"calls of a turn that was cancelled": {func(w *world) {
			publish(w, event.LLMCallResponse, "p", event.LLMResponse{ToolCalls: toolCalls("c1", "c2")})
			publish(w, event.ToolCallRequest, "p", event.ToolRequest{ID: "c1", Name: "echo", Args: []byte(`{}`)})
			publish(w, event.TurnWasCancelled, "p", event.TurnCancelled{TurnID: "t1", Reason: "interrupted"})
		}, []string{"user: go", "assistant:  [c1] [c2]", "tool c1: " + session.Interrupted, "tool c2: " + session.NotBegun}},
		"calls of a turn that was cancelled, while another one runs": {func(w *world) {
			publish(w, event.LLMCallResponse, "p", event.LLMResponse{ToolCalls: toolCalls("c1", "c2")})
			publish(w, event.ToolCallRequest, "p", event.ToolRequest{ID: "c1", Name: "echo", Args: []byte(`{}`)})
			publish(w, event.TurnWasCancelled, "p", event.TurnCancelled{TurnID: "t1", Reason: "interrupted"})
			w.say("p", "again")
			publish(w, event.TurnWasStarted, "p", event.TurnStarted{TurnID: "t2"})
		}, []string{"user: go", "assistant:  [c1] [c2]", "tool c1: " + session.Interrupted, "tool c2: " + session.NotBegun, "user: again"}},
		"calls that run behind a compaction": {func(w *world) {
			if _, err := w.open("p").Handoff("compaction", session.Compaction{Kind: "compaction", Summary: "it begins"}); err != nil {
				w.t.Fatal(err)
			}
			publish(w, event.LLMCallResponse, "p", event.LLMResponse{ToolCalls: toolCalls("c1", "c2")})
			publish(w, event.ToolCallRequest, "p", event.ToolRequest{ID: "c1", Name: "echo", Args: []byte(`{}`)})
		}, []string{"system: it begins", "assistant:  [c1] [c2]", "tool c1: " + session.Elsewhere, "tool c2: " + session.Elsewhere}},
		"a message that was denied, and is tried again": {func(w *world) {
			publish(w, event.TurnHasFailed, "p", event.TurnFailed{TurnID: "t1", Error: "denied", Kind: event.Denied})
			publish(w, event.TurnWasStarted, "p", event.TurnStarted{TurnID: "t2"})
		}, []string{"user: go"}},
		"a message that was denied, and answered later": {func(w *world) {
			publish(w, event.TurnHasFailed, "p", event.TurnFailed{TurnID: "t1", Error: "denied", Kind: event.Denied})
			publish(w, event.TurnWasStarted, "p", event.TurnStarted{TurnID: "t2"})
			publish(w, event.LLMCallResponse, "p", event.LLMResponse{Text: "done"})
			publish(w, event.AssistantMessageDone, "p", event.AssistantMessage{Content: "done", ToolCalls: []event.ToolCall{}})
			publish(w, event.TurnWasCompleted, "p", event.TurnCompleted{TurnID: "t2"})
		}, []string{"user: go", "assistant: done"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := newWorld(t, dir)
			w.open("p")
			w.say("p", "go")
			publish(w, event.TurnWasStarted, "p", event.TurnStarted{TurnID: "t1"})
			tt.before(w)
			c, err := w.Fork("p", "c")
			if err != nil {
				t.Fatal(err)
			}
			equal(t, history(t, c), tt.want...)
			w.say("c", "on")
			want := append(tt.want, "user: on")
			equal(t, history(t, c), want...)
			w.stop()
			equal(t, history(t, newWorld(t, dir).open("c")), want...)
		})
	}
}
