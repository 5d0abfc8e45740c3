package mcpbridge_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/hosttest"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// A server whose envFile is a pipe waits for it in its own start: whoever adds or removes
// servers does not.
func TestAPipeKeepsNobodyWaiting(t *testing.T) {
	reg, procs, rt := new(tool.Registry), new(proc.Manager), upstream.NewTransport()
	defer rt.CloseIdleConnections()
	br := mcpbridge.New(mcpbridge.Config{Registry: reg, Procs: procs, HTTP: rt, Env: os.LookupEnv, Home: t.TempDir(), Version: "test"})
	host := feature.NewHost(feature.Config{Registry: reg, Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg}), OnStatus: br.OnStatus})
	br.Attach(host)
	defer func() {
		if err := host.Close(t.Context()); err != nil {
			t.Errorf("Close of the host = %v, want no error", err)
		}
		procs.Close(t.Context())
	}()
	pipe := filepath.Join(t.TempDir(), "env")
	hosttest.Pipe(t, pipe)
	s := servers.Server{Name: "s", Transport: servers.Stdio, Command: "sh", Args: []string{"-c", server}, EnvFile: pipe}
	if warnings := br.Add(t.Context(), s); len(warnings) > 0 || len(br.InvalidServers()) > 0 {
		t.Fatalf("got %q and %v, want that it waits for the pipe in its start", warnings, br.InvalidServers())
	}
	if !br.Remove("s") {
		t.Error("a server that waits for its pipe cannot be removed")
	}
	br.Add(t.Context(), s)
	f, err := os.OpenFile(pipe, os.O_WRONLY, 0) // when the start reads it
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("FROM_FILE=pipe\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the server has its variable of the pipe", func() bool {
		e, ok := reg.Snapshot().Lookup("s__t")
		return ok && e.Def.Description == "pipe"
	})
}
