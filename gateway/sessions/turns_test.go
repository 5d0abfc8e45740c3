package sessions_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/sessions"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/loop"
)

func (w *world) wait(id string, ok func(st map[string]any) bool) map[string]any {
	w.t.Helper()
	for deadline := time.Now().Add(eventually.Limit); ; time.Sleep(time.Millisecond) {
		st := w.must("GET", "/v1/sessions/"+id, "", 200)
		if ok(st) {
			return st
		}
		if time.Now().After(deadline) {
			w.t.Fatal("it does not come: ", st)
		}
	}
}

func (w *world) idle(id string) map[string]any {
	w.t.Helper()
	return w.wait(id, func(st map[string]any) bool { return st["state"] == "idle" })
}

const oneWrite = `{"scenarios":[
	{"match":"^write","steps":[{"text":"I will","tool_calls":[{"name":"write","args":{"text":"a"}}]},{"text":"done"}]},
	{"match":"^other","steps":[{"tool_calls":[{"name":"write","args":{"text":"a "}}]},{"text":"done"}]},
	{"match":"^read","steps":[{"tool_calls":[{"name":"read","args":{"text":"b"}}]},{"text":"done"}]},
	{"match":"^wait","steps":[{"tool_calls":[{"name":"wait","args":{"text":"c"}}]},{"text":"done"}]},
	{"match":"^slow","steps":[{"text":"one two three four five six seven eight nine ten","delay_ms":60}]},
	{"match":"^fail","steps":[{"error":{"kind":"other","message":"no"}},{"text":"better"}]}]}`

// S-14, S-15, S-29, S-30, S-35, S-36, S-40, S-49, S-52, S-53, F-21, TW-09…TW-11: a call that writes waits for an answer, and
// runs only if it is approved; a denial is a result, and the turn goes on.
func TestApprovals(t *testing.T) {
	w := newWorld(t, oneWrite)
	id := w.create()
	f := w.follow(id, "")
	w.refused("POST", "/v1/sessions/"+id+"/approve", `{"action":"approve"}`, 400, "bad_request")
	w.refused("POST", "/v1/sessions/"+id+"/approve", `{"tool_call_id":"call_x","action":"approve"}`, 404, "not_pending")
	w.refused("POST", "/v1/sessions/"+id+"/approve", `{"tool_call_id":"call_x","action":"perhaps"}`, 400, "bad_request")
	turn := w.say(id, "write it")["turn_id"]
	events := f.until("approval_requested")
	if got := types(events); !strings.HasSuffix(got, "model_output_completed tool_call_started approval_requested") {
		t.Errorf(`got %v, want "model_output_completed tool_call_started approval_requested" at its end`, got)
	}
	ask := events[len(events)-1].Data
	started := events[len(events)-2].Data["tool_call"].(map[string]any)
	call := fmt.Sprint(ask["tool_call_id"])
	if ask["tool_name"] != "write" || fmt.Sprint(ask["input"]) != "map[text:a]" || started["id"] != call || started["name"] != "write" || fmt.Sprint(started["input"]) != "map[text:a]" || ask["deadline"] == "" {
		t.Errorf("%v, started %v", ask, started)
	}
	if st := w.must("GET", "/v1/sessions/"+id, "", 200); st["status"] != "waiting_approval" || st["state"] != "requires_action" || len(st["pending_approvals"].([]any)) != 1 {
		t.Errorf(`got %v, want status "waiting_approval", state "requires_action", len(pending_approvals) 1`, st)
	}
	if asks := w.must("GET", "/v1/sessions/"+id+"/approvals", "", 200)["approvals"].([]any); len(asks) != 1 || asks[0].(map[string]any)["tool_call_id"] != call {
		t.Errorf("got %v, want len(asks) 1, asks[0].tool_call_id %v", asks, call)
	}
	w.tools.mu.Lock()
	if len(w.tools.wrote) != 0 {
		t.Error("it ran before it was approved")
	}
	w.tools.mu.Unlock()
	w.refused("POST", "/v1/sessions/"+id+"/approve", fmt.Sprintf(`{"turn_id":"turn_other","tool_call_id":%q,"action":"approve"}`, call), 409, "unexpected_turn")
	// An answer cannot change what runs, nor be given in another session's name.
	w.refused("POST", "/v1/sessions/"+id+"/approve", fmt.Sprintf(`{"tool_call_id":%q,"action":"approve","input":{"text":"evil"}}`, call), 400, "bad_request")
	w.refused("POST", "/v1/sessions/"+w.create()+"/approve", fmt.Sprintf(`{"tool_call_id":%q,"action":"approve"}`, call), 404, "not_pending")
	if got := w.must("POST", "/v1/sessions/"+id+"/approve", fmt.Sprintf(`{"turn_id":%q,"tool_call_id":%q,"action":"deny","reason":"not now"}`, turn, call), 200); got["action"] != "deny" || got["by"] != "owner" {
		t.Errorf(`got %v, want action "deny", by "owner"`, got)
	}
	events = f.until("turn_completed")
	if got := types(events); !strings.HasPrefix(got, "approval_denied tool_call_completed") {
		t.Errorf(`got %v, want "approval_denied tool_call_completed" at its start`, got)
	}
	if d := events[0].Data; d["tool_name"] != "write" || d["tool_call_id"] != call || d["reason"] != "not now" {
		t.Errorf(`got %v, want tool_name "write", tool_call_id %v, reason "not now"`, d, call)
	}
	if r := events[1].Data["tool_result"].(map[string]any); r["ok"] != false || r["id"] != call || r["kind"] != "rejected" || !strings.Contains(fmt.Sprint(r["parts"]), "not now") {
		t.Errorf(`got %v, want ok false, id %v, kind "rejected", parts with "not now"`, r, call)
	}
	// The loser learns what was decided.
	status, out := w.do("POST", "/v1/sessions/"+id+"/approve", fmt.Sprintf(`{"tool_call_id":%q,"action":"approve"}`, call))
	e := out["error"].(map[string]any)
	if d, _ := e["decision"].(map[string]any); status != 409 || e["code"] != "already_answered" || d["action"] != "deny" || d["reason"] != "not now" {
		t.Errorf(`got %v, %v, want status 409, code "already_answered", action "deny", reason "not now"`, status, out)
	}
	// Approved for the session, the same call runs without asking again.
	for n, action := range []string{"approve", "approve_for_session", ""} {
		w.say(id, "write again")
		if action != "" {
			events = f.until("approval_requested")
			call = fmt.Sprint(events[len(events)-1].Data["tool_call_id"])
			w.must("POST", "/v1/sessions/"+id+"/approve", fmt.Sprintf(`{"tool_call_id":%q,"action":%q}`, call, action), 200)
		}
		events = f.until("turn_completed")
		got := types(events)
		if action != "" && (!strings.HasPrefix(got, "approval_granted") || (events[0].Data["for_session"] == true) != (action == "approve_for_session")) {
			t.Errorf("got %s with %v, want approval_granted first, as %s", got, events[0].Data, action)
		}
		if strings.Contains(got, "approval_requested") {
			t.Error("asked again: ", got)
		}
		w.tools.mu.Lock()
		if len(w.tools.wrote) != n+1 {
			t.Errorf("after %d approvals it ran %d times", n+1, len(w.tools.wrote))
		}
		w.tools.mu.Unlock()
	}
}

