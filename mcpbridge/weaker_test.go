package mcpbridge

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/sandbox"
)

// A server that starts in a weaker sandbox than its profile wants is in the log, once as
// long as it is weaker in the same way.
func TestWeakerStartsAreLogged(t *testing.T) {
	var log bytes.Buffer
	b := New(Config{Log: zerolog.New(&log), Sandboxes: &sandbox.Sandboxes{
		Home: t.TempDir(), Cache: t.TempDir(),
		Settings: func() sandbox.Settings { return sandbox.Settings{Mode: sandbox.Prefer, Backend: sandbox.None} },
	}})
	for _, profile := range []string{"guarded", "guarded", "plugin"} {
		policy, err := b.cfg.Sandboxes.Policy(profile, "x")
		if err != nil {
			t.Fatal(err)
		}
		run, err := b.start("notes", policy)
		if err != nil {
			t.Fatal(err)
		}
		run.Ended()
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines, want one for each profile:\n%s", len(lines), log.String())
	}
	for i, profile := range []string{"guarded", "plugin"} {
		for _, part := range []string{`"server":"notes"`, `"profile":"` + profile + `"`, `"backend":"off"`, "hidden files", "weaker sandbox"} {
			if !strings.Contains(lines[i], part) {
				t.Errorf("line %d does not say %s: %s", i, part, lines[i])
			}
		}
	}
}
