package sessions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/sessions"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/kernel/budget"
	"github.com/yaya-ai/yaya/kernel/event"
)

// sums returns a script that summarizes at once, but never what contains "never", and not what contains
// "broken". The calls for summaries of a session are one conversation for it, so each is another step.
func sums() string {
	steps := func(step string) string { return "[" + strings.Repeat(step+",", 9) + step + "]" }
	return `{"scenarios":[
	{"match":"(?s)^## .*never","steps":` + steps(`{"text":"too late","delay_ms":600000,"chunks":1}`) + `},
	{"match":"(?s)^## .*broken","steps":` + steps(`{"error":{"kind":"other","message":"out of order"}}`) + `},
	{"match":"^## ","steps":` + steps(`{"text":"notes of it"}`) + `},
	{"match":"^slow","steps":[{"text":"one two three","delay_ms":60000}]}]}`
}

// MIS-2: a history is summarized on demand; readers hear of it. Each reason against it has a code.
func TestCompact(t *testing.T) {
	w := newWorld(t, sums())
	id := w.create()
	at := "/v1/sessions/" + id + "/compact"
	f := w.follow(id, "")
	w.refused("POST", at, "", 409, "nothing_to_compact")
	w.refused("POST", at, `{"keep":"`+strings.Repeat("ä", 2001)+`"}`, 400, "bad_request")
	w.refused("POST", at, `{"kept":"x"}`, 400, "bad_request")
	w.refused("POST", "/v1/sessions/sess_gone/compact", "", 404, "not_found")
	talk := func(text string) {
		t.Helper()
		for range 4 {
			w.say(id, text+strings.Repeat(" word", 500))
			w.idle(id)
		}
	}
	talk("read this")
	for _, body := range []string{"", `{"keep":"` + strings.Repeat("ä", 2000) + `"}`} {
		tokens := func() float64 {
			usage, _ := w.must("GET", "/v1/sessions/"+id, "", 200)["usage"].(map[string]any)
			total, _ := usage["total"].(float64)
			return total
		}
		was := tokens()
		done := w.must("POST", at, body, 200)
		if tokens() <= was {
			t.Errorf("the session has used %v tokens after the summary, %v before it", tokens(), was)
		}
		before, _ := done["tokens_before"].(float64)
		after, _ := done["tokens_after"].(float64)
		if before < 2000 || after <= 0 || after > before/2 {
			t.Errorf("got %v, want half of the tokens at most", done)
		}
		events := f.until("history_compacted")
		if d := events[len(events)-1].Data; d["how"] != event.Summarized || d["tokens_before"] != before || d["tokens_after"] != after {
			t.Errorf("history_compacted says %v, want the numbers of %v", d, done)
		}
		talk("and this")
	}
	talk("broken")
	if err := w.k.Settings.Set("compaction.tries", json.RawMessage(`1`)); err != nil {
		t.Fatal(err)
	}
	w.refused("POST", at, "", 502, "summary_failed")
	// A summary that does not come ends with the client, and with the cancel of another one.
	talk("never")
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan error, 1)
	compacting := func() {
		for deadline := time.Now().Add(eventually.Limit); w.k.Loop.Resting(id); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Error("no summary is being made")
				return
			}
		}
	}
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.http.URL+at, http.NoBody)
		if err == nil {
			var resp *http.Response
			if resp, err = http.DefaultClient.Do(req); err == nil {
				_ = resp.Body.Close()
			}
		}
		done <- err
	}()
	compacting()
	w.refused("POST", "/v1/sessions/"+id+"/messages", `{"role":"user","parts":[{"type":"text","text":"x"}]}`, 409, "busy")
	w.refused("POST", at, "", 409, "busy")
	w.refused("DELETE", "/v1/sessions/"+id, "", 409, "busy")
	leave()
	if err := <-done; err == nil {
		t.Error("the client that went away got a response")
	}
	w.wait(id, func(map[string]any) bool { return w.k.Loop.Resting(id) })
	go func() {
		compacting()
		if status, body, _ := w.raw("POST", "/v1/sessions/"+id+"/cancel", ""); status != 202 {
			t.Errorf("cancel = %d %s, want 202", status, body)
		}
	}()
	w.refused("POST", at, "", 409, "canceled")
	w.say(id, "slow")
	w.refused("POST", at, "", 409, "busy")
	w.must("POST", "/v1/sessions/"+id+"/cancel", "", 202)
	w.idle(id)
	w.must("POST", "/v1/sessions/"+id+"/close", "", 200)
	w.refused("POST", at, "", 409, "session_completed")
}

// MIS-3: a summary that a limit of costs does not allow is refused with the limit and the remedy.
func TestCompactAtALimit(t *testing.T) {
	w := newWorld(t, sums())
	if err := w.k.Settings.Set(budget.SessionKey, json.RawMessage(`1`)); err != nil {
		t.Fatal(err)
	}
	id := w.create()
	if err := os.WriteFile(filepath.Join(w.dir, "sessions", event.Folder(id), "spent.json"), []byte(`{"usd_nanos":10000000}`), 0o600); err != nil { //nolint:forbidigo // a test's own folder
		t.Fatal(err)
	}
	status, out := w.do("POST", "/v1/sessions/"+id+"/compact", "")
	if e, _ := out["error"].(map[string]any); status != 409 || e["code"] != "budget" || !strings.Contains(fmt.Sprint(e["message"]), "raise the limit") {
		t.Errorf("a summary at the limit = %d %v, want 409 budget and the remedy", status, out)
	}
}

// MIS-2, MIS-7: a summary is refused to those who have no right to the session's folder, and
// for what a hook denies. The error of a session whose history is being summarized says what to do.
func TestCompactIsRefused(t *testing.T) {
	var closed atomic.Bool
	w := newWorld(t, sums(), func(cfg *sessions.Config) {
		cfg.MayUse = func(_ auth.Principal, dir string) (string, error) {
			if closed.Load() {
				return "", errors.New("the folder is another's")
			}
			return dir, nil
		}
	})
	w.k.SetAdmit(func(_ context.Context, _, prompt string) (string, error) {
		if prompt == "FORBIDDEN" {
			return "", errors.New("a hook says no")
		}
		return "", nil
	})
	id := w.create()
	at := "/v1/sessions/" + id + "/compact"
	for range 4 {
		w.say(id, "never"+strings.Repeat(" word", 500))
		w.idle(id)
	}
	closed.Store(true)
	w.refused("POST", at, "", 403, "workspace_not_allowed")
	closed.Store(false)
	w.refused("POST", at, `{"keep":"FORBIDDEN"}`, 403, "denied")
	over := make(chan struct{})
	go func() {
		defer close(over)
		w.refused("POST", at, "", 409, "canceled")
	}()
	eventually.True(t, "a summary", func() bool { return !w.k.Loop.Resting(id) })
	if status, out := w.do("POST", at, ""); status != 409 || !strings.HasPrefix(fmt.Sprint(out["error"].(map[string]any)["message"]), "the history is being summarized") {
		t.Errorf("a second summary = %d %v, want 409 and that the history is being summarized", status, out)
	}
	w.must("POST", "/v1/sessions/"+id+"/cancel", "", 202)
	<-over
}
