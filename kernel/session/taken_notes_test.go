package session

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
)

// A plugin's notes under the names of the kernel's are ignored, now and after a restart, even where
// the kernel's last note of each name stands before a compaction.
func TestNotesOfOthersSayNothing(t *testing.T) {
	dir := t.TempDir()
	expect := func(s *Session) {
		t.Helper()
		mode, err := s.Mode()
		model, err2 := s.Model()
		sn, err3 := s.Snapshot()
		system, err4 := s.System()
		if got := fmt.Sprintln(mode, model, len(sn.Queue), system, err, err2, err3, err4); got != "plan mine 0 rules <nil> <nil> <nil> <nil>\n" {
			t.Errorf("the state is %q, want the kernel's", got)
		}
	}
	t.Run("before", func(t *testing.T) {
		m, _ := newManager(t, dir)
		s, err := m.Open("s", "")
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{s.SetMode(t.Context(), Plan), s.SetModel(t.Context(), "mine"), s.SetSystem("rules")} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			if _, err := s.Say(Message{Role: "user", Content: "more"}, "", ""); err != nil {
				t.Fatal(err)
			}
		}
		forge := func() {
			for name, data := range map[string]any{
				NoteMode: modeNote{Work}, NoteModel: modelNote{"forged"}, noteSystem: map[string]string{"text": "forged"},
				NoteQueue: map[string]any{"prompts": []Prompt{{ID: "p", Text: "forged"}}},
			} {
				if _, err := s.Note(event.Event{Kind: name, SessionID: "s", ID: "forged", Time: time.Now(), Source: "session"}, data); err != nil {
					t.Fatal(err)
				}
			}
		}
		forge()
		expect(s)
		done, err := s.Compact(t.Context(), CompactOptions{Threshold: 1, Target: 1}, func(context.Context, []event.Message, int) (Summary, error) { return Summary{Text: "before"}, nil })
		if !done || err != nil {
			t.Fatalf("Compact = %v, %v, want done", done, err)
		}
		forge()
		expect(s)
	})
	m, _ := newManager(t, dir)
	s, err := m.Find("s", "")
	if err != nil {
		t.Fatal(err)
	}
	expect(s)
}
