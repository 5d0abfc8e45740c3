package downstream_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/intake"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
	peer "github.com/yaya-ai/yaya/mcpbridge/relay"
)

// counted is a large result that has its part of the budget, as a server's has.
func counted(t *testing.T, n int) tool.Result {
	share := intake.Answers().TryTake(tool.Owner, int64(n))
	if share == nil {
		t.Error("the budget is in use")
	}
	buf := bufpool.Get(n)
	buf.OnRelease(share.Release)
	buf.B = append(append(append(buf.B, `{"content":[{"type":"text","text":"`...), strings.Repeat("x", n-100)...), `"}]}`...)
	obj, err := jsonrpc.ParseObject(buf.B)
	if err != nil {
		t.Errorf("ParseObject of the result = %v, want no error", err)
	}
	return tool.Result{OK: true, Native: &tool.NativeResult{Result: obj, Buffer: buf}}
}

// FID-3: a large result that nobody waits for, of a task that is not polled and of a
// call whose question was withdrawn, takes no part of the budget until it is asked for,
// and is whole then.
func TestResultsThatNobodyWaitsForKeepNoRoom(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	const size = 3 << 20
	var step atomic.Pointer[chan struct{}]
	reg := new(tool.Registry)
	reg.Replace("srv", []tool.Provided{{Tool: relay("srv__slow", func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if c.Native.Params.Get("asks") != nil {
			ctx, cancel := context.WithCancel(ctx)
			go func() {
				<-*step.Load()
				cancel() // the question is withdrawn
			}()
			_, _ = c.Native.Peer.(peer.Peer).Ask(ctx, peer.Elicitation, []byte(`{"message":"q"}`))
		} else {
			select {
			case <-*step.Load():
			case <-ctx.Done():
			}
		}
		return counted(t, size), nil
	})}})
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	srv := downstream.New(downstream.Config{Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg}), Registry: reg, Caller: owner, TaskAfter: 10 * time.Millisecond, Artifacts: tool.NewStore(root)})
	hs := httptest.NewServer(srv)
	defer hs.Close()
	defer srv.Close()
	r := at(t, hs.URL)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}`
	const tasks = meta + `,"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	send := func(method, params string) (res struct {
		ResultType, TaskID, Status, RequestState string
		Content                                  []struct{ Text string }
		Result                                   struct{ Content []struct{ Text string } }
	}) {
		t.Helper()
		name := "srv__slow"
		if method != "tools/call" {
			name = ""
		}
		body := r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+`}}`, modern(method, name)).body
		m := struct{ Result any }{&res}
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Fatalf("the answer to %s: %v, want JSON: %.300s", method, err, body)
		}
		return res
	}
	landed := func(what string) {
		t.Helper()
		eventually.True(t, what+" lies in a file, and holds no memory", func() bool {
			return intake.Kept().InUse() > size-1000 && intake.Answers().InUse() == 0
		})
	}
	begin := func() chan struct{} {
		ch := make(chan struct{})
		step.Store(&ch)
		return ch
	}

	ch := begin()
	id := send("tools/call", `"name":"srv__slow",`+tasks).TaskID
	if id == "" {
		t.Fatal("the call did not become a task")
	}
	close(ch)
	landed("the result of the task")
	for range 2 {
		if res := send("tasks/get", `"taskId":"`+id+`",`+tasks); res.Status != "completed" || len(res.Result.Content) != 1 || len(res.Result.Content[0].Text) != size-100 {
			t.Fatalf("got %s with %d items, want the whole result", res.Status, len(res.Result.Content))
		}
		eventually.True(t, "the answer is given back", func() bool { return intake.Answers().InUse() == 0 })
	}
	srv.Close()
	if got := intake.Kept().InUse(); got != 0 {
		t.Errorf("%d bytes are kept of a server that is closed, want 0", got)
	}

	srv2 := downstream.New(downstream.Config{Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg}), Registry: reg, Caller: owner})
	hs2 := httptest.NewServer(srv2)
	defer hs2.Close()
	defer srv2.Close()
	r = at(t, hs2.URL)
	ch = begin()
	state := send("tools/call", `"name":"srv__slow","asks":true,`+meta+`}}`).RequestState
	if state == "" {
		t.Fatal("the call was not parked")
	}
	close(ch)
	landed("the result of the parked call")
	res := send("tools/call", `"name":"srv__slow","asks":true,"requestState":"`+state+`",`+meta+`}}`)
	if len(res.Content) != 1 || len(res.Content[0].Text) != size-100 {
		t.Errorf("got %s with %d items, want the whole result", res.ResultType, len(res.Content))
	}
	eventually.True(t, "all is given back", func() bool { return intake.Answers().InUse() == 0 && intake.Kept().InUse() == 0 })
}

// A parked call leaves its client the room for the request that brings the answer: a
// modern client sends the arguments again.
func TestParkedRequestsLeaveRoomForTheAnswer(t *testing.T) {
	r := newRig(t, asks("srv__ask", 1))
	args := `{"pad":"` + strings.Repeat("x", 2<<20) + `"}`
	// The client has the rest of its part in flight.
	other := intake.Requests().TryTake(tool.Owner, intake.Requests().Total()/4-3<<20)
	if other == nil {
		t.Fatal("the budget is in use")
	}
	defer other.Release()
	key, state := parked(t, r.callModern("srv__ask", args, ""))
	m := r.callModern("srv__ask", args, `,"requestState":"`+state+`","inputResponses":{"`+key+`":{"action":"accept"}}`)
	if res, _ := m["result"].(map[string]any); res["resultType"] != "complete" {
		t.Errorf("got %.300v, want the result", m)
	}
	other.Release()
	eventually.True(t, "all is given back", func() bool { return intake.Requests().InUse() == 0 && intake.Parked().InUse() == 0 })
}
