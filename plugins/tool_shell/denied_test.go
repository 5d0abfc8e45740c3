package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"strings"
	"sync"
	"testing"

	"github.com/yaya-ai/yaya/internal/sandbox"
)

// A connection that is refused while the notes of a command are made does not race with
// them.
func TestDeniedDuringNotes(t *testing.T) {
	r := &reach{p: &Plugin{cfg: Config{Hosts: func() []string { return nil }}}}
	var work sync.WaitGroup
	for i := range 4 {
		work.Go(func() { r.refused(sandbox.Denial{Host: "example.com", Port: 1000 + i, Why: "no"}) })
		work.Go(func() { r.notes("command") })
	}
	work.Wait()
	if n := strings.Count(strings.Join(r.notes("command"), "\n"), "kept from reaching example.com"); n != 4 {
		t.Errorf("the notes name %d denials, want 4", n)
	}
}
