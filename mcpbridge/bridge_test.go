package mcpbridge_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

func TestMain(m *testing.M) {
	if os.Getenv(echoEnv) != "" {
		echoStdio()
		return
	}
	goleak.VerifyTestMain(m)
}

// server answers the handshake and one tool, with a shell's means.
const server = `while read -r line; do
id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
case "$line" in
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}' ;;
*'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"t","description":"'"$FROM_FILE$WRITTEN"'","inputSchema":{"type":"object"}}]}}' ;;
*'"id"'*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no"}}' ;;
esac
done`

// Y-67, Y-68: one x.mcp.server.ready per server that came up, one
// x.mcp.server.error per server that did not; the bridge goes on.
func TestBridgeTellsTheBus(t *testing.T) {
	b := bus.New(bus.Config{})
	var mu sync.Mutex
	var ready []mcpbridge.ServerReady
	errs := map[string]mcpbridge.ServerError{}
	_, err := b.Subscribe(bus.SubscribeOptions{Name: "t"}, []string{"x.mcp.server.ready", "x.mcp.server.error"}, func(_ context.Context, ev event.Event) error {
		mu.Lock()
		defer mu.Unlock()
		if ev.SessionID != "_bridge:mcp-bridge" || ev.Source != "mcp-bridge" {
			return errors.New("wrong envelope")
		}
		switch p := ev.Payload.(type) {
		case mcpbridge.ServerReady:
			ready = append(ready, p)
		case mcpbridge.ServerError:
			if _, twice := errs[p.Server]; twice {
				t.Errorf("%s was reported twice", p.Server)
			}
			errs[p.Server] = p
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	reg, procs, rt := new(tool.Registry), new(proc.Manager), upstream.NewTransport()
	env := t.TempDir() + "/env"
	if err := os.WriteFile(env, []byte("FROM_FILE=file\nWRITTEN=lost\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	br := mcpbridge.New(mcpbridge.Config{
		Registry: reg, Procs: procs, HTTP: rt, Env: os.LookupEnv, Home: t.TempDir(), Version: "test",
		Invalid: []servers.Invalid{{Name: "typo", File: "f", Err: errors.New("unknown key")}},
	})
	host := feature.NewHost(feature.Config{Registry: reg, Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg}), OnStatus: br.OnStatus})
	br.Attach(host)
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	settings, err := config.Open(config.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	plugins, err := plugin.NewRegistry(plugin.Config{Bus: b, Config: settings, Tools: reg, State: root})
	if err != nil {
		t.Fatal(err)
	}
	plugins.Load(t.Context(), true, br)
	good := servers.Server{Name: "good", Transport: servers.Stdio, Command: "sh", Args: []string{"-c", server}, EnvFile: env, Env: map[string]string{"WRITTEN": "-out"}}
	for _, s := range []servers.Server{
		good, good,
		{Name: "missing", Transport: servers.Stdio, Command: "no-such-command"},
		{Name: "unset", Transport: servers.Stdio, Command: "${NOT_SET_ANYWHERE}"},
		{Name: "noenv", Transport: servers.Stdio, Command: "sh", EnvFile: "/no/such/file"},
		{Name: "off", Transport: servers.Stdio, Command: "no-such-command", Disabled: true},
	} {
		br.Add(t.Context(), s)
	}
	if err := host.WaitReady(t.Context(), "good"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(eventually.Limit); ; time.Sleep(10 * time.Millisecond) {
		mu.Lock()
		done := len(ready) == 1 && len(errs) == 5
		mu.Unlock()
		if done || time.Now().After(deadline) {
			break
		}
	}
	if err := plugins.Stop(); err != nil {
		t.Errorf("Stop of the plugins = %v, want no error", err)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Errorf("Close of the bus = %v, want no error", err)
	}
	procs.Close(t.Context())
	if len(ready) != 1 || ready[0].Server != "good" || len(ready[0].Tools) != 1 || ready[0].Tools[0] != (mcpbridge.ServerTool{Name: "good__t", MCPName: "t", Description: "file-out"}) {
		t.Errorf("ready: %+v", ready)
	}
	for name, want := range map[string]struct{ kind, msg string }{
		"missing": {"boot_failed", "not found"}, "unset": {"config_invalid", "NOT_SET_ANYWHERE"}, "noenv": {"config_invalid", "envFile"},
		"typo": {"config_invalid", "unknown key"}, "good": {"config_invalid", "another server of that name"},
	} {
		if e := errs[name]; e.Kind != want.kind || !strings.Contains(e.Message, want.msg) {
			t.Errorf("%s: %+v, want %+v", name, e, want)
		}
	}
	if len(errs) != 5 {
		t.Errorf("errors: %v", errs)
	}
}