// TW-10: an approval for the session covers that very call; one that differs by a
// blank is asked about.
func TestApprovedForTheSession(t *testing.T) {
	w := newWorld(t, oneWrite)
	id := w.create()
	f := w.follow(id, "")
	for n, text := range []string{"write it", "other thing", "write it again", "other thing again"} {
		w.say(id, text)
		asked := false
		for {
			ev := f.next()
			if ev.Type == "approval_requested" {
				asked = true
				w.must("POST", "/v1/sessions/"+id+"/approve", fmt.Sprintf(`{"tool_call_id":%q,"action":"approve_for_session"}`, ev.Data["tool_call_id"]), 200)
			}
			if ev.Type == "turn_completed" {
				break
			}
		}
		if asked != (n < 2) {
			t.Errorf("%s: asked %v", text, asked)
		}
	}
}

// Of two answers to one ask, one counts and both learn which.
func TestFirstAnswerWins(t *testing.T) {
	w := newWorld(t, oneWrite)
	id := w.create()
	w.say(id, "write it")
	st := w.wait(id, func(st map[string]any) bool { return st["state"] == "requires_action" })
	call := st["pending_approvals"].([]any)[0].(map[string]any)["tool_call_id"]
	var both sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	decided := map[any]bool{}
	for _, action := range []string{"approve", "deny"} {
		both.Go(func() {
			status, out := w.do("POST", "/v1/sessions/"+id+"/approve", fmt.Sprintf(`{"tool_call_id":%q,"action":%q}`, call, action))
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
			if e, ok := out["error"].(map[string]any); ok {
				out = e["decision"].(map[string]any)
			}
			decided[out["action"]] = true
		})
	}
	both.Wait()
	if statuses[200] != 1 || statuses[409] != 1 || len(decided) != 1 {
		t.Errorf("%v, decided %v", statuses, decided)
	}
	w.idle(id)
}

