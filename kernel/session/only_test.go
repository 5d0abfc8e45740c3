package session_test

import (
	"fmt"
	"testing"
)

// Y-198: the tools of a sub-agent are part of its tape: they hold after a restart, and when its
// session starts over. A fork that a person makes has all tools.
func TestToolsOfASubAgent(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	w.open("p")
	w.say("p", "one")
	fork := func(parent, child string, tools []string) {
		t.Helper()
		if _, err := w.ForkAgent(parent, child, tools); err != nil {
			t.Fatal(err)
		}
	}
	fork("p", "p::agent::all", nil)
	fork("p", "p::agent::none", []string{})
	fork("p", "p::agent::two", []string{"a", "b"})
	fork("p::agent::two", "p::agent::two::agent::one", []string{"b", "c"})
	fork("p::agent::two", "p::agent::two::agent::two", nil)
	if _, err := w.Fork("p::agent::two", "person"); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"p": "[] true", "p::agent::all": "[] true", "p::agent::none": "[] false", "p::agent::two": "[a b] false",
		"p::agent::two::agent::one": "[b] false", "p::agent::two::agent::two": "[a b] false", "person": "[] true",
	}
	check := func(w *world, when string) {
		t.Helper()
		for id, want := range want {
			s, err := w.Find(id, "")
			if err != nil {
				t.Fatal(err)
			}
			if got, err := s.Tools(); err != nil || fmt.Sprint(got, got == nil) != want {
				t.Errorf("%s: Tools of %s = %v, %t, %v; want %s", when, id, got, got == nil, err, want)
			}
		}
	}
	check(w, "at first")
	w.stop()
	w = newWorld(t, dir)
	check(w, "after a restart")
	s, err := w.Find("p::agent::two", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Reset(true); err != nil {
		t.Fatal(err)
	}
	check(w, "after a reset")
}
