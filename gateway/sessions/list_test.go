package sessions_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/kernel"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/plugins/llm_echo"
	"github.com/yaya-ai/yaya/plugins/strategy_react"
)

// inList returns a session as the list has it.
func (w *world) inList(id string, query ...string) map[string]any {
	w.t.Helper()
	for _, s := range w.must("GET", "/v1/sessions?limit=50"+strings.Join(query, ""), "", 200)["sessions"].([]any) {
		if s := s.(map[string]any); s["id"] == id {
			return s
		}
	}
	w.t.Fatalf("the list lacks %s", id)
	return nil
}

// S-7: lists show the status, usage and cost of sessions that the command line or a device has
// made, although nobody has opened them.
func TestListsCountSessionsOfOthers(t *testing.T) {
	w := newWorld(t, oneWrite)
	if _, err := w.k.Loop.Submit(t.Context(), loop.Prompt{SessionID: "run_x", Text: "wait"}); err != nil {
		t.Fatal(err)
	}
	if got := w.inList("run_x"); got["state"] != "running" || got["status"] != "active" {
		t.Errorf("while its turn runs, the session is %v, %v; want running, active", got["state"], got["status"])
	}
	w.k.Loop.Cancel("run_x")
	is := func(status string, turns float64) bool {
		got := w.inList("run_x")
		return got["status"] == status && got["usage"].(map[string]any)["turns"] == turns
	}
	eventually.True(t, "the list has the end of the turn", func() bool { return is("canceled", 1) })
	if out, err := w.k.Loop.Run(t.Context(), loop.Prompt{SessionID: "run_x", Text: "hello"}); err != nil || out.Err != nil {
		t.Fatal(err, out.Err)
	}
	eventually.True(t, "the list has the second turn", func() bool { return is("active", 2) })
	if u := w.inList("run_x")["usage"].(map[string]any); u["cost_usd"] == 0.0 || u["total"] == 0.0 {
		t.Errorf("the usage is %v, want tokens and a cost", u)
	}
}

// S-6: a session is made with a key although others have made sessions that nobody has opened.
func TestKeyBesideSessionsOfOthers(t *testing.T) {
	w := newWorld(t, oneWrite)
	if out, err := w.k.Loop.Run(t.Context(), loop.Prompt{SessionID: "run_x", Text: "hello"}); err != nil || out.Err != nil {
		t.Fatal(err, out.Err)
	}
	body := fmt.Sprintf(`{"workspace_path":%q}`, w.ws)
	_, first := w.do("POST", "/v1/sessions", body, "Idempotency-Key", "k1")
	if status, again := w.do("POST", "/v1/sessions", body, "Idempotency-Key", "k1"); status != 201 || again["session_id"] != first["session_id"] {
		t.Errorf("the same request made %v and then %d %v, want one session", first, status, again)
	}
	if got := w.inList("run_x"); got["usage"].(map[string]any)["turns"] != 1.0 {
		t.Errorf("the other session has the usage %v, want a turn", got["usage"])
	}
}

// S-7: lists, including those of one status, count what another process has done to sessions meanwhile, whether
// or not it has loaded the index. They do so once.
func TestListsCountWhatOthersDid(t *testing.T) {
	for _, loaded := range []bool{false, true} {
		for _, query := range []string{"", "&status=failed"} {
			t.Run(fmt.Sprintf("loaded %t, %s", loaded, query), func(t *testing.T) {
				w := newWorld(t, oneWrite)
				known := w.create()
				w.say(known, "hello")
				w.idle(known)
				w.stop()
				ids := []string{"run_x", "run_y", known}
				w.alone(func(k *kernel.Kernel) {
					if _, _, err := k.Sessions.Page(session.Place{}, 1, nil); loaded && err != nil {
						t.Fatal(err)
					}
					for _, id := range ids {
						if _, err := k.Loop.Run(t.Context(), loop.Prompt{SessionID: id, Text: "fail"}); err != nil {
							t.Fatal(err)
						}
					}
					k.Sessions.Mark("run_y", "active", time.Now()) // earlier versions said so of what they had not counted
				})
				w.start("")
				for id, turns := range map[string]float64{"run_x": 1, "run_y": 1, known: 2} {
					if id == "run_y" && query != "" {
						continue
					}
					if got := w.inList(id, query); got["status"] != "failed" || got["usage"].(map[string]any)["turns"] != turns {
						t.Errorf("%s is %v with the usage %v in the list, want failed with %v turns", id, got["status"], got["usage"], turns)
					}
				}
				w.stop()
				if err := os.RemoveAll(filepath.Join(w.dir, "tapes/.index")); err != nil { //nolint:forbidigo // a test's own folder
					t.Fatal(err)
				}
				w.start("")
				w.inList("run_x", query)
				if again, err := w.k.Sessions.Marked(func(_, mark string) bool { return mark == "" }); err != nil || len(again) > 0 {
					t.Errorf("the next list counts %q again, %v; want none", again, err)
				}
			})
		}
	}
}

// alone has f work on the data directory with a kernel without an API, as yaya run does if no other
// process runs.
func (w *world) alone(f func(k *kernel.Kernel)) {
	w.t.Helper()
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	settings, err := config.Open(config.Options{Root: root})
	if err != nil {
		w.t.Fatal(err)
	}
	k, err := kernel.Open(kernel.Config{Data: root, Settings: settings, Workspace: w.ws, Version: "test", Log: zerolog.Nop()})
	if err == nil {
		err = k.Start(w.t.Context(), strategy_react.New(), llm_echo.New())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	f(k)
	if err := k.Stop(context.Background(), "test"); err != nil {
		w.t.Errorf("Stop = %v, want no error", err)
	}
}
