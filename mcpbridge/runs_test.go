package mcpbridge_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// USE-2: a server is what it comes to, variables and its file of variables included: only
// what comes to something else has to be started again.
func TestRuns(t *testing.T) {
	env := t.TempDir() + "/env"
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(env, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("A=1\n")
	off := servers.Server{Name: "off", Transport: servers.Stdio, Command: "x", Disabled: true}
	unset := servers.Server{Name: "unset", Transport: servers.Stdio, Command: "${NOT_SET_ANYWHERE}"}
	remote := servers.Server{Name: "remote", Transport: servers.Stdio, Command: "no-such-command", EnvFile: env, Args: []string{"${WORD}"}}
	reg, procs := new(tool.Registry), new(proc.Manager)
	br := mcpbridge.New(mcpbridge.Config{Registry: reg, Procs: procs, HTTP: upstream.NewTransport(), Version: "test", Home: t.TempDir(), Env: func(k string) (string, bool) { return "word", k == "WORD" }})
	host := feature.NewHost(feature.Config{Registry: reg, Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg})})
	br.Attach(host)
	t.Cleanup(func() {
		if err := host.Close(context.Background()); err != nil {
			t.Errorf("Close of the host = %v, want no error", err)
		}
		procs.Close(context.Background())
	})
	for _, s := range []servers.Server{off, unset} {
		if br.Runs(s) {
			t.Errorf("%s runs before it was added", s.Name)
		}
		br.Add(t.Context(), s)
		if !br.Runs(s) {
			t.Errorf("%s comes to something else although nothing has changed", s.Name)
		}
	}
	on := off
	on.Disabled = false
	mended := unset
	mended.Command = "x"
	for name, s := range map[string]servers.Server{"switched on": on, "mended": mended, "another": remote} {
		if br.Runs(s) {
			t.Errorf("%s: it runs, want that it comes to something else", name)
		}
	}
	if !br.Remove("unset") || br.Runs(unset) {
		t.Error("a server that was removed runs")
	}
	br.Add(t.Context(), remote)
	same := remote
	same.Format, same.Args = servers.FormatYaya, []string{"word"}
	if !br.Runs(remote) || !br.Runs(same) {
		t.Error("the same in other words comes to something else")
	}
	write("A=2\n")
	if br.Runs(remote) {
		t.Error("another file of variables comes to the same")
	}
}

// USE-2: a file that is not taken over shows in the bridge's health, so in the doctor.
func TestRefusedFileIsUnhealthy(t *testing.T) {
	reg := new(tool.Registry)
	br := mcpbridge.New(mcpbridge.Config{Registry: reg})
	br.Attach(feature.NewHost(feature.Config{Registry: reg, Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg})}))
	if h := br.HealthCheck(t.Context(), nil); h.Status != plugin.Healthy {
		t.Errorf("before: got %+v, want healthy", h)
	}
	br.Refused(map[string]string{"mcp.json": "line 4: no"})
	if h := br.HealthCheck(t.Context(), nil); h.Status != plugin.Failing || len(h.Details) != 1 || !strings.Contains(h.Details[0].Message, "line 4") || !strings.Contains(h.Summary, "mcp.json has a mistake") {
		t.Errorf("got %+v, want failed, with the file and the place", h)
	}
	br.Refused(nil)
	if h := br.HealthCheck(t.Context(), nil); h.Status != plugin.Healthy {
		t.Errorf("mended: got %+v, want healthy", h)
	}
}
