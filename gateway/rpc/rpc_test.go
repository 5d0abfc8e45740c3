package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/cluster"
	"github.com/yaya-ai/yaya/gateway/rpc"
	"github.com/yaya-ai/yaya/gateway/wire/wiretest"
	"github.com/yaya-ai/yaya/internal/journal/journaltest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// raw posts a body to /rpc.
func raw(t *testing.T, w *wiretest.World, g *wiretest.Gadget, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", w.HTTP.URL+"/rpc", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return do(t, g, req)
}

func do(t *testing.T, g *wiretest.Gadget, req *http.Request) (int, string) {
	t.Helper()
	req.Header.Set("Authorization", "Bearer "+g.Token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(data))
}

func get(t *testing.T, w *wiretest.World, g *wiretest.Gadget, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", w.HTTP.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, g, req)
}

type rpcError struct {
	Code    int
	Message string
}

// call calls a method.
func call(t *testing.T, w *wiretest.World, g *wiretest.Gadget, method string, params any) (map[string]any, *rpcError) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	status, text := raw(t, w, g, string(body))
	var res struct {
		ID     any
		Result map[string]any
		Error  *rpcError
	}
	if err := json.Unmarshal([]byte(text), &res); err != nil || status != 200 || res.ID != float64(7) {
		t.Fatalf("%d %s: %v", status, text, err)
	}
	return res.Result, res.Error
}