// S-6, S-11, S-16, S-17: turns that are held, cancelled and failed can be run, and those
// that are not, cannot.
func TestHeldCancelledRetried(t *testing.T) {
	w := newWorld(t, oneWrite)
	id := w.create(`,"auto_run":false`)
	held := w.say(id, "read it")
	turn := fmt.Sprint(held["turn_id"])
	st := w.must("GET", "/v1/sessions/"+id, "", 200)
	if st["state"] != "idle" || st["pending_turn_id"] != turn || turn == "" {
		t.Fatalf(`got %v, %v, want state "idle", pending_turn_id %v, a turn`, held, st, turn)
	}
	if ts := w.must("GET", "/v1/sessions/"+id+"/turns", "", 200)["turns"].([]any); len(ts) != 1 || ts[0].(map[string]any)["status"] != "pending" {
		t.Errorf(`got %v, want len(ts) 1, ts[0].status "pending"`, ts)
	}
	w.refused("POST", "/v1/sessions/"+id+"/turns/turn_none/retry", "", 404, "not_found")
	f := w.follow(id, "")
	if got := w.must("POST", "/v1/sessions/"+id+"/turns/"+turn+"/retry", "", 202); got["turn_id"] != turn {
		t.Errorf("got %v, want turn_id %v", got, turn)
	}
	events := f.until("turn_completed")
	if got := types(events); got != "session_created message_added turn_started model_output_completed tool_call_started tool_progress tool_call_completed model_output_delta model_output_completed message_added turn_completed" && got != "session_created message_added turn_started model_output_completed tool_call_started tool_call_completed model_output_delta model_output_completed message_added turn_completed" {
		t.Errorf("got %s, want the events of one call, with or without its progress", got)
	}
	w.idle(id)
	w.refused("POST", "/v1/sessions/"+id+"/turns/"+turn+"/retry", "", 409, "not_retryable")
	w.refused("POST", "/v1/sessions/"+id+"/cancel", "", 409, "no_active_turn")

	slow := w.say(id, "wait for it", `,"auto_run":true`)["turn_id"]
	f.until("tool_call_started")
	w.refused("POST", "/v1/sessions/"+id+"/messages", `{"role":"user","parts":[{"type":"text","text":"x"}]}`, 409, "busy")
	w.refused("POST", "/v1/sessions/"+id+"/messages", `{"role":"system","parts":[{"type":"text","text":"x"}]}`, 409, "busy")
	w.refused("POST", "/v1/sessions/"+id+"/messages", `{"role":"user","auto_run":false,"delivery":"queue","parts":[{"type":"text","text":"x"}]}`, 409, "busy")
	w.refused("POST", "/v1/sessions/"+id+"/close", "", 409, "busy")
	w.refused("POST", "/v1/sessions/"+id+"/archive", "", 409, "busy")
	if got := w.must("POST", "/v1/sessions/"+id+"/cancel", "", 202); got["turn_id"] != slow {
		t.Errorf("got %v, want turn_id %v", got, slow)
	}
	events = f.until("session_canceled")
	if d := events[len(events)-1]; d.TurnID != slow || d.Data["reason"] != "interrupted" {
		t.Errorf(`got %+v, want TurnID %v, reason "interrupted"`, d, slow)
	}
	if st := w.idle(id); st["status"] != "canceled" || st["last_turn_id"] != slow {
		t.Errorf(`got %v, want status "canceled", last_turn_id %v`, st, slow)
	}
	again := w.must("POST", fmt.Sprintf("/v1/sessions/%s/turns/%s/retry", id, slow), "", 202)["turn_id"]
	events = f.until("turn_completed") // the script has gone on
	if events[0].Type != "turn_started" || events[0].TurnID != again || again == slow {
		t.Errorf(`got %+v, want events[0].Type "turn_started", events[0].TurnID %v, again not %v`, events[0], again, slow)
	}
	if st := w.idle(id); st["status"] != "active" || st["last_turn_id"] != again {
		t.Errorf(`got %v, want status "active", last_turn_id %v`, st, again)
	}

	bad := w.say(id, "fail once", `,"auto_run":true`)["turn_id"]
	events = f.until("session_failed")
	if d := events[len(events)-1]; d.TurnID != bad || d.Data["error"] == "" || d.Data["kind"] != "other" {
		t.Errorf(`got %+v, want TurnID %v, a error, kind "other"`, d, bad)
	}
	if st := w.idle(id); st["status"] != "failed" {
		t.Errorf(`got %v, want status "failed"`, st)
	}
	w.must("POST", fmt.Sprintf("/v1/sessions/%s/turns/%s/retry", id, bad), "", 202)
	events = f.until("turn_completed")
	if got := fmt.Sprint(events); !strings.Contains(got, "better") {
		t.Errorf(`got %v, want "better" in it`, got)
	}
	ts := w.must("GET", "/v1/sessions/"+id+"/turns", "", 200)["turns"].([]any)
	var got []string
	for _, x := range ts {
		got = append(got, x.(map[string]any)["status"].(string))
	}
	if fmt.Sprint(got) != "[completed failed completed cancelled completed]" {
		t.Errorf(`got %v, want got "[completed failed completed cancelled completed]"`, got)
	}
}

