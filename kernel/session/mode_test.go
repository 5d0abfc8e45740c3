package session

import (
	"testing"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
)

// The mode of a session is on its tape: it outlives its process, a compaction and a reset, forks
// begin with it, sub-agents have it, and no event of others sets it.
func TestModeStaysWithTheSession(t *testing.T) {
	dir := t.TempDir()
	expect := func(m *Manager, want Mode, ids ...string) {
		t.Helper()
		for _, id := range ids {
			if got, err := m.Mode(id); got != want || err != nil {
				t.Errorf("Mode(%s) = %q, %v, want %q", id, got, err, want)
			}
		}
	}
	t.Run("before", func(t *testing.T) {
		m, _ := newManager(t, dir)
		s, err := m.OpenIn("made", "", Plan)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := m.Open("plain", "")
		if err != nil {
			t.Fatal(err)
		}
		expect(m, Work, "plain")
		if err := plain.SetMode(t.Context(), "else"); err == nil {
			t.Error(`SetMode("else") = nil, want an error`)
		}
		if err := plain.SetMode(t.Context(), Plan); err != nil {
			t.Fatal(err)
		}
		for _, f := range [][2]string{{"made", "fork"}, {"plain", "plain::agent::a"}, {"plain::agent::a", "forkofagent"}, {"fork", "again"}} {
			if _, err := m.Fork(f[0], f[1]); err != nil {
				t.Fatal(err)
			}
		}
		expect(m, Plan, "made", "plain", "fork", "plain::agent::a", "forkofagent", "again")
		work, err := m.Find("again", "")
		if err != nil {
			t.Fatal(err)
		}
		if err := work.SetMode(t.Context(), Work); err != nil {
			t.Fatal(err)
		}
		free, err := m.OpenIn("free", "", Edits)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Fork("free", "free::agent::a"); err != nil {
			t.Fatal(err)
		}
		if _, err := m.ForkInto("free", "asks", Work); err != nil {
			t.Fatal(err)
		}
		expect(m, Work, "asks")
		if _, err := free.Reset(false); err != nil {
			t.Fatal(err)
		}
		expect(m, Edits, "free", "free::agent::a")
		// Somebody else's entry of that name says nothing.
		forged := event.Event{Kind: NoteMode, SessionID: "made", ID: "forged", Time: time.Now(), Source: "plugin"}
		if _, err := s.Note(forged, modeNote{Work}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Say(Message{Role: "assistant", Content: "a message after it"}, "", ""); err != nil {
			t.Fatal(err)
		}
		if _, err := plain.Reset(false); err != nil {
			t.Fatal(err)
		}
		expect(m, Plan, "made", "plain", "plain::agent::a")
		expect(m, Work, "again")
	})
	m, _ := newManager(t, dir)
	expect(m, Plan, "made", "plain", "fork", "forkofagent")
	expect(m, Work, "again")
	expect(m, Edits, "free")
	if _, err := m.Mode("nobody"); err == nil {
		t.Error("Mode of no session = nil error, want one: a check that cannot know denies")
	}
}