// W-19, W-26, W-29…W-33, W-50, W-51, W-53…W-55: agents are spawned, change, and are
// killed; the lobby sees it, /agents and agent.get show it, the log keeps it.
func TestAgents(t *testing.T) {
	w := wiretest.New(t)
	g := w.Enrol("phone")
	c := w.Connect(g, true, true)
	joined := c.Join("agent:lobby", map[string]any{})
	if fmt.Sprint(joined["agents"]) != "<nil>" && len(joined["agents"].([]any)) != 0 || fmt.Sprint(joined["present"]) != "[phone]" {
		t.Errorf("%v", joined)
	}
	res, rerr := call(t, w, g, "agent.spawn", map[string]any{"skill": "review", "context": map[string]any{"prompt": "hello"}})
	if rerr != nil {
		t.Fatal(rerr)
	}
	id := res["id"].(string)
	var last float64
	var statuses []any
	for !slices.Equal(statuses, []any{"registered", "running", "idle"}) {
		m := c.Read()
		if m.Event == "presence_join" {
			continue
		}
		p := m.Payload
		if p["type"] != m.Event || p["id"] != id || p["raft_log_index"].(float64) <= last {
			t.Fatalf("%+v", m)
		}
		last = p["raft_log_index"].(float64)
		switch m.Event {
		case "register_agent":
			if p["kernel_id"] != "k1" || p["skill"] != "review" || p["status"] != "idle" || p["meta"].(map[string]any)["spawned_by"] != "phone" {
				t.Errorf("%+v", m)
			}
			statuses = append(statuses, "registered")
		case "update_agent":
			if _, ok := p["context_patch"].(map[string]any); !ok {
				t.Errorf("%+v", m)
			}
			statuses = append(statuses, p["status"])
		default:
			t.Fatalf("%+v", m)
		}
		if _, err := time.Parse(time.RFC3339, p["ts"].(string)); err != nil {
			t.Error(err)
		}
	}
	if status, body := get(t, w, g, "/agents"); status != 200 || !strings.Contains(body, `"id":"`+id+`"`) {
		t.Errorf("%d %s", status, body)
	}
	if status, body := get(t, w, g, "/agents/"+id); status != 200 || !strings.Contains(body, `"status":"idle"`) {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := get(t, w, g, "/agents/nobody"); status != 404 {
		t.Errorf("an unknown agent: %d", status)
	}
	got, rerr := call(t, w, g, "agent.get", map[string]any{"id": id})
	if rerr != nil || got["skill"] != "review" || got["raft_log_index"] != last {
		t.Errorf("%v %v", got, rerr)
	}
	if _, rerr := call(t, w, g, "agent.get", map[string]any{"id": "nobody"}); rerr == nil || rerr.Code != -32002 {
		t.Errorf("%v", rerr)
	}
	// It outlives the process; a client that comes back is told what it has missed.
	cursor := joined["cursor"].(map[string]any)
	addr := w.HTTP.Listener.Addr().String()
	w.Stop()
	w.Start(addr)
	c = w.Connect(g, false, false)
	again := c.Join("agent:lobby", map[string]any{"since": cursor["seq"], "epoch": cursor["epoch"]})
	if again["resync"] != nil || again["agents"] != nil {
		t.Errorf("%v", again)
	}
	for _, want := range []string{"register_agent", "update_agent", "update_agent"} {
		if m := c.Until(func(m wiretest.Message) bool { return m.Event != "presence_join" }); m.Event != want || m.Payload["id"] != id {
			t.Errorf("want %s: %+v", want, m)
		}
	}
	if res := c.Join("agent:lobby", map[string]any{"since": 1, "epoch": "another"}); res["resync"] != "epoch" || len(res["agents"].([]any)) != 1 {
		t.Errorf("%v", res)
	}
	if _, rerr := call(t, w, g, "agent.kill", map[string]any{"id": id, "reason": "enough"}); rerr != nil {
		t.Fatal(rerr)
	}
	if m := c.Until(func(m wiretest.Message) bool { return m.Event == "kill_agent" }); m.Payload["id"] != id || m.Payload["reason"] != "enough" {
		t.Errorf("%+v", m)
	}
	if _, rerr := call(t, w, g, "agent.kill", map[string]any{"id": id}); rerr == nil || rerr.Code != -32002 {
		t.Errorf("killed twice: %v", rerr)
	}
	// W-44, W-45, W-46: who did it is in the audit, with the index.
	audit, err := cluster.AuditLog(w.Log, cluster.Query{Target: id})
	if err != nil || len(audit) != 4 {
		t.Fatalf("%v %v", audit, err)
	}
	if audit[0].Actor != "phone" || audit[0].Event != "agent_registered" || audit[1].Actor != "k1" || audit[3].Event != "agent_killed" || audit[3].Index <= audit[2].Index {
		t.Errorf("%+v", audit)
	}
}

// W-53, W-54, R7, AU-37: each method asks for its own scope.
func TestScopesOfMethods(t *testing.T) {
	w := wiretest.New(t)
	reader := w.Enrol("reader", auth.AgentsRead)
	for method, params := range map[string]any{"agent.spawn": map[string]any{}, "agent.kill": map[string]any{"id": "x"}, "skill.invoke": map[string]any{"skill": "y"}} {
		if _, rerr := call(t, w, reader, method, params); rerr == nil || rerr.Code != -32003 {
			t.Errorf("%s: %v", method, rerr)
		}
	}
	for _, method := range []string{"cluster.status", "kernel.list"} {
		if _, rerr := call(t, w, reader, method, map[string]any{}); rerr != nil {
			t.Errorf("%s: %v", method, rerr)
		}
	}
	blind := w.Enrol("blind", auth.SessionsRead)
	for _, method := range []string{"cluster.status", "kernel.list", "agent.get"} {
		if _, rerr := call(t, w, blind, method, map[string]any{}); rerr == nil || rerr.Code != -32003 {
			t.Errorf("%s: %v", method, rerr)
		}
	}
	c := w.Connect(blind, false, true)
	for _, topic := range []string{"agent:lobby", "kernel:k1", "cluster:consensus", "skill:evolution", "memory:query"} {
		if status, res := c.Ask(topic, "phx_join", nil); status != "error" || res["reason"] != "forbidden" {
			t.Errorf("%s: %s %v", topic, status, res)
		}
	}
}

// W-58, WS-26: JSON-RPC 2.0 to the letter.
func TestJSONRPC(t *testing.T) {
	w := wiretest.New(t)
	g := w.Enrol("phone")
	status := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"cluster.status"}` }
	many := func(n int) string {
		return "[" + strings.Repeat(status("1")+",", n-1) + status("1") + "]"
	}
	for name, tt := range map[string]struct{ body, want string }{
		"parse":           {`{"jsonrpc`, `"id":null,"error":{"code":-32700`},
		"duplicate":       {`{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}`, `-32700`},
		"not a request":   {`{"foo":1}`, `-32600,"message":"not a JSON-RPC 2.0 request`},
		"number":          {`1`, `-32600`},
		"version":         {`{"jsonrpc":"1.0","id":1,"method":"cluster.status"}`, `-32600`},
		"method type":     {`{"jsonrpc":"2.0","id":1,"method":1}`, `-32600`},
		"unknown":         {`{"jsonrpc":"2.0","id":"x","method":"nope"}`, `"id":"x","error":{"code":-32601`},
		"params array":    {`{"jsonrpc":"2.0","id":1,"method":"agent.get","params":[1]}`, `"error":{"code":-3260`},
		"params null":     {`{"jsonrpc":"2.0","id":1,"method":"agent.get","params":null}`, `"error":{"code":-3260`},
		"unknown param":   {`{"jsonrpc":"2.0","id":1,"method":"agent.get","params":{"ID":"x"}}`, `-32602`},
		"param type":      {`{"jsonrpc":"2.0","id":1,"method":"agent.get","params":{"id":7}}`, `-32602`},
		"string id":       {status(`"a\"b"`), `"id":"a\"b","result"`},
		"big id":          {status(`9007199254740993`), `"id":9007199254740993,"result"`},
		"empty batch":     {`[]`, `-32600`},
		"batch":           {`[` + status("1") + `,` + status(`"2"`) + `,1]`, `-32600`},
		"nested":          {`[[` + status("1") + `]]`, `-32600`},
		"large batch":     {many(51), `-32600`},
		"largest batch":   {many(50), `"result"`},
		"batch of a few":  {`[` + status("1") + `,{"jsonrpc":"2.0","method":"cluster.status"}]`, `[{"jsonrpc":"2.0","id":1,`},
		"same id, twice":  {`[` + status("1") + `,` + status("1") + `]`, `"id":1`},
		"notification":    {`{"jsonrpc":"2.0","method":"cluster.status"}`, ``},
		"notifications":   {`[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}]`, ``},
		"deep":            {strings.Repeat("[", 100_000), `-32700`},
		"long number":     {status(strings.Repeat("1", 1001)), `-32700`},
		"invalid UTF-8":   {"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"a\"}", `-32700`},
		"trailing":        {status("1") + "{}", `-32700`},
		"object id":       {status(`{}`), `-32600`},
		"empty":           {``, `-32700`},
		"response":        {`{"jsonrpc":"2.0","id":1,"result":{}}`, `-32600`},
		"fractional id":   {status(`1.5`), `"id":1.5`},
		"params and more": {`{"jsonrpc":"2.0","id":1,"method":"cluster.status","params":{"x":1}}`, `-32602`},
	} {
		code, body := raw(t, w, g, tt.body)
		if tt.want == "" {
			if code != 204 || body != "" {
				t.Errorf("%s: %d %s", name, code, body)
			}
			continue
		}
		if code != 200 || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %d %.200s, want %s", name, code, body, tt.want)
		}
	}
	if code, _ := raw(t, w, g, `{"x":"`+strings.Repeat("x", 1<<20)+`"}`); code != 413 { // HT-01
		t.Errorf("a large body: %d", code)
	}
}

