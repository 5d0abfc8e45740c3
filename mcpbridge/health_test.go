package mcpbridge_test

import (
	"os"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// USE-10: the doctor is told the line that explains a failure, and then all that the
// server has said.
func TestHealthOfFailedServers(t *testing.T) {
	reg, procs := new(tool.Registry), new(proc.Manager)
	defer procs.Close(t.Context())
	br := mcpbridge.New(mcpbridge.Config{Registry: reg, Procs: procs, Env: os.LookupEnv, Home: t.TempDir(), Version: "test"})
	host := feature.NewHost(feature.Config{Registry: reg, Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg})})
	br.Attach(host)
	defer func() {
		if err := host.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	br.Add(t.Context(), servers.Server{Name: "bad", Transport: servers.Stdio, Command: "sh", Args: []string{"-c", "echo hello >&2; echo 'error: no licence' >&2; echo bye >&2; exit 1"}})
	eventually.True(t, "bad has failed", func() bool { return host.Status()[0].State == feature.Failed })
	h := br.HealthCheck(t.Context(), nil)
	if h.Status != plugin.Failing || h.Details[0].Status != plugin.Failing || len(h.Details) != 1 {
		t.Fatalf("the health is %+v, want failing by one server", h)
	}
	first, said, _ := strings.Cut(h.Details[0].Message, "\n")
	if strings.HasPrefix(first, "failed") || !strings.HasSuffix(first, "it said: error: no licence") || said != "hello\nerror: no licence\nbye\n" {
		t.Errorf("the doctor is told %q and %q", first, said)
	}
}
