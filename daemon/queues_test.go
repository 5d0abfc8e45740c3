package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/session"
)

// REL-1, OP-112: queues go on that have no marker, because an earlier version left them, or
// because they came and went while they were backed up.
func TestQueuesWithoutMarkers(t *testing.T) {
	queued := func(g *Flags) {
		t.Helper()
		if err := WithSessions(g, func(m *session.Manager) error {
			s, err := m.Open("s1", "")
			if err != nil {
				return err
			}
			if _, err := m.Open("s2", ""); err != nil {
				return err
			}
			_, err = s.SetQueue([]session.Prompt{{ID: "p1", Text: "later"}}, "")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(g.DataDir, "tapes", ".queued")); err != nil {
			t.Fatal(err)
		}
	}
	goesOn := func(g *Flags, want int) {
		t.Helper()
		n := 0
		if err := WithSessions(g, func(m *session.Manager) error {
			return m.WithQueue(t.Context(), func(s *session.Session) {
				if n++; s.ID() != "s1" {
					t.Errorf("%s goes on, want s1", s.ID())
				}
			})
		}); err != nil || n != want {
			t.Errorf("%d queues go on, %v, want %d", n, err, want)
		}
	}
	g := newFlags(t)
	queued(g)
	goesOn(g, 0)
	b := backedUp(t, g)
	to := elsewhere(t)
	if _, err := to.Restore(t.Context(), RestoreOptions{File: b.File}); err != nil {
		t.Fatal(err)
	}
	goesOn(to, 1)
	if err := dataOf(t, g).Remove(formatFile); err != nil {
		t.Fatal(err)
	}
	goesOn(g, 1)
}

// OP-40, OP-112: at whichever step the upgrade to format 2 ends, the directory has format
// 1 and the next opening tries again, or its queues are marked.
func TestUpgradeEndedAtEveryStep(t *testing.T) {
	g := newFlags(t)
	if err := WithSessions(g, func(m *session.Manager) error {
		for _, id := range []string{"s1", "s2", "s3"} {
			s, err := m.Open(id, "")
			if err == nil && id != "s3" {
				_, err = s.SetQueue([]session.Prompt{{ID: "p1", Text: "later"}}, "")
			}
			if err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	data := dataOf(t, g)
	for n := 1; ; n++ {
		if err := errors.Join(os.RemoveAll(filepath.Join(g.DataDir, "tapes", ".queued")), os.RemoveAll(filepath.Join(g.DataDir, formatFile))); err != nil {
			t.Fatal(err)
		}
		fsys, ended := dies(journal.Root(data), n)
		_, err := upgradeTo(data, DataFormat, []migration{{2, func(*os.Root) error { return session.MarkQueues(fsys) }}})
		format, _, ferr := formatOf(data)
		if ferr != nil || (err == nil) != ended() || ended() != (format == DataFormat) {
			t.Fatalf("step %d: upgrade = %v, and the format is %d, %v", n, err, format, ferr)
		}
		if _, err := g.openForTest(t); err != nil {
			t.Fatal(err)
		}
		marks, err := os.ReadDir(filepath.Join(g.DataDir, "tapes", ".queued"))
		if err != nil || len(marks) != 2 {
			t.Errorf("step %d: the markers are %v, %v, want two", n, marks, err)
		}
		if ended() {
			if n < 5 {
				t.Errorf("the upgrade took %d steps", n)
			}
			return
		}
	}
}