// W-22, W-38, W-39, W-56, W-28: who leads, what happens when nothing can be written,
// and that clients only listen.
func TestConsensus(t *testing.T) {
	w := wiretest.New(t)
	g := w.Enrol("phone")
	c := w.Connect(g, false, true)
	res := c.Join("cluster:consensus", nil)
	m := c.Read()
	if m.Event != "leader_elected" || m.Payload["node"] != res["leader"] || m.Payload["term"] != res["term"] || res["quorum"] != true || res["node_count"] != float64(1) {
		t.Errorf("%v, %+v", res, m)
	}
	c.Join("cluster:main", nil) // another name of it
	for _, topic := range []string{"agent:lobby", "cluster:consensus", "skill:evolution"} {
		if topic != "cluster:consensus" {
			c.Join(topic, nil)
		}
		if status, res := c.Ask(topic, "register_agent", map[string]any{"id": "x"}); status != "error" || !strings.Contains(fmt.Sprint(res["reason"]), "server") {
			t.Errorf("%s: %s %v", topic, status, res)
		}
	}
	var failing atomic.Bool
	w.FS.Before = func(s journaltest.Step) error {
		if failing.Load() && (s.Op == "sync" || s.Op == "truncate") {
			return syscall.EIO
		}
		return nil
	}
	failing.Store(true)
	if _, rerr := call(t, w, g, "agent.spawn", map[string]any{}); rerr == nil || rerr.Code != -32001 || rerr.Message != "bridge_unavailable" {
		t.Errorf("%v", rerr)
	}
	w.Plane.Tick()
	if m := c.Until(func(m wiretest.Message) bool { return strings.HasPrefix(m.Event, "quorum_") }); m.Event != "quorum_lost" || m.Payload["node_count"] != float64(1) {
		t.Errorf("%+v", m)
	}
	if st, _ := call(t, w, g, "cluster.status", map[string]any{}); st["state"] != "no_quorum" {
		t.Errorf("%v", st)
	}
	failing.Store(false)
	if _, rerr := call(t, w, g, "agent.spawn", map[string]any{}); rerr != nil {
		t.Errorf("%v", rerr)
	}
	w.Plane.Tick()
	if m := c.Until(func(m wiretest.Message) bool { return strings.HasPrefix(m.Event, "quorum_") }); m.Event != "quorum_restored" {
		t.Errorf("%+v", m)
	}
}

