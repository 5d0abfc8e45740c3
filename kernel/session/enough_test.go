package session_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/yaya-ai/yaya/kernel/session"
)

// A reader that has seen enough ends the visit without an error, in the entries that a
// fork inherits as in its own; an error of its own it gets back.
func TestEntriesEnd(t *testing.T) {
	w := newWorld(t, t.TempDir())
	parent := w.open("p")
	w.say("p", "one")
	w.say("p", "two")
	inherited := len(entries(t, parent))
	fork, err := w.Fork("p", "f")
	if err != nil {
		t.Fatal(err)
	}
	w.say("f", "three")
	all := len(entries(t, fork))
	if all <= inherited {
		t.Fatalf("the fork has %d entries, want more than the %d of its parent", all, inherited)
	}
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		after     int // entries
		ends, err error
	}{
		"at the first":         {1, fs.SkipAll, nil},
		"in the parent's":      {inherited - 1, fs.SkipAll, nil},
		"at the last":          {all, fs.SkipAll, nil},
		"an error":             {all, boom, boom},
		"an error of a parent": {1, boom, boom},
	} {
		t.Run(name, func(t *testing.T) {
			visited := 0
			err := fork.Entries(0, func(session.Entry) error {
				if visited++; visited == c.after {
					return c.ends
				}
				return nil
			})
			if !errors.Is(err, c.err) || visited != c.after {
				t.Errorf("Entries = %v after %d entries, want %v after %d", err, visited, c.err, c.after)
			}
		})
	}
}
