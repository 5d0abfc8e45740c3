package embedded

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server/pse"
)

// A yaya without a server samples nothing for one.
func TestNoSamples(t *testing.T) {
	var cpu float64
	var rss, vss int64
	if err := pse.ProcUsage(&cpu, &rss, &vss); err == nil {
		t.Error("the server's package samples the process each second, want that it has no file to read")
	}
}