// W-21, W-34…W-37, W-57: a kernel attaches, beats, advertises and keeps its agents;
// another device cannot speak for it.
func TestKernels(t *testing.T) {
	w := wiretest.New(t)
	kernel, watcher := w.Enrol("server2", auth.KernelAttach), w.Enrol("phone", auth.AgentsRead)
	other := w.Enrol("other", auth.KernelAttach)
	look := w.Connect(watcher, false, true)
	if status, _ := look.Ask("kernel:k2", "phx_join", nil); status != "error" {
		t.Error("a kernel that nobody knows")
	}
	look.Join("kernel:k1", nil)
	w.Plane.Tick()
	if m := look.Read(); m.Event != "heartbeat" || m.Payload["kernel_id"] != "k1" || m.Payload["memory_count"] != float64(0) || m.Payload["entropy"] != float64(0) || m.Payload["agent_count"] != float64(0) || m.Payload["drift_score"] != float64(0) {
		t.Errorf("%+v", m)
	}
	k := w.Connect(kernel, true, true)
	k.Join("kernel:k2", nil)
	look.Join("kernel:k2", nil)
	look.Join("agent:lobby", nil)
	if status, res := k.Ask("kernel:k2", "heartbeat", map[string]any{"type": "heartbeat", "agent_count": 3, "entropy": 0.5, "drift_score": 0.25, "memory_count": 9}); status != "ok" {
		t.Error(res)
	}
	if m := look.Until(func(m wiretest.Message) bool { return m.Topic == "kernel:k2" }); m.Event != "heartbeat" || m.Payload["agent_count"] != float64(3) || m.Payload["kernel_id"] != "k2" || m.Payload["entropy"] != 0.5 {
		t.Errorf("%+v", m)
	}
	status, res := k.Ask("kernel:k2", "advertise_capabilities", map[string]any{"type": "advertise_capabilities", "skills": []string{"sum", "add", "sum"}})
	if status != "ok" || fmt.Sprint(res["registered"]) != "[add sum]" {
		t.Error(status, res)
	}
	list, _ := call(t, w, watcher, "kernel.list", map[string]any{})
	text := fmt.Sprint(list)
	if !strings.Contains(text, "kernel_id:k1") || !strings.Contains(text, "capabilities:[add sum]") || !strings.Contains(text, "status:connected") {
		t.Errorf("%v", text)
	}
	// Its agents.
	if status, res := k.Ask("kernel:k2", "register_agent", map[string]any{"type": "register_agent", "id": "a1", "kernel_id": "k2", "skill": "sum", "status": "idle", "meta": map[string]any{"x": 1}}); status != "ok" || res["raft_log_index"].(float64) < 1 {
		t.Error(status, res)
	}
	if status, res := k.Ask("kernel:k2", "update_agent", map[string]any{"id": "a1", "status": "running", "context_patch": map[string]any{"step": 1}}); status != "ok" {
		t.Error(res)
	}
	got, rerr := call(t, w, watcher, "agent.get", map[string]any{"id": "a1"})
	if rerr != nil || got["status"] != "running" || fmt.Sprint(got["context"]) != "map[step:1]" {
		t.Error(got, rerr)
	}
	for name, push := range map[string][2]any{
		"status":         {"update_agent", map[string]any{"id": "a1", "status": "dancing"}},
		"unknown":        {"update_agent", map[string]any{"id": "a2", "status": "idle"}},
		"no id":          {"register_agent", map[string]any{"skill": "x"}},
		"another kernel": {"register_agent", map[string]any{"id": "a3", "kernel_id": "k1"}},
		"negative":       {"heartbeat", map[string]any{"agent_count": -1}},
		"no skill":       {"advertise_capabilities", map[string]any{"skills": []string{""}}},
		"many skills":    {"advertise_capabilities", map[string]any{"skills": strings.Split(strings.Repeat("x,", 3), ",")}},
		"nonsense":       {"dance", map[string]any{}},
		"more":           {"kill_agent", map[string]any{"id": "a1", "force": true}},
		"large":          {"update_agent", map[string]any{"id": "a1", "status": "idle", "context_patch": map[string]any{"x": strings.Repeat("x", 17<<10)}}},
		"nobody waits":   {"skill_result", map[string]any{"request_id": "x", "result": 1}},
	} {
		if status, _ := k.Ask("kernel:k2", push[0].(string), push[1]); status != "error" {
			t.Errorf("%s: %s", name, status)
		}
	}
	// R14: others may not speak for it, nor for this kernel, nor take its agents.
	o := w.Connect(other, false, true)
	if status, res := o.Ask("kernel:k2", "phx_join", nil); status != "error" {
		t.Error(res)
	}
	o.Join("kernel:k3", nil)
	for _, push := range []map[string]any{{"id": "a1"}, {"id": "a1", "kernel_id": "k3", "skill": "x"}} {
		if status, _ := o.Ask("kernel:k3", map[bool]string{true: "kill_agent", false: "register_agent"}[len(push) == 1], push); status != "error" {
			t.Errorf("%v is taken", push)
		}
	}
	if status, _ := look.Ask("kernel:k1", "heartbeat", map[string]any{}); status != "error" {
		t.Error("a watcher beats")
	}
	// Attaching again on the same connection is no detachment, whatever comes first.
	for range 20 {
		k.Join("kernel:k2", nil)
		if status, res := k.Ask("kernel:k2", "heartbeat", map[string]any{"agent_count": 1}); status != "ok" {
			t.Fatal(res)
		}
	}
	time.Sleep(20 * time.Millisecond)
	if status, res := k.Ask("kernel:k2", "heartbeat", map[string]any{"agent_count": 1}); status != "ok" {
		t.Error(res)
	}
	// It goes; it is another device's never.
	_ = k.WS.Close()
	if m := look.Until(func(m wiretest.Message) bool { return m.Event == "bridge_disconnected" }); m.Payload["kernel_id"] != "k2" || m.Payload["type"] != "bridge_disconnected" {
		t.Errorf("%+v", m)
	}
	if status, _ := o.Ask("kernel:k2", "phx_join", nil); status != "error" {
		t.Error("another device takes the kernel over")
	}
	k = w.Connect(kernel, true, true)
	k.Join("kernel:k2", nil)
	if m := look.Until(func(m wiretest.Message) bool { return m.Event == "bridge_connected" }); m.Payload["kernel_id"] != "k2" {
		t.Errorf("%+v", m)
	}
}