// HT-20: an Idempotency-Key is its principal's: another's same key is another key.
func TestIdempotencyKeysBelongToPrincipals(t *testing.T) {
	w := newWorld(t, "")
	post := func(who auth.Principal, path, body string) map[string]any {
		t.Helper()
		w.who = who
		status, out := w.do("POST", path, body, "Idempotency-Key", "1")
		if status != 201 && status != 202 {
			t.Fatalf("%s as %s: got %d %v, want it to be taken", path, who.Actor(), status, out)
		}
		return out
	}
	owner, ada, bob := w.who, auth.Principal{Kind: auth.Device, ID: "ada"}, auth.Principal{Kind: auth.Device, ID: "bob"}
	sessions, messages := map[any]bool{}, map[any]bool{}
	var path string
	for n, who := range []auth.Principal{owner, ada, bob} {
		body := fmt.Sprintf(`{"workspace_path":%q,"title":"%d"}`, w.ws, n)
		id := post(who, "/v1/sessions", body)["session_id"]
		if again := post(who, "/v1/sessions", body)["session_id"]; again != id {
			t.Errorf("%s: the same request again made %v, want %v", who.Actor(), again, id)
		}
		sessions[id] = true
		path = fmt.Sprintf("/v1/sessions/%v/messages", id)
	}
	for n, who := range []auth.Principal{owner, ada, bob} {
		body := fmt.Sprintf(`{"role":"system","parts":[{"type":"text","text":"%d"}]}`, n)
		id := post(who, path, body)["message_id"]
		if again := post(who, path, body)["message_id"]; again != id {
			t.Errorf("%s: the same message again is %v, want %v", who.Actor(), again, id)
		}
		messages[id] = true
	}
	if len(sessions) != 3 || len(messages) != 3 {
		t.Errorf("three principals made %d sessions and %d messages, want 3 and 3", len(sessions), len(messages))
	}
}

// Idempotency: the same id, or key, with the same body is the same message, with
// another it is a conflict; so it is with sessions.
func TestIdempotency(t *testing.T) {
	w := newWorld(t, "")
	body := fmt.Sprintf(`{"workspace_path":%q,"title":"one"}`, w.ws)
	post := func(path, body, key string) (int, map[string]any) {
		return w.do("POST", path, body, "Idempotency-Key", key)
	}
	_, a := post("/v1/sessions", body, "k")
	_, b := post("/v1/sessions", body, "k")
	if a["session_id"] != b["session_id"] || a["session_id"] == nil {
		t.Errorf("got %v, %v, want session_id %v, a session_id", a, b, b["session_id"])
	}
	if status, out := post("/v1/sessions", strings.Replace(body, "one", "two", 1), "k"); status != 409 || out["error"].(map[string]any)["code"] != "idempotency_conflict" {
		t.Errorf(`got %v, %v, want status 409, code "idempotency_conflict"`, status, out)
	}
	id := fmt.Sprint(a["session_id"])
	say := `{"role":"user","parts":[{"type":"text","text":"hello"}]%s}`
	path := "/v1/sessions/" + id + "/messages"
	var first map[string]any
	for n := range 3 {
		status, raw, h := w.raw("POST", path, fmt.Sprintf(say, `,"id":"m1"`))
		var out map[string]any
		if err := json.Unmarshal(raw, &out); err != nil || status != 202 || (h.Get("Idempotency-Replayed") == "true") != (n > 0) {
			t.Errorf("got %v, %v, %v, want status 202, %v", status, string(raw), h, (n > 0))
		}
		if n == 0 {
			first = out
		}
		if fmt.Sprint(out) != fmt.Sprint(first) {
			t.Errorf("%v, and then %v", first, out)
		}
		w.idle(id)
	}
	if status, out := w.do("POST", path, `{"role":"user","id":"m1","parts":[{"type":"text","text":"other"}]}`); status != 409 || out["error"].(map[string]any)["code"] != "idempotency_conflict" {
		t.Errorf(`got %v, %v, want status 409, code "idempotency_conflict"`, status, out)
	}
	_, x := post(path, fmt.Sprintf(say, ""), "key 2")
	_, y := post(path, fmt.Sprintf(say, ""), "key 2")
	if fmt.Sprint(x) != fmt.Sprint(y) || x["message_id"] == nil {
		t.Errorf("got %v, %v, want x %v, a message_id", x, y, fmt.Sprint(y))
	}
	w.idle(id)
	if n := len(w.must("GET", path, "", 200)["messages"].([]any)); n != 4 {
		t.Errorf("%d messages", n)
	}
	// A message of another role is taken once, too, and starts nothing.
	for range 2 {
		if out := w.must("POST", path, `{"role":"system","id":"s1","parts":[{"type":"text","text":"be kind"}]}`, 202); out["message_id"] != "s1" || out["turn_id"] != "" {
			t.Errorf(`got %v, want message_id "s1", no turn_id`, out)
		}
	}
	w.refused("POST", path, `{"role":"assistant","id":"s1","parts":[{"type":"text","text":"be kind"}]}`, 409, "idempotency_conflict")
	w.must("POST", path, `{"role":"assistant","parts":[{"type":"text","text":"I said so"}]}`, 202)
	w.must("POST", path, `{"role":"tool","parts":[{"type":"text","text":"and I"}]}`, 202)
	ms := w.must("GET", path+"?limit=3", "", 200)
	var roles []string
	for _, m := range ms["messages"].([]any) {
		roles = append(roles, m.(map[string]any)["role"].(string))
	}
	if fmt.Sprint(roles) != "[tool assistant system]" || ms["before"] == nil {
		t.Errorf(`got %v, %v, want roles "[tool assistant system]", a before`, roles, ms["before"])
	}
	older := w.must("GET", fmt.Sprintf("%s?limit=3&before=%v", path, ms["before"]), "", 200)["messages"].([]any)
	if len(older) != 3 || older[0].(map[string]any)["role"] != "assistant" {
		t.Errorf(`got %v, want len(older) 3, older[0].role "assistant"`, older)
	}
	// After a restart it is all the same.
	w.stop()
	w.start("")
	if out := w.must("POST", path, fmt.Sprintf(say, `,"id":"m1"`), 202); fmt.Sprint(out) != fmt.Sprint(first) {
		t.Errorf("got %v, want out %v", out, fmt.Sprint(first))
	}
	if _, out := post("/v1/sessions", body, "k"); out["session_id"] != id {
		t.Errorf("got %v, want session_id %v", out, id)
	}
}

