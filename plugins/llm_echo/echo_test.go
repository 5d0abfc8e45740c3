package llm_echo_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/plugins/llm_echo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type world struct {
	t   *testing.T
	bus *bus.Bus
	cfg *config.Store
	reg *plugin.Registry
}

func inBubble(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		root, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, bus: bus.New(bus.Config{})}
		if w.cfg, err = config.Open(config.Options{Root: root}); err != nil {
			t.Fatal(err)
		}
		w.cfg.Bind(w.bus)
		w.set("providers.echo.plugin", `"llm-echo"`)
		if w.reg, err = plugin.NewRegistry(plugin.Config{Bus: w.bus, Config: w.cfg, Tools: new(tool.Registry), State: root, Log: zerolog.Nop()}); err != nil {
			t.Fatal(err)
		}
		w.reg.Load(t.Context(), true, llm_echo.New())
		f(t, w)
		if err := errors.Join(w.reg.Stop(), w.bus.Close(context.Background()), root.Close()); err != nil {
			t.Errorf("Stop of the plugins and Close of the bus = %v, want no error", err)
		}
	})
}

func (w *world) set(key, v string) {
	w.t.Helper()
	if err := w.cfg.Set(key, json.RawMessage(v)); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

func (w *world) ask(session string, msgs ...event.Message) any {
	w.t.Helper()
	ev, err := bus.Request(w.t.Context(), w.bus.Kernel(), event.LLMCallRequest, session, event.LLMRequest{Provider: "echo", Messages: msgs}, event.LLMCallResponse.Kind(), event.LLMCallError.Kind())
	if err != nil {
		w.t.Fatal(err)
	}
	return ev.Payload
}

func user(text string) event.Message { return event.Message{Role: "user", Content: text} }

// text returns what was said, and the names of the tools that were called.
func text(p any) string {
	switch r := p.(type) {
	case event.LLMResponse:
		out := r.Text
		for _, c := range r.ToolCalls {
			out += "[" + c.Name + " " + string(c.Args) + "]"
		}
		return out
	case event.LLMError:
		return string(r.Kind) + ": " + r.Error
	}
	return "?"
}

func TestEcho(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		for _, c := range []struct {
			msgs []event.Message
			want string
		}{
			{[]event.Message{user("hello")}, "echo: hello"},
			{nil, "echo:"},
			{[]event.Message{user("/tool ls {\"p\":1}\nand\n/tool pwd")}, "[ls {\"p\":1}][pwd {}]"},
			{[]event.Message{user("/tool ls"), {Role: "assistant"}, {Role: "tool", Content: "a"}, {Role: "tool", Content: "b"}}, "a\nb"},
			{[]event.Message{user("one"), {Role: "tool", Content: "old"}, user("two")}, "echo: two"},
		} {
			if got := text(w.ask("s1", c.msgs...)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		}
	})
}

// A script is followed step by step, by session and message, and is not lost
// track of when settings change that are not the script.
func TestScript(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.set("providers.echo.script", `{"scenarios":[
			{"match":"^tools","steps":[{"text":"hm ","tool_calls":[{"name":"a","args":{"x":1}},{"name":"b","args":[]}]},{"text":"done"}]},
			{"match":"slow","steps":[{"text":"one two three","delay_ms":1000,"chunks":2}]}],
			"steps":[{"error":{"kind":"status","status_code":400,"message":"no"}},{"text":"half","error":{"kind":"connection","message":"lost","after_text":true}}]}`)
		want := func(session, msg, want string) {
			t.Helper()
			if got := text(w.ask(session, user(msg))); got != want {
				t.Errorf("%s %q: got %q, want %q", session, msg, got, want)
			}
		}
		want("s1", "tools please", `hm [a {"x":1}][b []]`)
		want("s2", "tools please", `hm [a {"x":1}][b []]`)
		w.set("providers.echo.model", `"m"`)
		want("s1", "tools please", "done")
		want("s1", "tools please", "echo: tools please")
		if got := text(w.ask("s1", user("x"), user("tools again"))); got != `hm [a {"x":1}][b []]` {
			t.Errorf("a new message does not start from the beginning: %q", got)
		}
		want("s3", "other", "status: no")
		want("s3", "other", "connection: lost")
		start := time.Now()
		want("s4", "slow", "one two three")
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("two chunks took %v", took)
		}
		w.set("providers.echo.script", `{"steps":[{"text":"another script"}]}`)
		want("s1", "tools please", "another script")
		w.set("providers.echo.script", `{"stepps":[]}`)
		if got := text(w.ask("s1", user("x"))); !strings.Contains(got, "stepps") {
			t.Errorf(`got %q, want "stepps" in it`, got)
		}
		if d := w.reg.Doctor(t.Context(), time.Second)[0]; d.Status != plugin.Degraded || !strings.Contains(d.Summary, "stepps") {
			t.Errorf(`got %+v, want it degraded because of "stepps"`, d)
		}
	})
}

// Y-86: an instance that was configured a moment ago can be asked before the
// news of it is here.
func TestAskedBeforeTheNews(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.cfg.Bind(nil) // the news never comes
		w.set("providers.fresh.plugin", `"llm-echo"`)
		ev, err := bus.Request(t.Context(), w.bus.Kernel(), event.LLMCallRequest, "s1", event.LLMRequest{Provider: "fresh", Messages: []event.Message{user("hi")}}, event.LLMCallResponse.Kind())
		if err != nil || text(ev.Payload) != "echo: hi" {
			t.Errorf(`got %+v, %v; want "echo: hi"`, ev.Payload, err)
		}
	})
}

func TestParseScript(t *testing.T) {
	for _, bad := range []string{`[]`, `{"scenarios":[{"match":"("}]}`, `{"steps":[{"txt":"x"}]}`, ``, `"script.json"`, `{"steps":[]} {}`, `{"steps":[{"error":{"kind":"nope"}}]}`, `{"steps":[{"text":5}]}`} {
		if _, err := llm_echo.ParseScript([]byte(bad)); err == nil || !strings.Contains(err.Error(), "script") {
			t.Errorf(`%s: got %v, want an error, err with "script"`, bad, err)
		}
	}
	for _, good := range []string{`{"steps":[{"text":"x"}]}`, `"{\"steps\":[{\"text\":\"x\"}]}"`, `{}`} {
		if _, err := llm_echo.ParseScript([]byte(good)); err != nil {
			t.Errorf("%s: %v, want it read", good, err)
		}
	}
}