// W-37, W-40, W-41: skills go to whoever has them, and dead letters to the lobby.
func TestSkills(t *testing.T) {
	w := wiretest.New(t)
	w.Exports = []string{"local"}
	w.Invoke = func(_ context.Context, actor, skill string, payload json.RawMessage) (json.RawMessage, error) {
		if strings.Contains(string(payload), "fail") {
			return nil, errors.New("it cannot be done")
		}
		return json.RawMessage(fmt.Sprintf(`{"by":%q,"skill":%q,"got":%s}`, actor, skill, payload)), nil
	}
	kernel, g := w.Enrol("server2", auth.KernelAttach), w.Enrol("phone", auth.SkillsInvoke, auth.AgentsRead)
	look := w.Connect(g, false, true)
	look.Join("agent:lobby", nil)
	res, rerr := call(t, w, g, "skill.invoke", map[string]any{"skill": "local", "payload": map[string]any{"n": 9007199254740993}})
	if rerr != nil || res["handler_id"] != "k1" || res["skill"] != "local" || !strings.Contains(fmt.Sprint(res["result"]), "by:device:phone") {
		t.Error(res, rerr)
	}
	dead := func(reason string) map[string]any {
		t.Helper()
		m := look.Until(func(m wiretest.Message) bool { return m.Event == "skill_error" })
		if m.Topic != "agent:lobby" || m.Payload["reason"] != reason || m.Payload["type"] != "skill_error" || m.Payload["handler_id"] == "" || m.Payload["ts"] == nil {
			t.Errorf("%+v, want %s", m, reason)
		}
		return m.Payload
	}
	if _, rerr := call(t, w, g, "skill.invoke", map[string]any{"skill": "nope", "request_id": "r1"}); rerr == nil || rerr.Code != -32602 || rerr.Message != "No handler for skill: nope" {
		t.Error(rerr)
	}
	if p := dead("handler_unavailable"); p["request_id"] != "r1" {
		t.Error(p)
	}
	if _, rerr := call(t, w, g, "skill.invoke", map[string]any{"skill": "local", "payload": map[string]any{"fail": 1}}); rerr == nil || rerr.Code != -32006 || rerr.Message != "it cannot be done" {
		t.Error(rerr)
	}
	for _, ms := range []int{-1, 60_001} {
		if _, rerr := call(t, w, g, "skill.invoke", map[string]any{"skill": "local", "timeout_ms": ms}); rerr == nil || rerr.Code != -32602 {
			t.Error(ms, rerr)
		}
	}
	// Another kernel's.
	k := w.Connect(kernel, true, true)
	k.Join("kernel:k2", nil)
	if status, _ := k.Ask("kernel:k2", "advertise_capabilities", map[string]any{"skills": []string{"far"}}); status != "ok" {
		t.Fatal(status)
	}
	serve := func(answer func(m wiretest.Message)) chan struct{} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			answer(k.Until(func(m wiretest.Message) bool { return m.Event == "skill_invoke" }))
		}()
		return done
	}
	done := serve(func(m wiretest.Message) {
		if m.Payload["skill"] != "far" || m.Payload["actor"] != "phone" || m.Payload["timeout_ms"] != float64(30_000) {
			t.Errorf("%+v", m)
		}
		k.Post(nil, "r", "kernel:k2", "skill_result", map[string]any{"type": "skill_result", "request_id": m.Payload["request_id"], "result": map[string]any{"done": true}})
	})
	res, rerr = call(t, w, g, "skill.invoke", map[string]any{"skill": "far"})
	<-done
	if rerr != nil || res["handler_id"] != "k2" || fmt.Sprint(res["result"]) != "map[done:true]" {
		t.Error(res, rerr)
	}
	done = serve(func(wiretest.Message) {})
	if _, rerr = call(t, w, g, "skill.invoke", map[string]any{"skill": "far", "timeout_ms": 50}); rerr == nil || rerr.Code != -32004 {
		t.Error(rerr)
	}
	<-done
	if p := dead("timeout"); p["handler_id"] != "k2" {
		t.Error(p)
	}
	done = serve(func(wiretest.Message) { _ = k.WS.Close() })
	if _, rerr = call(t, w, g, "skill.invoke", map[string]any{"skill": "far"}); rerr == nil || rerr.Code != -32001 {
		t.Error(rerr)
	}
	<-done
	dead("handler_unavailable")
	if _, rerr = call(t, w, g, "skill.invoke", map[string]any{"skill": "far"}); rerr == nil || rerr.Code != -32602 { // it has gone
		t.Error(rerr)
	}
	dead("handler_unavailable")
	// Sixty in a minute; others are not concerned (LD-04).
	limited := 0
	for range 70 {
		if _, rerr := call(t, w, g, "skill.invoke", map[string]any{"skill": "local"}); rerr != nil && rerr.Code == -32005 {
			limited++
		}
	}
	if limited < 10 || limited > 20 {
		t.Errorf("%d of 70 were limited", limited)
	}
	dead("rate_limited")
	if _, rerr := call(t, w, w.Enrol("second", auth.SkillsInvoke, auth.AgentsRead), "skill.invoke", map[string]any{"skill": "local"}); rerr != nil {
		t.Error(rerr)
	}
}

