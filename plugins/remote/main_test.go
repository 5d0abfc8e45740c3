package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
	yaya "github.com/yaya-ai/yaya/sdk/go"
)

// programName is the name under which this test runs as the program of a plugin; the first
// argument says what it does.
const programName = "plugin-under-test"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == programName {
		os.Exit(program(os.Args[1]))
	}
	goleak.VerifyTestMain(m)
}

// program is a plugin. The categories behave, by the SDK; everything else does not.
func program(mode string) int {
	bad := misbehave[mode]
	if bad == nil {
		bad = badGuards[mode]
	}
	if bad != nil {
		bad(&rogue{in: bufio.NewScanner(os.Stdin)})
		return 0
	}
	p := yaya.Plugin{Name: "subject", Version: "1.0.0", Category: mode, OnEvent: onEvent}
	p.Health = func(context.Context) yaya.Health { return yaya.Health{Status: "ok", Summary: "well"} }
	if mode == "tool" {
		p.Tools = tools()
	}
	if mode == "skill" && os.Getenv("GUARDS") != "" {
		p.GuardTool, p.GuardPrompt = guardTool, guardPrompt
	}
	if err := yaya.Serve(p, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// onEvent answers each request as its category does.
func onEvent(ctx context.Context, h *yaya.Host, ev yaya.Event) error {
	ref := map[string]any{"request_id": ev.ID}
	switch ev.Kind {
	case "llm.call.request":
		ref["text"], ref["usage"] = "from the plugin", map[string]any{}
		return errors.Join(h.Emit(ctx, "llm.call.delta", ev.SessionID, map[string]any{"content": "from ", "request_id": ev.ID}), h.Emit(ctx, "llm.call.response", ev.SessionID, ref))
	case "strategy.decide.request":
		ref["next"] = "done"
		return h.Emit(ctx, "strategy.decide.response", ev.SessionID, ref)
	case "memory.query":
		ref["hits"] = []map[string]string{{"text": "blue"}}
		return h.Emit(ctx, "memory.result", ev.SessionID, ref)
	case "user.message.received":
		var m struct{ Text string }
		if err := json.Unmarshal(ev.Payload, &m); err != nil {
			return err
		}
		switch {
		case m.Text == "ask":
			got, err := h.Request(ctx, "memory.query", ev.SessionID, map[string]any{"query": "color", "k": 1})
			if err != nil {
				return err
			}
			return h.Emit(ctx, "x.subject.heard", ev.SessionID, got)
		case strings.HasPrefix(m.Text, "emit "):
			var e struct {
				Kind, Session string
				Payload       json.RawMessage
			}
			if err := json.Unmarshal([]byte(m.Text[5:]), &e); err != nil {
				return err
			}
			return h.Emit(ctx, e.Kind, e.Session, e.Payload)
		case m.Text == "fail":
			return errors.New("as it was told")
		case m.Text == "exit":
			os.Exit(3)
		case m.Text == "hang":
			<-ctx.Done()
			return ctx.Err()
		}
		return h.Emit(ctx, "x.subject.heard", ev.SessionID, map[string]string{"text": m.Text})
	}
	return nil
}

type text struct {
	Text string `json:"text"`
}

func tools() []yaya.Tool {
	upper := yaya.NewTool("upper", "Returns a text in capitals.", func(_ context.Context, c *yaya.Call, in text) (yaya.Result, error) {
		c.Progress(1, 2, "half")
		return yaya.Text(strings.ToUpper(in.Text)), nil
	})
	upper.Kind = "read"
	sleep := yaya.NewTool("sleep", "Waits for a file.", func(ctx context.Context, c *yaya.Call, in text) (yaya.Result, error) {
		c.Progress(0, 0, "began")
		for {
			if _, err := os.Stat(in.Text); err == nil {
				return yaya.Text("awake"), nil
			}
			select {
			case <-ctx.Done():
				return yaya.Result{}, ctx.Err()
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	sleep.Kind = "read"
	crash := yaya.NewTool("crash", "Exits.", func(context.Context, *yaya.Call, struct{}) (yaya.Result, error) {
		fmt.Fprintln(os.Stderr, "so long")
		os.Exit(3)
		return yaya.Result{}, nil
	})
	crash.Kind = "read"
	return []yaya.Tool{upper, sleep, crash, yaya.NewTool("fails", "Fails.", func(context.Context, *yaya.Call, struct{}) (yaya.Result, error) {
		return yaya.Result{}, errors.New("it does not work")
	})}
}

// world is a kernel's registry of plugins, with everything that it needs.
type world struct {
	t     testing.TB
	dir   string
	bus   *bus.Bus
	cfg   *config.Store
	tools *tool.Registry
	procs *proc.Manager
	*plugin.Registry

	mu  sync.Mutex
	got []event.Event
	log bytes.Buffer
}

func (w *world) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

func (w *world) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

// kinds are those that a world remembers.
var kinds = []string{
	"plugin.loaded", "plugin.reloaded", "plugin.removed", "plugin.error", "llm.call.response", "llm.call.delta", "strategy.decide.response", "memory.result", "x.subject.heard", "x.subject.more", "approval.response",
}

func newWorld(t testing.TB) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, bus: bus.New(bus.Config{}), tools: new(tool.Registry), procs: new(proc.Manager)}
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	if w.cfg, err = config.Open(config.Options{Root: root}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.bus.Subscribe(bus.SubscribeOptions{Name: "w", Limit: 1 << 20}, kinds, func(_ context.Context, ev event.Event) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.got = append(w.got, ev)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if w.Registry, err = plugin.NewRegistry(plugin.Config{
		Bus: w.bus, Config: w.cfg, Tools: w.tools, State: root, Log: zerolog.New(w), Strategy: func(string) string { return "subject" },
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Stop(); err != nil {
			t.Errorf("Stop of the plugins = %v, want no error", err)
		}
		w.procs.Close(context.Background())
		if err := w.bus.Close(context.Background()); err != nil {
			t.Errorf("Close of the bus = %v, want no error", err)
		}
		_ = root.Close()
	})
	return w
}

// extras are the ids that a description of a category needs.
var extras = map[string]string{"adapter": `adapter_id = "subject"`, "llm-provider": `provider_id = "subject"`, "strategy": `strategy_id = "subject"`, "memory": `memory_kind = "long-term"`}

// folder makes the folder of a plugin that runs this test in a mode.
func (w *world) folder(category, mode string, more ...string) string {
	w.t.Helper()
	dir := filepath.Join(w.dir, "folder-"+mode)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.Link(self, filepath.Join(dir, programName)); err != nil && !errors.Is(err, os.ErrExist) {
		w.copy(self, filepath.Join(dir, programName))
	}
	toml := fmt.Sprintf("name = \"subject\"\nversion = \"1.0.0\"\ncategory = %q\n%s\nrun = [\"./%s\", %q]\n%s\n", category, extras[category], programName, mode, strings.Join(more, "\n"))
	if err := os.WriteFile(filepath.Join(dir, DescriptionFile), []byte(toml), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return dir
}

func (w *world) copy(from, to string) {
	w.t.Helper()
	in, err := os.Open(from)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o700)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		w.t.Fatal(err)
	}
}

// load makes and loads a plugin.
func (w *world) load(category, mode string, more ...string) *Plugin {
	w.t.Helper()
	p := w.make(w.folder(category, mode, more...))
	w.Load(context.Background(), false, p)
	return p
}

func (w *world) make(folder string) *Plugin {
	w.t.Helper()
	d, err := ReadDescription(folder)
	if err != nil {
		w.t.Fatal(err)
	}
	p := New(Config{Folder: folder, Description: d, Procs: w.procs, Version: "test", Env: os.LookupEnv})
	w.t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

func (w *world) status() plugin.Status {
	for _, s := range w.Snapshot() {
		if s.Name == "subject" {
			return s
		}
	}
	return plugin.Status{}
}

// events returns the remembered events, each in a line.
func (w *world) events() (out []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ev := range w.got {
		raw, err := json.Marshal(ev.Payload)
		if err != nil {
			w.t.Error(err)
		}
		out = append(out, fmt.Sprintf("%s %s %s %s", ev.Source, ev.SessionID, ev.Kind, raw))
	}
	return out
}

// sees waits for an event whose line contains all parts.
func (w *world) sees(parts ...string) {
	w.t.Helper()
	defer func() {
		if w.t.Failed() {
			w.t.Logf("the events:\n%s\nthe log:\n%s", strings.Join(w.events(), "\n"), w.logged())
		}
	}()
	eventually.True(w.t, fmt.Sprintf("an event with %q", parts), func() bool {
		return slices.ContainsFunc(w.events(), func(line string) bool {
			return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) })
		})
	})
}

func (w *world) say(session, text string) {
	w.t.Helper()
	if _, err := bus.Publish(w.bus.Kernel(), event.UserMessageReceived, session, event.UserMessage{Text: text}); err != nil {
		w.t.Fatal(err)
	}
}

// call calls a tool.
func (w *world) call(ctx context.Context, name, args string, progress func(tool.Progress)) tool.Result {
	w.t.Helper()
	d := tool.NewDispatcher(tool.DispatcherConfig{Registry: w.tools})
	defer func() { _ = d.Close(context.Background()) }()
	d.AddHook(w.Registry)
	return d.Call(ctx, w.tools.Snapshot(), tool.Call{ID: "c1", Name: name, Args: json.RawMessage(args), SessionID: "s1", Origin: tool.OriginCLI, Caller: tool.Caller{Principal: "owner"}, Progress: progress})
}

func (w *world) waitLoaded(state plugin.State) {
	w.t.Helper()
	eventually.True(w.t, "the plugin is "+string(state), func() bool { return w.status().Status == state })
}
