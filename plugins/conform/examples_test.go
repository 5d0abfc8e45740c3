package conform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/kernel"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/plugins/llm_echo"
	"github.com/yaya-ai/yaya/plugins/remote"
	"github.com/yaya-ai/yaya/plugins/strategy_react"
)

// A language is one in which the examples are written.
type language struct {
	program string
	recent  []string // arguments with which the program succeeds if it is recent enough
	sdk     string   // below the root
	at      string   // where a plugin's folder has it
}

var (
	python     = language{"python3", []string{"-c", "import sys; sys.exit(sys.version_info < (3, 10))"}, "sdk/python/yaya_plugin", "yaya_plugin"}
	javaScript = language{"node", []string{"-e", "process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)"}, "sdk/typescript", "node_modules/@yaya/plugin"}
)

const root = "../.."

// need skips a test where the language is missing.
func (l language) need(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skipf("-short does without %s", l.program)
	}
	if err := exec.CommandContext(t.Context(), l.program, l.recent...).Run(); err != nil { //nolint:gosec // one of two
		if os.Getenv("YAYA_PEERS_REQUIRED") != "" {
			t.Fatalf("%s is missing, or too old: %v", l.program, err)
		}
		t.Skipf("%s is missing, or too old: %v", l.program, err)
	}
}

// bundle returns a folder with these files and the SDK, as an author ships it.
func (l language) bundle(t *testing.T, files string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.CopyFS(dir, os.DirFS(files)), os.CopyFS(filepath.Join(dir, filepath.FromSlash(l.at)), os.DirFS(filepath.Join(root, filepath.FromSlash(l.sdk))))); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (l language) example(t *testing.T, name string) string {
	t.Helper()
	l.need(t)
	return l.bundle(t, filepath.Join(root, "examples", "plugins", name))
}

// house is a kernel with a strategy and the scripted model.
type house struct {
	*kernel.Kernel
	t     *testing.T
	data  string
	home  string
	procs *proc.Manager

	mu    sync.Mutex
	asked []event.LLMRequest
}