// W-23, W-42, W-43: a skill that does well is promoted, one that does no more is
// demoted, by what was measured; who joins later can read it.
func TestEvolution(t *testing.T) {
	w := wiretest.New(t)
	w.Exports = []string{"s"}
	var fail atomic.Bool
	w.Invoke = func(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
		if fail.Load() {
			return nil, errors.New("no")
		}
		return json.RawMessage("1"), nil
	}
	c := w.Connect(w.Enrol("phone", auth.AgentsRead), false, true)
	first := c.Join("skill:evolution", nil)
	n := 0
	invoke := func(times int) {
		for range times {
			n++
			g := auth.LocalOwner
			if _, err := w.Plane.Invoke(t.Context(), g, invocation("s")); (err != nil) != fail.Load() && n <= 60 {
				t.Fatal(err)
			}
		}
	}
	invoke(25)
	m := c.Read()
	if m.Event != "skill_promoted" || m.Payload["skill_id"] != "s" || m.Payload["skill_name"] != "s" || m.Payload["originating_kernel"] != "k1" || m.Payload["fitness_score"].(float64) < 0.9 {
		t.Errorf("%+v", m)
	}
	fail.Store(true)
	invoke(30)
	m = c.Read()
	if m.Event != "skill_demoted" || m.Payload["skill_id"] != "s" || m.Payload["reason"] == "" {
		t.Errorf("%+v", m)
	}
	late := w.Connect(w.Enrol("late", auth.AgentsRead), true, false)
	cur := first["cursor"].(map[string]any)
	late.Join("skill:evolution", map[string]any{"since": cur["seq"], "epoch": cur["epoch"]})
	for _, want := range []string{"skill_promoted", "skill_demoted"} {
		if m := late.Read(); m.Event != want {
			t.Errorf("%+v, want %s", m, want)
		}
	}
}