// The delivery of a message decides what happens to it while a turn runs, and the
// queue can be seen and changed.
func TestDelivery(t *testing.T) {
	w := newWorld(t, oneWrite)
	id := w.create()
	path := "/v1/sessions/" + id
	turn := w.say(id, "wait for it")["turn_id"]
	w.wait(id, func(st map[string]any) bool { return st["state"] == "running" })
	for n := range 3 {
		if out := w.say(id, fmt.Sprint("queued ", n), fmt.Sprintf(`,"id":"q%d","on_busy":"queue"`, n)); out["queued"] != true || out["turn_id"] != "" {
			t.Errorf("got %v, want queued true, no turn_id", out)
		}
	}
	if q := fmt.Sprint(w.must("GET", path+"/queue", "", 200)["queue"]); q != "[map[message_id:q0 text:queued 0] map[message_id:q1 text:queued 1] map[message_id:q2 text:queued 2]]" {
		t.Errorf(`got %q, want "[map[message_id:q0 text:queued 0] map[message_id:q1 text:queued 1] map[message_id:q2 text:queued 2]]"`, q)
	}
	w.refused("PUT", path+"/queue", `{"message_ids":["q9"]}`, 409, "not_queued")
	w.refused("PUT", path+"/queue", `{"message_ids":["q1","q1"]}`, 400, "bad_request")
	if q := fmt.Sprint(w.must("PUT", path+"/queue", `{"message_ids":["q2","q0"]}`, 200)["queue"]); q != "[map[message_id:q2 text:queued 2] map[message_id:q0 text:queued 0]]" {
		t.Errorf(`got %q, want "[map[message_id:q2 text:queued 2] map[message_id:q0 text:queued 0]]"`, q)
	}
	w.refused("POST", path+"/messages", `{"role":"user","delivery":"steer","expected_turn_id":"turn_x","parts":[{"type":"text","text":"x"}]}`, 409, "unexpected_turn")
	if out := w.say(id, "by the way", fmt.Sprintf(`,"delivery":"steer","expected_turn_id":%q`, turn)); out["turn_id"] != turn {
		t.Errorf("got %v, want turn_id %v", out, turn)
	}
	f := w.follow(id, "")
	if out := w.say(id, "read now", `,"delivery":"interrupt"`); out["turn_id"] == turn || out["turn_id"] == "" {
		t.Errorf("got %v, want turn_id not %v, a turn_id", out, turn)
	}
	events := f.until("session_canceled")
	if !strings.Contains(types(events), "queue_changed") {
		t.Errorf(`got %v, want events with "queue_changed"`, types(events))
	}
	// The interrupting one, then those that were queued, in their order.
	var said []string
	for range 3 {
		for _, e := range f.until("turn_completed") {
			if m, ok := e.Data["message"].(map[string]any); ok && m["role"] == "user" {
				said = append(said, m["parts"].([]any)[0].(map[string]any)["text"].(string))
			}
		}
	}
	if fmt.Sprint(said) != "[read now queued 2 queued 0]" {
		t.Errorf(`got %v, want said "[read now queued 2 queued 0]"`, said)
	}
}

