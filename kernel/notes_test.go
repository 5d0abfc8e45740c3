package kernel_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/session"
)

// requests returns what the model was asked, each message in one line.
func (w *world) requests() (out [][]string) {
	for _, ev := range w.web.all("llm.call.request") {
		var lines []string
		for _, m := range ev.Payload.(event.LLMRequest).Messages {
			lines = append(lines, m.Role+": "+m.Content)
		}
		out = append(out, lines)
	}
	return out
}

// MIS-4: a note of a strategy is told once, at the place where it was told first, and again
// when a summary has taken it away. The request before is the beginning of the next one.
func TestNotes(t *testing.T) {
	fact, plan := "one", ""
	own := &strategy{func(s event.LoopState) (event.DecideResponse, error) {
		switch {
		case s.Window == 0:
			return event.DecideResponse{}, errors.New("no window is named")
		case len(s.Pending) > 0:
			return event.DecideResponse{Next: event.NextTool}, nil
		case s.Answered:
			return event.DecideResponse{Next: event.NextDone}, nil
		}
		return event.DecideResponse{Next: event.NextLLM, System: "be brief", Notes: []event.TurnNote{{Name: "a", Text: fact}, {Name: "b", Text: "same"}, {Name: "none"}, {Name: event.NotePlan, Text: plan}}}, nil
	}}
	skills := "skill 1"
	inBubble(t, setup{
		plugins: []plugin.Plugin{own}, settings: map[string]string{"strategy": `"test"`},
		script: `{"scenarios":[{"match":"first","steps":[{"tool_calls":[{"name":"work","args":{"name":"x"}}]},{"text":"done"}]},{"match":"","steps":[{"text":"fine"}]}]}`,
	}, func(t *testing.T, w *world) {
		w.AddNotes(func(string, int, []string) string { return skills })
		w.run("s1", "first")
		fact = "two"
		w.run("s1", "second")
		w.run("s1", "third")
		skills = "skill 2"
		w.run("s1", "fourth")
		got := w.requests()
		if len(got) != 5 {
			t.Fatalf("%d requests, want 5", len(got))
		}
		equal(t, got[4],
			"system: be brief", "system: skill 1",
			"user: first", "user: [note of yaya: a]\none", "user: [note of yaya: b]\nsame", "assistant: ", "tool: did x", "assistant: done",
			"user: second", "user: [note of yaya: a]\ntwo", "assistant: fine",
			"user: third", "assistant: fine",
			"user: fourth", "user: [note of yaya: skills]\nInstead of the skills that were listed at the beginning:\nskill 2")
		for i, r := range got[:4] {
			if next := got[i+1]; len(next) < len(r) || strings.Join(next[:len(r)], "\n") != strings.Join(r, "\n") {
				t.Errorf("request %d is not the beginning of the next one:\n%q\n%q", i, r, next)
			}
		}
		plan = "old plan"
		w.run("s1", "plan")
		plan = "new plan"
		w.run("s1", "plan again")
		plan = "" // who told it does not remember it
		w.run("s1", "go on")
		s, err := w.Sessions.Open("s1", "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Compact(t.Context(), session.CompactOptions{Target: 12}, func(_ context.Context, _ []event.Message, _ int) (session.Summary, error) {
			return session.Summary{Text: "sum"}, nil
		}); err != nil {
			t.Fatal(err)
		}
		w.run("s1", "fifth")
		got = w.requests()
		last := strings.Join(got[len(got)-1], "\n")
		if strings.Count(last, "[note of yaya: a]\ntwo") != 1 || strings.Count(last, "[note of yaya: b]\nsame") != 1 || !strings.Contains(last, "system: sum") || strings.Contains(last, "old plan") || !strings.Contains(last, "new plan") {
			t.Errorf("after a summary the model gets\n%s", last)
		}
	})
}

// A note tells when something begins that lasts beyond a turn, and when it changes. When it is over,
// the history says so, once, and a fork of the history, too.
func TestStanding(t *testing.T) {
	running := map[string]string{}
	inBubble(t, setup{script: `{"scenarios":[{"match":"","steps":[{"text":"fine"}]}]}`}, func(t *testing.T, w *world) {
		w.AddStanding(func(session string) event.TurnNote { return event.TurnNote{Name: "jobs", Text: running[session]} })
		w.run("s1", "first")
		running["s1"] = "a runs"
		w.run("s1", "second")
		w.run("s1", "third")
		if _, err := w.Sessions.Fork("s1", "s2"); err != nil {
			t.Fatal(err)
		}
		w.run("s2", "in a fork")
		delete(running, "s1")
		w.run("s1", "fourth")
		w.run("s1", "fifth")
		got := w.requests()
		equal(t, got[3][1:], "user: first", "assistant: fine", "user: second", "user: [note of yaya: jobs]\na runs", "assistant: fine", "user: third", "assistant: fine",
			"user: in a fork", "user: [note of yaya: jobs]\nnone")
		equal(t, got[5][1:], "user: first", "assistant: fine", "user: second", "user: [note of yaya: jobs]\na runs", "assistant: fine", "user: third", "assistant: fine",
			"user: fourth", "user: [note of yaya: jobs]\nnone", "assistant: fine", "user: fifth")
	})
}

// USE-6: text that the model had written when its turn was interrupted stays: on the tape, and for
// the model with the next message. A turn that is tried again begins its answer from the start.
func TestInterruptedTextStays(t *testing.T) {
	inBubble(t, setup{script: `{"scenarios":[{"match":"go","steps":[{"text":"a b c d e f","delay_ms":1000},{"text":"g h i j k l","delay_ms":1000}]},{"match":"","steps":[{"text":"more"}]}]}`}, func(t *testing.T, w *world) {
		begun := make(chan error, 1)
		go func() {
			_, err := w.Loop.Run(w.t.Context(), loop.Prompt{SessionID: "s1", Text: "go"})
			begun <- err
		}()
		time.Sleep(3500 * time.Millisecond)
		w.Loop.Cancel("s1")
		if err := <-begun; err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		equal(t, w.ends("s1"), "cancelled interrupted")
		equal(t, w.history("s1"), "user: go") // nothing has followed it yet
		kept := slices.DeleteFunc(w.tape("s1")[4:], func(e string) bool { return e == "event llm.call.error" || e == "event user.interrupt" })
		equal(t, kept, "event llm.call.response", "event turn.cancelled")
		if _, err := w.Loop.Retry("s1", ""); err != nil {
			t.Fatalf("Retry = %v, want no error", err)
		}
		time.Sleep(3500 * time.Millisecond)
		w.Loop.Cancel("s1")
		time.Sleep(time.Minute)
		w.run("s1", "and on")
		got := w.requests()
		equal(t, got[len(got)-1][1:], "user: go", "assistant: g h i "+session.StoppedHere, "user: and on")
	})
}