// W-24: what this kernel remembers can be asked for.
func TestMemory(t *testing.T) {
	w := wiretest.New(t)
	g := w.Enrol("phone", auth.MemoryRead)
	c := w.Connect(g, false, true)
	for _, topic := range []string{"memory:query", "memory:shared"} {
		c.Join(topic, nil)
		status, res := c.Ask(topic, "memory_query", map[string]any{"query": "anything", "k": 3})
		if _, ok := res["hits"]; status != "ok" || !ok || res["kernel_id"] != "k1" {
			t.Errorf("%s %v", status, res)
		}
	}
	for name, payload := range map[string]any{"empty": map[string]any{}, "many": map[string]any{"query": "x", "k": 51}, "unknown": map[string]any{"q": "x"}} {
		if status, _ := c.Ask("memory:query", "memory_query", payload); status != "error" {
			t.Errorf("%s: %s", name, status)
		}
	}
	if status, _ := c.Ask("memory:query", "forget", map[string]any{}); status != "error" {
		t.Error("an unknown event")
	}
}

// Presence: the lobby hears when a device comes and goes; its second connection is
// no news.
func TestPresence(t *testing.T) {
	w := wiretest.New(t)
	look := w.Connect(w.Enrol("watcher", auth.AgentsRead), false, true)
	look.Join("agent:lobby", nil)
	g := w.Enrol("phone", auth.AgentsRead)
	one, two := w.Connect(g, false, true), w.Connect(g, false, true)
	if m := look.Read(); m.Event != "presence_join" || m.Payload["device_id"] != "phone" {
		t.Errorf("%+v", m)
	}
	if res := two.Join("agent:lobby", nil); fmt.Sprint(res["present"]) != "[phone watcher]" {
		t.Errorf("%v", res)
	}
	_ = one.WS.Close()
	_ = two.WS.Close()
	if m := look.Read(); m.Event != "presence_leave" || m.Payload["device_id"] != "phone" {
		t.Errorf("%+v", m)
	}
}

func invocation(skill string) rpc.Invocation { return rpc.Invocation{Skill: skill} }