// S-18…S-20, HT-26, HT-27: an upload is typed by its content, lies under a name of
// our own, and is given back to be stored, never to be shown.
func TestAttachments(t *testing.T) {
	w := newWorld(t, "")
	id := w.create()
	path := "/v1/sessions/" + id + "/attachments"
	png, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	if err != nil {
		t.Fatal(err)
	}
	upload := func(name string, data []byte) (int, map[string]any) {
		var b strings.Builder
		m := multipart.NewWriter(&b)
		p, err := m.CreateFormFile("file", name)
		if err == nil {
			_, err = p.Write(data)
		}
		if err != nil || m.Close() != nil {
			t.Fatalf("got %v, want a form", err)
		}
		return w.do("POST", path, b.String(), "Content-Type", m.FormDataContentType())
	}
	for name, want := range map[string]string{"../../x": "x", `C:\x\y.png`: "y.png", "con": "con", "a\u202eb": "a_b", "": ""} {
		status, out := upload(name, png)
		if ref, _ := out["ref"].(string); status != 201 || !strings.HasPrefix(ref, "attachments/att_") || !strings.HasSuffix(ref, ".png") || out["mime_type"] != "image/png" || (want != "" && out["name"] != want) {
			t.Errorf("%q: got %d %v, want 201 and an attachment with the name %q", name, status, out, want)
		}
	}
	html := "<!doctype html><script>alert(1)</script>"
	status, out := upload("x.png", []byte(html))
	if status != 201 || out["mime_type"] != "text/html" {
		t.Errorf(`got %v, %v, want status 201, mime_type "text/html"`, status, out)
	}
	ref := out["ref"].(string)
	status, raw, h := w.raw("GET", "/v1/sessions/"+id+"/"+ref, "")
	if status != 200 || string(raw) != html || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment") || h.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(h.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf(`got %v, %v, want status 200, raw %v, Content-Disposition beginning with "attachment", X-Content-Type-Options "nosniff", Content-Security-Policy beginning with "sandbox"`, status, h, html)
	}
	if status, out := upload("empty", nil); status != 400 {
		t.Errorf("got %v, %v, want status 400", status, out)
	}
	if status, _ := upload("large", make([]byte, 25<<20)); status != 201 {
		t.Error("25 MiB: ", status)
	}
	if status, out := upload("larger", make([]byte, 25<<20+1)); status != 413 || out["error"].(map[string]any)["code"] != "too_large" {
		t.Errorf(`got %v, %v, want status 413, code "too_large"`, status, out)
	}
	pic := w.must("POST", path, fmt.Sprintf(`{"name":"p.png","mime_type":"text/plain","data":%q}`, base64.StdEncoding.EncodeToString(png)), 201)
	if pic["mime_type"] != "image/png" || pic["size"] != float64(len(png)) {
		t.Errorf("got %v, want image/png and %d bytes", pic, len(png))
	}
	w.refused("POST", path, `{"data":"%%%"}`, 400, "bad_request")
	w.refused("POST", path, `{"data":""}`, 400, "bad_request")
	for _, ct := range []string{"text/plain", "", "multipart/form-data", "application/x-www-form-urlencoded"} {
		if status, out := w.do("POST", path, "x", "Content-Type", ct); status != 415 && status != 400 {
			t.Errorf("Content-Type %q: got %d %v, want 415 or 400", ct, status, out)
		}
	}
	for _, name := range []string{"..%2fsession.json", "none.png", "%2e%2e", "att_x"} {
		w.refused("GET", path+"/"+name, "", 404, "not_found")
	}
	entries, err := os.ReadDir(filepath.Join(w.dir, "sessions", id, "attachments"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || !strings.HasPrefix(e.Name(), "att_") || info.Mode().Perm() != 0o600 {
			t.Errorf(`%s: got %v %v, want Name beginning with "att_", Perm 0o600`, e.Name(), info, err)
		}
	}
	// S-24: a message with a picture; as a picture only if it is one.
	w.refused("POST", "/v1/sessions/"+id+"/messages", fmt.Sprintf(`{"role":"user","parts":[{"type":"image","ref":%q}]}`, ref), 400, "bad_part")
	var mu sync.Mutex
	var asked event.LLMRequest
	_, err = bus.On(w.k.Bus, bus.SubscribeOptions{Name: "t"}, event.LLMCallRequest, func(_ context.Context, _ event.Event, r event.LLMRequest) error {
		mu.Lock()
		defer mu.Unlock()
		asked = r
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.must("POST", "/v1/sessions/"+id+"/messages", fmt.Sprintf(`{"role":"user","parts":[{"type":"text","text":"look"},{"type":"image","ref":%q,"mime_type":"image/png"},{"type":"file","ref":%q}]}`, pic["ref"], ref), 202)
	w.idle(id)
	ms := w.must("GET", "/v1/sessions/"+id+"/messages", "", 200)["messages"].([]any)
	if got := fmt.Sprint(ms[len(ms)-1].(map[string]any)["parts"]); !strings.Contains(got, "type:image") || !strings.Contains(got, "type:file") || !strings.Contains(got, "text:look") {
		t.Errorf(`got %v, want "type:image" in it, "type:file" in it, "text:look" in it`, got)
	}
	mu.Lock()
	if last := asked.Messages[len(asked.Messages)-1]; len(last.Images) != 1 || last.Images[0].MimeType != "image/png" || string(last.Images[0].Data) != string(png) || len(last.Attachments) != 0 {
		t.Errorf("the model is asked %+v", last)
	}
	mu.Unlock()
	if got := fmt.Sprint(ms[0]); !strings.Contains(got, "alert(1)") { // texts go to the model as text: the echo repeats them
		t.Errorf(`got %v, want "alert(1)" in it`, got)
	}
	other := w.create()
	w.refused("POST", "/v1/sessions/"+other+"/messages", fmt.Sprintf(`{"role":"user","parts":[{"type":"image","ref":%q}]}`, pic["ref"]), 400, "bad_part")
}

// USE-9: a session that is shown as idle has the usage of the turn that has ended,
// even if the feed that counts it is not there, or is behind the tape.
func TestIdleHasCounted(t *testing.T) {
	w := newWorld(t, "")
	id := w.create()
	for turn := 1.0; turn <= 3; turn++ {
		if _, err := w.k.Loop.Run(t.Context(), loop.Prompt{SessionID: id, Text: "hello"}); err != nil { // not over this API
			t.Fatal(err)
		}
		st := w.idle(id)
		if got := st["usage"].(map[string]any); got["turns"] != turn || got["steps"] != turn || st["last_turn_id"] == "" || st["title"] != "hello" {
			t.Errorf("after turn %v: %v, want so many turns and steps", turn, st)
		}
	}
	w.say(id, "over this API") // the feed comes, and counts none of them twice
	f := w.follow(id, "")
	for range 4 {
		f.until("turn_completed")
	}
	if got := w.idle(id)["usage"].(map[string]any); got["turns"] != 4.0 || got["steps"] != 4.0 {
		t.Errorf("usage %v, want 4 turns and steps", got)
	}
	w.must("POST", "/v1/sessions/"+id+"/reset", "", 200)
	f.until("session_created")
	if got := w.idle(id)["usage"].(map[string]any); got["turns"] != 0.0 {
		t.Errorf("after a reset: %v, want no turns", got)
	}
}

// S-7, S-16: sessions are listed, the one changed last first; they can be renamed,
// forked, reset, put away, closed, and taken out.
func TestLifecycle(t *testing.T) {
	var closed []string
	w := newWorld(t, "", func(cfg *sessions.Config) { cfg.Closed = func(id string) { closed = append(closed, id) } })
	var ids []string
	for n := range 5 {
		ids = append(ids, w.create(fmt.Sprintf(`,"title":"t%d"`, n)))
	}
	w.say(ids[1], "me last")
	w.idle(ids[1])
	list := func(query string) (out []string, next string) {
		t.Helper()
		page := w.must("GET", "/v1/sessions"+query, "", 200)
		for _, s := range page["sessions"].([]any) {
			out = append(out, s.(map[string]any)["title"].(string))
		}
		next, _ = page["next"].(string)
		return out, next
	}
	if got, next := list(""); fmt.Sprint(got) != "[t1 t4 t3 t2 t0]" || next != "" {
		t.Errorf(`got %v, %v, want got "[t1 t4 t3 t2 t0]", no next`, got, next)
	}
	one, next := list("?limit=2")
	two, next := list("?limit=2&cursor=" + next)
	three, end := list("?limit=2&cursor=" + next)
	if fmt.Sprint(one, two, three) != "[t1 t4] [t3 t2] [t0]" || end != "" {
		t.Errorf(`got %v, %v, %v, %v, want one "[t1 t4] [t3 t2] [t0]", no end`, one, two, three, end)
	}
	if got := w.must("PATCH", "/v1/sessions/"+ids[1], `{"title":"renamed","auto_run":false,"system_prompt":"be long"}`, 200); got["title"] != "renamed" || got["auto_run"] != false || got["system_prompt"] != "be long" {
		t.Errorf(`got %v, want title "renamed", auto_run false, system_prompt "be long"`, got)
	}
	fork := w.must("POST", "/v1/sessions/"+ids[1]+"/fork", "", 201)
	child := fmt.Sprint(fork["id"])
	if fork["parent_id"] != ids[1] || fork["system_prompt"] != "be long" || fork["usage"].(map[string]any)["turns"] != 0.0 {
		t.Errorf(`got %v, want parent_id %v, system_prompt "be long", turns 0.0`, fork, ids[1])
	}
	if ms := w.must("GET", "/v1/sessions/"+child+"/messages", "", 200)["messages"].([]any); len(ms) != 2 {
		t.Error("what the parent holds is not there: ", ms)
	}
	w.say(child, "only here", `,"auto_run":true`)
	w.idle(child)
	if ms := w.must("GET", "/v1/sessions/"+ids[1]+"/messages", "", 200)["messages"].([]any); len(ms) != 2 {
		t.Errorf("got %v, want len(ms) 2", ms)
	}
	if st := w.must("GET", "/v1/sessions/"+child, "", 200); st["usage"].(map[string]any)["turns"] != 1.0 {
		t.Errorf("got %v, want turns 1.0", st)
	}
	status, raw, h := w.raw("GET", "/v1/sessions/"+child+"/export", "")
	if status != 200 || h.Get("Content-Type") != "application/x-ndjson" || strings.Count(string(raw), "\n") < 10 || !strings.Contains(string(raw), "only here") || !strings.Contains(string(raw), "me last") {
		t.Errorf(`got %v, %v, want status 200, Content-Type "application/x-ndjson", raw at least 10, raw with "only here", raw with "me last"`, status, h)
	}
	f := w.follow(child, "")
	f.until("turn_completed") // the parent's
	f.until("turn_completed")
	w.must("POST", "/v1/sessions/"+child+"/reset", "", 200)
	events := f.until("session_created")
	if got := types(events); got != "session_reset resync session_created" {
		t.Errorf(`got %q, want "session_reset resync session_created"`, got)
	}
	if ms := w.must("GET", "/v1/sessions/"+child+"/messages", "", 200)["messages"].([]any); len(ms) != 0 {
		t.Errorf("got %v, want len(ms) 0", ms)
	}
	w.say(child, "anew", `,"auto_run":true`)
	f.until("turn_completed")
	if st := w.idle(child); st["usage"].(map[string]any)["turns"] != 1.0 || st["system_prompt"] != "be long" {
		t.Errorf(`got %v, want turns 1.0, system_prompt "be long"`, st)
	}
	if got := w.must("POST", "/v1/sessions/"+ids[0]+"/close", "", 200); got["status"] != "completed" {
		t.Errorf(`got %v, want status "completed"`, got)
	}
	if fmt.Sprint(closed) != "["+ids[0]+"]" {
		t.Errorf("closed sessions told are %v, want %s", closed, ids[0])
	}
	w.refused("POST", "/v1/sessions/"+ids[0]+"/messages", `{"role":"user","parts":[{"type":"text","text":"x"}]}`, 409, "session_completed")
	if got := types(w.follow(ids[0], "").until("session_completed")); got != "session_created session_completed" {
		t.Errorf(`got %q, want "session_created session_completed"`, got)
	}
	if got, _ := list("?status=completed"); fmt.Sprint(got) != "[t0]" {
		t.Errorf(`got %v, want got "[t0]"`, got)
	}
	if status, raw, _ := w.raw("POST", "/v1/sessions/"+ids[2]+"/archive", ""); status != 204 || len(raw) != 0 {
		t.Errorf("got %v, %v, want status 204, len(raw) 0", status, string(raw))
	}
	w.refused("GET", "/v1/sessions/"+ids[2], "", 404, "not_found")
	// A session that was made elsewhere is there, too.
	if _, err := w.k.Sessions.Open("elsewhere", ""); err != nil {
		t.Fatal(err)
	}
	if got, _ := list(""); len(got) != 6 {
		t.Errorf("got %v, want len(got) 6", got)
	}
	w.say("elsewhere", "hello")
	w.idle("elsewhere")
	// After a restart it is all there.
	before, _ := list("")
	w.stop()
	w.start("")
	if after, _ := list(""); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("%v, and then %v", before, after)
	}
	if st := w.must("GET", "/v1/sessions/"+child, "", 200); st["parent_id"] != ids[1] || st["usage"].(map[string]any)["turns"] != 1.0 {
		t.Errorf("got %v, want parent_id %v, turns 1.0", st, ids[1])
	}
}

// S-4: the system prompt is the first system message of every turn, even after it was
// changed, after a restart, and in a fork.
func TestSystemPrompt(t *testing.T) {
	w := newWorld(t, "")
	var mu sync.Mutex
	var first []string
	listen := func() {
		t.Helper()
		_, err := bus.On(w.k.Bus, bus.SubscribeOptions{Name: "t"}, event.LLMCallRequest, func(_ context.Context, _ event.Event, r event.LLMRequest) error {
			mu.Lock()
			defer mu.Unlock()
			first = append(first, r.Messages[0].Role+": "+r.Messages[0].Content)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	listen()
	id := w.create(`,"system_prompt":"be brief"`)
	turn := func(id string) {
		t.Helper()
		f := w.follow(id, fmt.Sprint(w.must("GET", "/v1/sessions/"+id, "", 200)["cursor"]))
		defer f.close()
		w.say(id, "hello")
		f.until("turn_completed")
	}
	turn(id)
	turn(id)
	w.must("PATCH", "/v1/sessions/"+id, `{"system_prompt":"be long"}`, 200)
	turn(id)
	turn(fmt.Sprint(w.must("POST", "/v1/sessions/"+id+"/fork", "", 201)["id"]))
	w.stop()
	w.start("")
	listen()
	turn(id)
	mu.Lock()
	defer mu.Unlock()
	if got := fmt.Sprint(first); got != "[system: be brief system: be brief system: be long system: be long system: be long]" {
		t.Errorf(`got %q, want "[system: be brief system: be brief system: be long system: be long system: be long]"`, got)
	}
}

// R7: a device may do what its scopes say.
func TestWhoAnswers(t *testing.T) {
	w := newWorld(t, oneWrite)
	id := w.create()
	w.who = auth.Principal{Kind: auth.Device, ID: "phone"}
	w.say(id, "write it")
	st := w.wait(id, func(st map[string]any) bool { return st["state"] == "requires_action" })
	call := st["pending_approvals"].([]any)[0].(map[string]any)["tool_call_id"]
	if got := w.must("POST", "/v1/sessions/"+id+"/approve", fmt.Sprintf(`{"tool_call_id":%q,"action":"approve"}`, call), 200); got["by"] != "phone" {
		t.Errorf(`got %v, want by "phone"`, got)
	}
	w.idle(id)
	if _, _, h := w.raw("GET", "/v1/docs", ""); !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") || h.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf(`got %v, want Content-Security-Policy with "default-src 'none'", Content-Type "text/html; charset=utf-8"`, h)
	}
	if status := w.status("HEAD", "/v1/sessions/"+id+"/events"); status != 200 { // HT-07
		t.Errorf("got %v, want 200", status)
	}
}

func (w *world) status(method, path string) int {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.http.URL+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := w.http.Client().Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}
