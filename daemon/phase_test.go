package daemon

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/freeport"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
)

// order is that of the phases, as doc.go has it.
var order = []string{"place", "entrance", "controlPlane", "stores", "core", "bridge", "front", "running"}

// Every phase is one, and the order says all of them.
func TestPhasesClose(t *testing.T) {
	all := map[string]phase{
		"place": (*place)(nil), "entrance": (*entrance)(nil), "controlPlane": (*controlPlane)(nil), "stores": (*stores)(nil),
		"core": (*core)(nil), "bridge": (*bridge)(nil), "front": (*front)(nil), "running": (*running)(nil),
	}
	if got, want := slices.Sorted(maps.Keys(all)), slices.Sorted(slices.Values(order)); !slices.Equal(got, want) {
		t.Errorf("the phases are %q, want %q", got, want)
	}
}

// newFlags returns the flags of a test's yaya, with folders of its own.
func newFlags(t *testing.T) *Flags {
	t.Helper()
	dir, err := os.MkdirTemp("", "yd") // short, for the socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	return &Flags{DataDir: filepath.Join(dir, "data"), ConfigDir: filepath.Join(dir, "config")}
}

// A phase that fails ends those before it: nobody listens, the socket is gone, and another
// yaya can have the data directory. Nothing has been served meanwhile.
func TestFailingPhasesLeaveNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		damage func(t *testing.T, g *Flags, o *Options)
		want   string
	}{
		"the entrance: the local address": {func(_ *testing.T, _ *Flags, o *Options) { o.Listen.Local = "0.0.0.0:0" }, "--local"},
		"the control plane: a log without its key": {func(t *testing.T, g *Flags, _ *Options) {
			write(t, filepath.Join(g.DataDir, "control", "log.jsonl"), "no record\nand another\n")
		}, "server.key"},
		"the stores: a link in the configuration": {func(t *testing.T, g *Flags, _ *Options) {
			if err := errors.Join(os.MkdirAll(g.ConfigDir, 0o700), os.Symlink(filepath.Join(g.ConfigDir, "nowhere"), filepath.Join(g.ConfigDir, "mcp.json"))); err != nil {
				t.Fatal(err)
			}
		}, "is a link to"},
		"the core: its folder of sessions": {func(t *testing.T, g *Flags, _ *Options) { write(t, filepath.Join(g.DataDir, "sessions"), "") }, "data directory"},
		"the front: an issuer without an audience": {func(_ *testing.T, _ *Flags, o *Options) {
			o.Settings = map[string]string{"auth.issuer": "https://issuer.example"}
		}, "auth.issuer"},
		"the last: an upstream without credentials": {func(_ *testing.T, _ *Flags, o *Options) { o.Upstream = "https://yaya.example" }, "yaya connect"},
		"the last: with plugins and a server that run already": {func(t *testing.T, g *Flags, o *Options) {
			write(t, filepath.Join(g.ConfigDir, "mcp.json"), `{"mcpServers":{"one":{"command":"cat"}}}`)
			o.Settings = map[string]string{"plugin.web.enabled": "false"}
		}, "the plugin web is switched off"},
	} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			g, at := newFlags(t), freeport.Addr(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			o := Options{Listen: &Listen{Addr: at}, Started: func(Started) { t.Error("it has started, want an error before"); stop() }}
			tt.damage(t, g, &o)
			_, err := Serve(ctx, g, o)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Serve() = %v, want an error with %q", err, tt.want)
			}
			l, err := net.Listen("tcp", at) //nolint:noctx // test
			if err != nil {
				t.Fatalf("%s after the failure: %v, want it free", at, err)
			}
			_ = l.Close()
			p, err := g.Paths()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(p.Socket()); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the socket after the failure: %v, want none", err)
			}
			unlock, err := p.hold()
			if err != nil {
				t.Fatalf("the lock after the failure: %v, want it free", err)
			}
			unlock()
		})
	}
}

// A port that is taken is said before anything is opened but the data directory, and a
// yaya that runs there already before the port.
func TestTakenPortsAndPlaces(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // test
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	g := newFlags(t)
	o := Options{Listen: &Listen{Addr: taken.Addr().String()}}
	if _, err := Serve(t.Context(), g, o); err == nil || !strings.Contains(err.Error(), "cannot listen on "+o.Listen.Addr) {
		t.Errorf("Serve() on a taken port = %v, want an error that names it", err)
	}
	if _, err := os.Lstat(filepath.Join(g.DataDir, "control")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the control log after that: %v, want none", err)
	}
	p, err := g.Paths()
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := p.hold()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := Serve(t.Context(), g, o); !errors.Is(err, errRunning) {
		t.Errorf("Serve() where one runs = %v, want %v", err, errRunning)
	}
}

// A change that concerns several parts reaches each follower, whenever it was added.
func TestChangesReachAll(t *testing.T) {
	var c changes
	c.tell("nobody")
	var got []string
	for _, who := range []string{"a", "b"} {
		c.follow(func(parts ...string) { got = append(got, who+":"+strings.Join(parts, "+")) })
	}
	c.tell("x", "y")
	if want := []string{"a:x+y", "b:x+y"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// Everything is undone once, the last first.
func TestUndo(t *testing.T) {
	var u undo
	var got []string
	for _, what := range []string{"first", "second"} {
		u.add(func() { got = append(got, what) })
	}
	u.all()
	u.all()
	if want := []string{"second", "first"}; !slices.Equal(got, want) {
		t.Errorf("undone %q, want %q", got, want)
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// A phase ends what it began, and nothing of an earlier one: the kernel takes events after
// the bridge has closed, and only the end of the core stops it, and the servers after it.
func TestBridgeLeavesTheKernelToTheCore(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	g, ctx := newFlags(t), t.Context()
	p, err := g.Paths()
	if err != nil {
		t.Fatal(err)
	}
	at, err := openPlace(g, p, access{lock: true, log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	st, err := openStores(ctx, at, holdings{outside: g.OwnFiles(p, nil)})
	if err != nil {
		t.Fatal(err)
	}
	c, err := openCore(ctx, st)
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBridge(ctx, c, manage.Loaded{}, downstream.Handover{})
	if err != nil {
		t.Fatal(err)
	}
	st.awaitSecrets()
	if err := c.kernel.Start(ctx, b.mcp); err != nil {
		t.Fatal(err)
	}
	announce := func() error {
		_, err := bus.Publish(c.kernel.Bus.Kernel(), event.KernelIsReady, event.KernelSession, event.KernelReady{})
		return err
	}
	var atStop error
	c.onStopped(func(context.Context) error { atStop = announce(); return nil })
	if err := b.Close(ctx); err != nil {
		t.Errorf("bridge.Close() = %v, want nil", err)
	}
	if err := announce(); err != nil {
		t.Errorf("an event after bridge.Close(): %v, want it delivered: the kernel is the core's", err)
	}
	if err := c.Close(ctx); err != nil {
		t.Errorf("core.Close() = %v, want nil", err)
	}
	if atStop == nil {
		t.Error("an event when servers end: got nil, want an error: the kernel stops before them")
	}
	if err := errors.Join(st.Close(ctx), at.Close(ctx)); err != nil {
		t.Errorf("stores.Close(), place.Close() = %v, want nil", err)
	}
}
