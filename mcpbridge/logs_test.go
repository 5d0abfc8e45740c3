package mcpbridge

import (
	"slices"
	"testing"

	"github.com/yaya-ai/yaya/feature"
)

// A failure stands among a server's lines once: not again at the states after it, which a
// server comes to that has recovered.
func TestStatesHaveTheirOwnReason(t *testing.T) {
	b := New(Config{})
	log := b.log("s")
	for _, st := range []feature.Status{
		{State: feature.Starting}, {State: feature.Failed, Reason: "it died", LastError: "it died"}, {State: feature.Starting, Reason: "it died", LastError: "it died"},
		{State: feature.Ready, LastError: "it died"}, {State: feature.Draining, Reason: "changed", LastError: "it died"}, {State: feature.Stopped, LastError: "it died"},
	} {
		st.ID = "s"
		b.noteState(st)
	}
	var got []string
	for _, l := range log.After(0, 100) {
		got = append(got, l.Text)
	}
	if want := []string{"starting", "failed: it died", "starting", "ready", "draining: changed", "stopped"}; !slices.Equal(got, want) {
		t.Errorf("the lines are %q, want %q", got, want)
	}
}