func newHouse(t *testing.T, settings map[string]string) *house {
	t.Helper()
	h := &house{t: t, data: t.TempDir(), home: t.TempDir(), procs: new(proc.Manager)}
	data, err := os.OpenRoot(h.data)
	if err != nil {
		t.Fatal(err)
	}
	store, err := config.Open(config.Options{Root: data})
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range settings {
		if err := store.Set(k, json.RawMessage(v)); err != nil {
			t.Fatalf("setting %s: %v", k, err)
		}
	}
	if h.Kernel, err = kernel.Open(kernel.Config{Data: data, Settings: store, Workspace: t.TempDir(), Version: "test", Log: zerolog.New(zerolog.NewTestWriter(t))}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Stop(context.Background(), "test over"); err != nil {
			t.Errorf("Stop of the kernel = %v, want no error", err)
		}
		h.procs.Close(context.Background())
		_ = data.Close()
	})
	if err := h.Start(t.Context(), strategy_react.New(), llm_echo.New()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Bus.Subscribe(bus.SubscribeOptions{Name: "test"}, []string{event.LLMCallRequest.Name()}, func(_ context.Context, ev event.Event) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if r, ok := ev.Payload.(event.LLMRequest); ok {
			h.asked = append(h.asked, r)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return h
}

// plugin makes the plugin of a folder.
func (h *house) plugin(folder string) *remote.Plugin {
	h.t.Helper()
	d, err := remote.ReadDescription(folder)
	if err != nil {
		h.t.Fatal(err)
	}
	cfg := remote.Config{Folder: folder, Description: d, Procs: h.procs, Version: "test", Env: os.LookupEnv}
	if sandbox.Probe().Best == sandbox.Namespaces {
		cfg.Sandboxes = &sandbox.Sandboxes{
			Own: []string{h.data}, Home: h.home, Cache: filepath.Join(h.data, "cache"),
			Settings: func() sandbox.Settings { return sandbox.Settings{Mode: sandbox.Prefer, Backend: "auto"} },
		}
	}
	p := remote.New(cfg)
	h.t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

// load loads the plugin of a folder, and checks it against the protocol before.
func (h *house) load(folder string) {
	h.t.Helper()
	p := h.plugin(folder)
	state := h.t.TempDir()
	Run(h.t.Context(), describe(h.t, folder), func() (*remote.Process, error) { return p.Spawn(state) }, func(r Result) {
		if r.Err != nil {
			h.t.Errorf("check %q of %s: %v", r.Check, filepath.Base(folder), r.Err)
		}
	})
	h.Plugins.Load(h.t.Context(), false, p)
	if err := h.Plugins.Seed(); err != nil {
		h.t.Fatal(err)
	}
	for _, s := range h.Plugins.Snapshot() {
		if !s.Bundled && s.Status != plugin.Loaded {
			h.t.Fatalf("got %+v, want it %s", s, plugin.Loaded)
		}
	}
}

func describe(t *testing.T, folder string) remote.Description {
	t.Helper()
	d, err := remote.ReadDescription(folder)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// says returns the answer to a message.
func (h *house) says(session, text string) string {
	h.t.Helper()
	out, err := h.Loop.Run(h.t.Context(), loop.Prompt{SessionID: session, Text: text})
	if err != nil {
		h.t.Fatal(err)
	}
	if out.Err != nil {
		return "failed: " + out.Err.Error()
	}
	return out.Text
}

// heard reports whether the model was sent a text.
func (h *house) heard(text string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.asked {
		for _, m := range r.Messages {
			if strings.Contains(m.Content, text) {
				return true
			}
		}
	}
	return false
}

// Tools in Python and JavaScript are called in a turn; each program has at most 30 lines.
func TestExampleTools(t *testing.T) {
	for _, c := range []struct {
		name, program string
		language      language
		turns         map[string]string // a part of the answer, by message
	}{
		{"dates", "main.py", python, map[string]string{
			`/tool days_between {"start":"2026-11-20","end":"2026-11-27"}`:                      "7 days",
			`/tool days_between {"start":"2026-11-27","end":"2026-11-20","weekdays_only":true}`: "-5 days",
			`/tool days_between {"start":"yesterday","end":"2026-11-27"}`:                       "Invalid isoformat string",
		}},
		{"dice", "main.js", javaScript, map[string]string{
			`/tool roll {"sides":1,"dice":3}`: `"total":3`,
			`/tool roll {"sides":1}`:          `"total":1`,
			`/tool roll {"sides":0}`:          "sides",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			folder := c.language.example(t, c.name)
			program, err := os.ReadFile(filepath.Join(folder, c.program))
			if lines := strings.Count(string(program), "\n"); err != nil || lines > 30 {
				t.Errorf("%s has %d lines (%v), want at most 30", c.program, lines, err)
			}
			h := newHouse(t, nil)
			h.load(folder)
			for say, want := range c.turns {
				if got := h.says("s1", say); !strings.Contains(strings.ReplaceAll(got, " ", ""), strings.ReplaceAll(want, " ", "")) {
					t.Errorf("the answer to %s is %q, want %q in it", say, got, want)
				}
			}
		})
	}
}

// A model provider in Python answers turns and calls tools; its failures are the turn's.
func TestExampleProvider(t *testing.T) {
	t.Parallel()
	ollama := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Model    string
			Messages []struct{ Role, Content string }
			Tools    []struct{ Function struct{ Name string } }
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.URL.Path != "/api/chat" {
			http.Error(w, "not a request", http.StatusBadRequest)
			return
		}
		last := in.Messages[len(in.Messages)-1]
		switch {
		case in.Model != "m1":
			http.Error(w, `{"error":"model not found"}`, http.StatusNotFound)
		case last.Role == "tool":
			fmt.Fprintf(w, "{\"message\":{\"content\":\"It is \"}}\n{\"message\":{\"content\":\"%s.\"}}\n{\"done\":true,\"prompt_eval_count\":7,\"eval_count\":2}\n", last.Content)
		default:
			fmt.Fprintln(w, `{"message":{"tool_calls":[{"function":{"name":"days_between","arguments":{"start":"2026-11-20","end":"2026-11-27"}}}]},"done":true}`)
		}
	}))
	defer ollama.Close()
	folder := python.example(t, "ollama")
	manifest := filepath.Join(folder, remote.DescriptionFile)
	text, err := os.ReadFile(manifest)
	if err == nil {
		err = os.WriteFile(manifest, []byte(strings.ReplaceAll(string(text), "127.0.0.1:11434", ollama.Listener.Addr().String())), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, map[string]string{"providers.local.plugin": `"ollama"`, "providers.local.model": `"m1"`, "providers.local.base_url": fmt.Sprintf("%q", ollama.URL), "provider": `"local"`})
	h.load(python.example(t, "dates"))
	h.load(folder)
	if got := h.says("s1", "how long is a week?"); got != "It is 7 days." {
		t.Errorf("the model said %q, want the result of its tool", got)
	}
	if err := h.Settings.Set("providers.local.model", json.RawMessage(`"gone"`)); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the model is gone", func() bool { return strings.Contains(h.says("s2", "hello"), "model not found") })
	ollama.Close()
	if got := h.says("s3", "hello"); !strings.Contains(got, "Ollama does not answer") {
		t.Errorf("without Ollama the turn says %q, want its reason", got)
	}
}

// A memory in Python remembers conversations, recalls them in others, and after a restart.
func TestExampleMemory(t *testing.T) {
	t.Parallel()
	folder := python.example(t, "notes")
	h := newHouse(t, map[string]string{"plugin.strategy_react.memory": `"full"`})
	h.load(folder)
	h.says("s1", "my favourite colour is ultramarine")
	eventually.True(t, "a later conversation is sent the memory", func() bool {
		h.mu.Lock()
		h.asked = nil
		h.mu.Unlock()
		h.says("s2", "which favourite do I have?")
		return h.heard("ultramarine")
	})
	if err := h.Plugins.Replace(t.Context(), h.plugin(folder)); err != nil {
		t.Fatal(err)
	}
	got, err := bus.Request(t.Context(), h.Bus.Kernel(), event.MemoryQueried, "s3", event.MemoryQuery{Query: "Ultramarine?", K: 5}, event.MemoryAnswered.Kind())
	if r, ok := got.Payload.(event.MemoryResult); err != nil || !ok || len(r.Hits) == 0 || !strings.Contains(r.Hits[0].Text, "ultramarine") {
		t.Errorf("after a restart the memory says %+v (%v), want the entry", got.Payload, err)
	}
	for _, s := range h.Plugins.Doctor(t.Context(), time.Second) {
		if s.Plugin == "notes" && (s.Status != plugin.Healthy || !strings.Contains(s.Summary, "entries")) {
			t.Errorf("doctor says %+v, want the number of entries", s)
		}
	}
}

// An adapter in JavaScript brings messages into sessions and takes the answers.
func TestExampleAdapter(t *testing.T) {
	t.Parallel()
	folder := javaScript.example(t, "inbox")
	h := newHouse(t, nil)
	h.load(folder)
	inbox := filepath.Join(h.data, "plugins", "inbox", "state", "inbox")
	for name, text := range map[string]string{"one": "hello", "two": "/tool nothing"} {
		part := filepath.Join(inbox, name)
		if err := errors.Join(os.WriteFile(part, []byte(text), 0o600), os.Rename(part, part+".txt")); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"one": "echo: hello", "two": "nothing"} {
		var got []byte
		eventually.True(t, "there is an answer to "+name, func() bool {
			var err error
			got, err = os.ReadFile(filepath.Join(inbox, name+".answer"))
			return err == nil
		})
		if !strings.Contains(string(got), want) {
			t.Errorf("the answer to %s is %q, want %q in it", name, got, want)
		}
	}
}

// The types of the SDK in TypeScript, and the examples in JavaScript, are checked.
func TestTypes(t *testing.T) {
	t.Parallel()
	modules, err := filepath.Abs(filepath.Join(root, "internal", "peers", "npm", "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(modules, "typescript")); err != nil || testing.Short() {
		t.Skipf("without the npm peers: %v", err)
	}
	files := []string{filepath.Join(root, "sdk", "typescript", "check", "types.ts")}
	for _, name := range []string{"dice", "inbox", "diary"} {
		files = append(files, filepath.Join(javaScript.example(t, name), "main.js"))
	}
	args := append([]string{filepath.Join(modules, "typescript", "bin", "tsc"), "--noEmit", "--strict", "--allowJs", "--module", "nodenext", "--target", "es2022", "--skipLibCheck", "--typeRoots", filepath.Join(modules, "@types"), "--types", "node"}, files...)
	if out, err := exec.CommandContext(t.Context(), filepath.Join(modules, ".bin", "node"), args...).CombinedOutput(); err != nil { //nolint:gosec // a peer
		t.Errorf("tsc: %v\n%s", err, out)
	}
}

// The SDKs pass their own tests.
func TestSDKs(t *testing.T) {
	for _, c := range []struct {
		language language
		dir      string
		args     []string
	}{
		{python, "sdk/python", []string{"-B", "-W", "error", "-m", "unittest", "discover", "tests"}},
		{javaScript, "sdk/typescript", []string{"--test", "test/plugin.test.js", "test/program.test.js"}},
	} {
		t.Run(c.language.program, func(t *testing.T) {
			t.Parallel()
			c.language.need(t)
			cmd := exec.CommandContext(t.Context(), c.language.program, c.args...) //nolint:gosec // one of two
			cmd.Dir = filepath.Join(root, filepath.FromSlash(c.dir))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("got %v, want no error:\n%s", err, out)
			}
		})
	}
}
