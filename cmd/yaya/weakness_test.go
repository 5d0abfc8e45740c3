package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/sandbox"
)

// A limit that is missing in every run is reported once, other weaknesses each time.
func TestWeaknessIsToldOnce(t *testing.T) {
	var said strings.Builder
	w := &weakness{&said, t.TempDir()}
	for i, c := range []struct {
		name, profile, backend string
		lacks                  sandbox.Need
		told                   bool
	}{
		{"nothing", "command", "namespaces", 0, false},
		{"a limit", "command", "namespaces", sandbox.NeedTasks, true},
		{"the same limit", "command", "namespaces", sandbox.NeedTasks, false},
		{"another limit", "command", "namespaces", sandbox.NeedTasks | sandbox.NeedMemory, true},
		{"another profile", "check", "namespaces", sandbox.NeedTasks, true},
		{"another back end", "command", "landlock", sandbox.NeedTasks, true},
		{"no network", "command", "landlock", sandbox.NeedTasks | sandbox.NeedHosts, true},
		{"no network again", "command", "landlock", sandbox.NeedTasks | sandbox.NeedHosts, true},
	} {
		said.Reset()
		w.tell(c.profile, c.backend, c.lacks)
		if got := strings.Contains(said.String(), "weaker than profile "+c.profile); got != c.told {
			t.Errorf("%d, %s: said %q, want it told: %v", i, c.name, said.String(), c.told)
		}
	}
	w.dir = filepath.Join(w.dir, "nope") // where nothing can be kept, it is reported again
	for range 2 {
		said.Reset()
		if w.tell("command", "namespaces", sandbox.NeedTasks); said.Len() == 0 {
			t.Error("nothing was said where nothing can be kept")
		}
	}
}
