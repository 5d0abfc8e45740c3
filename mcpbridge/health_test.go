package mcpbridge_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/masked"
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
			t.Errorf("Close of the host = %v, want no error", err)
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

// A server that has failed and starts again is no better for it: who looks at the moment
// of an attempt is told the same as a moment before.
func TestHealthWhileAFailedServerStartsAgain(t *testing.T) {
	reg, procs := new(tool.Registry), new(proc.Manager)
	defer procs.Close(t.Context())
	br := mcpbridge.New(mcpbridge.Config{Registry: reg, Procs: procs, Env: os.LookupEnv, Home: t.TempDir(), Version: "test"})
	host := feature.NewHost(feature.Config{Registry: reg, Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg})})
	br.Attach(host)
	defer func() {
		if err := host.Close(t.Context()); err != nil {
			t.Errorf("Close of the host = %v, want no error", err)
		}
	}()
	// The second start waits for the end of the test.
	dir := t.TempDir()
	br.Add(t.Context(), servers.Server{Name: "bad", Transport: servers.Stdio, Command: "sh", Args: []string{"-c", `[ -e "$0" ] && exec cat >/dev/null; touch "$0"; echo 'error: no licence' >&2; exit 1`, dir + "/again"}})
	eventually.True(t, "bad starts again", func() bool {
		st := host.Status()[0]
		return st.State == feature.Starting && st.Restarts == 1
	})
	h := br.HealthCheck(t.Context(), nil)
	if h.Status != plugin.Failing || !strings.Contains(h.Details[0].Message, "no licence") {
		t.Errorf("the health is %+v, want failing with the reason", h)
	}
}

// An error about a server's configuration shows no secret that it quotes.
func TestErrorsOfInvalidServersAreMasked(t *testing.T) {
	const secret = "correct-horse-battery"
	known := new(masked.Secrets)
	known.Learn(secret)
	reg := new(tool.Registry)
	br := mcpbridge.New(mcpbridge.Config{Registry: reg, Env: os.LookupEnv, Home: t.TempDir(), Version: "test", Mask: known.String})
	host := feature.NewHost(feature.Config{Registry: reg, Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg})})
	br.Attach(host)
	defer func() {
		if err := host.Close(t.Context()); err != nil {
			t.Errorf("Close of the host = %v, want no error", err)
		}
	}()
	cause := errors.New("url: cannot parse https://ada:" + secret + "@host")
	br.Invalid(servers.Invalid{Name: "bad", Err: cause})
	_, why := br.Absent("bad__echo", tool.LocalOwner)
	got := br.InvalidServers()
	for name, text := range map[string]string{"a client": why, "the doctor": br.HealthCheck(t.Context(), nil).Details[0].Message, "who asks": got[0].Err.Error()} {
		if strings.Contains(text, secret) || !strings.Contains(text, "cannot parse") {
			t.Errorf("%s is told %q, want the error without the secret", name, text)
		}
	}
	if !errors.Is(got[0].Err, cause) {
		t.Errorf("errors.Is(%v, its cause) = false, want true", got[0].Err)
	}
}
