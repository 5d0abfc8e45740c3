package downstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
	peer "github.com/yaya-ai/yaya/mcpbridge/relay"
)

// A call that takes long becomes a task for a client that knows tasks: it can look
// at it, answer it, cancel it and have its result; another client cannot. A client
// that knows none waits.
func TestLongCallsBecomeTasks(t *testing.T) {
	step := make(chan struct{})
	ended := make(chan error, 8)
	reg := new(tool.Registry)
	reg.Replace("srv", []tool.Provided{{Tool: relay("srv__slow", func(ctx context.Context, c tool.Call) (tool.Result, error) {
		select {
		case <-step:
		case <-ctx.Done():
			ended <- ctx.Err()
			return tool.Result{}, ctx.Err()
		}
		mode, _ := c.Native.Params.String("mode")
		switch mode {
		case "error":
			return tool.Result{Native: &tool.NativeResult{Error: json.RawMessage(`{"code":-5,"message":"m","data":12345678901234567890}`)}}, nil
		case "ask":
			r, err := c.Native.Peer.(peer.Peer).Ask(ctx, peer.Elicitation, []byte(`{"message":"q"}`))
			if err != nil {
				return tool.Result{}, err
			}
			return ok(`{"content":[],"heard":` + string(r.Result.Raw()) + `}`)
		}
		return ok(`{"content":[],"n":12345678901234567890}`)
	})}})
	const taskAfter = 50 * time.Millisecond
	srv := downstream.New(downstream.Config{Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg}), Registry: reg, Caller: owner, TaskAfter: taskAfter})
	hs := httptest.NewServer(srv)
	defer hs.Close()
	defer srv.Close()
	r := at(t, hs.URL)
	meta := func(name, caps string) string {
		return `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"` + name + `","version":"1"},"io.modelcontextprotocol/clientCapabilities":` + caps + `}`
	}
	const knows = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	type answer struct {
		Result struct {
			ResultType, TaskID, Status string
			TTL                        int `json:"ttlMs"`
			Result, Error              json.RawMessage
			InputRequests              map[string]struct{ Method string }
		}
		Error struct{ Code int }
	}
	send := func(who, method, params string) (answer, string) {
		t.Helper()
		name := "srv__slow"
		if method != "tools/call" {
			name = ""
		}
		body := r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+`,`+meta(who, knows)+`}}`, modern(method, name)).body
		var a answer
		if err := json.Unmarshal([]byte(body), &a); err != nil {
			t.Fatalf("%s = %s, %v; want JSON", method, body, err)
		}
		return a, body
	}
	begin := func(mode string) string {
		t.Helper()
		a, body := send("me", "tools/call", `"name":"srv__slow","mode":"`+mode+`"`)
		if a.Result.ResultType != "task" || a.Result.Status != "working" || a.Result.TTL == 0 || a.Result.Result != nil {
			t.Fatalf("began: %s", body)
		}
		return a.Result.TaskID
	}
	get := func(id string) (answer, string) { t.Helper(); return send("me", "tasks/get", `"taskId":"`+id+`"`) }
	until := func(id, status string) string {
		t.Helper()
		for deadline := time.Now().Add(eventually.Limit); time.Now().Before(deadline); {
			if a, body := get(id); a.Result.Status == status {
				return body
			}
			time.Sleep(10 * time.Millisecond)
		}
		_, body := get(id)
		t.Fatalf("never %s: %s", status, body)
		return ""
	}

	id := begin("")
	if a, body := get(id); a.Result.Status != "working" || a.Result.TaskID != id {
		t.Errorf("working: %s", body)
	}
	for _, c := range [][2]string{{"other", id}, {"me", "~nothing"}, {"me", strings.TrimPrefix(id, "~")}} {
		for _, m := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			if a, body := send(c[0], m, `"taskId":"`+c[1]+`"`); a.Error.Code != -32602 {
				t.Errorf("got %s of %s: %s, want Code %v", m, c[0], body, -32602)
			}
		}
	}
	step <- struct{}{}
	if body := until(id, "completed"); !strings.Contains(body, `"n":12345678901234567890`) {
		t.Errorf("completed: %s", body)
	}
	if _, body := send("me", "tasks/cancel", `"taskId":"`+id+`"`); !strings.Contains(body, `"resultType":"complete"`) {
		t.Errorf("cancelling what has ended: %s", body)
	}
	until(id, "completed")

	id = begin("error")
	step <- struct{}{}
	if body := until(id, "failed"); !strings.Contains(body, `"error":{"code":-5,"message":"m","data":12345678901234567890}`) {
		t.Errorf("failed: %s", body)
	}

	id = begin("ask")
	step <- struct{}{}
	until(id, "input_required")
	a, _ := get(id)
	for key, q := range a.Result.InputRequests {
		if q.Method != peer.Elicitation {
			t.Errorf("asked %s", q.Method)
		}
		if a, body := send("me", "tasks/update", `"taskId":"`+id+`","inputResponses":{"`+key+`":7}`); a.Error.Code != -32602 {
			t.Errorf("a malformed answer: %s", body)
		}
		if _, body := send("me", "tasks/update", `"taskId":"`+id+`","inputResponses":{"x":{},"`+key+`":{"action":"accept"}}`); !strings.HasSuffix(body, `"result":{"resultType":"complete"}}`) {
			t.Errorf("acknowledged: %s", body)
		}
	}
	if body := until(id, "completed"); !strings.Contains(body, `"heard":{"action":"accept"}`) {
		t.Errorf("answered: %s", body)
	}

	id = begin("")
	send("me", "tasks/cancel", `"taskId":"`+id+`"`)
	until(id, "cancelled")
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(eventually.Limit):
		t.Error("the call goes on")
	}

	// A client without support for tasks gets the result, however long it takes.
	done := make(chan string, 1)
	go func() {
		done <- r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv__slow",`+meta("plain", `{}`)+`}}`, modern("tools/call", "srv__slow")).body
	}()
	time.Sleep(3 * taskAfter) // an answer before that would be the task
	step <- struct{}{}
	if body := <-done; !strings.Contains(body, `"n":12345678901234567890`) {
		t.Errorf("without tasks: %s", body)
	}
	begin("") // ends with the server
}
