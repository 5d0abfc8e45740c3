package plane_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/plane"
	"github.com/yaya-ai/yaya/gateway/wire/wiretest"
	"github.com/yaya-ai/yaya/internal/journal/journaltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// W-19, W-26, W-29…W-33, W-50, W-51, W-53…W-55: agents are spawned, change, and are
// killed; the lobby sees it, /agents and agent.get show it, the log keeps it.
func TestAgents(t *testing.T) {
	w := wiretest.New(t)
	g := w.Enroll("phone")
	c := w.Connect(g, true, true)
	joined := c.Join("agent:lobby", map[string]any{})
	if fmt.Sprint(joined["agents"]) != "<nil>" && len(joined["agents"].([]any)) != 0 || fmt.Sprint(joined["present"]) != "[phone]" {
		t.Errorf("got %v, want no agents, and phone present", joined)
	}
	res, rerr := w.Call(g, "agent.spawn", map[string]any{"skill": "review", "context": map[string]any{"prompt": "hello"}})
	if rerr != nil {
		t.Fatalf("got %v, want no error", rerr)
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
		if p["type"] != m.Event || p["id"] != id || p["raft_log_index"].(float64) < last {
			t.Fatalf("got %+v, want type %v, id %v, raft_log_index at least %v", m, m.Event, id, last)
		}
		last = p["raft_log_index"].(float64)
		switch m.Event {
		case "register_agent":
			if p["kernel_id"] != "k1" || p["skill"] != "review" || p["status"] != "idle" || p["meta"].(map[string]any)["spawned_by"] != "phone" {
				t.Errorf(`got %+v, want kernel_id "k1", skill "review", status "idle", spawned_by "phone"`, m)
			}
			statuses = append(statuses, "registered")
		case "update_agent":
			if _, ok := p["context_patch"].(map[string]any); !ok {
				t.Errorf("got %+v, want ok", m)
			}
			statuses = append(statuses, p["status"])
		default:
			t.Fatalf("got %+v, want register_agent or update_agent", m)
		}
		if _, err := time.Parse(time.RFC3339, p["ts"].(string)); err != nil {
			t.Errorf("ts is %v: %v, want a time in RFC 3339", p["ts"], err)
		}
	}
	if status, body := w.Get(g, "/agents"); status != 200 || !strings.Contains(body, `"id":"`+id+`"`) {
		t.Errorf("got %d %s, want status 200, %q in it", status, body, `"id":"`+id+`"`)
	}
	if status, body := w.Get(g, "/agents/"+id); status != 200 || !strings.Contains(body, `"status":"idle"`) {
		t.Errorf("got %d %s, want status 200, %q in it", status, body, `"status":"idle"`)
	}
	if status, _ := w.Get(g, "/agents/nobody"); status != 404 {
		t.Errorf("an unknown agent: %d", status)
	}
	got, rerr := w.Call(g, "agent.get", map[string]any{"id": id})
	if rerr != nil || got["skill"] != "review" || got["raft_log_index"] != last {
		t.Errorf(`got %v %v, want skill "review", raft_log_index %v`, got, rerr, last)
	}
	if _, rerr := w.Call(g, "agent.get", map[string]any{"id": "nobody"}); rerr == nil || rerr.Code != -32002 {
		t.Errorf("got %v, want an error, Code %v", rerr, -32002)
	}
	// It outlives the process; a client that comes back is told what it has missed.
	cursor := joined["cursor"].(map[string]any)
	addr := w.HTTP.Listener.Addr().String()
	w.Stop()
	w.Start(addr)
	c = w.Connect(g, false, false)
	again := c.Join("agent:lobby", map[string]any{"since": cursor["seq"], "epoch": cursor["epoch"]})
	if again["resync"] != nil || again["agents"] != nil {
		t.Errorf("got %v, want no resync, no agents", again)
	}
	for _, want := range []string{"register_agent", "update_agent"} {
		if m := c.Until(func(m wiretest.Message) bool { return m.Event != "presence_join" }); m.Event != want || m.Payload["id"] != id {
			t.Errorf("want %s: %+v", want, m)
		}
	}
	if res := c.Join("agent:lobby", map[string]any{"since": 1, "epoch": "another"}); res["resync"] != "epoch" || len(res["agents"].([]any)) != 1 {
		t.Errorf(`got %v, want resync "epoch", len(agents) 1`, res)
	}
	if _, rerr := w.Call(g, "agent.kill", map[string]any{"id": id, "reason": "enough"}); rerr != nil {
		t.Fatalf("got %v, want no error", rerr)
	}
	if m := c.Until(func(m wiretest.Message) bool { return m.Event == "kill_agent" }); m.Payload["id"] != id || m.Payload["reason"] != "enough" {
		t.Errorf(`got %+v, want id %v, reason "enough"`, m, id)
	}
	if _, rerr := w.Call(g, "agent.kill", map[string]any{"id": id}); rerr == nil || rerr.Code != -32002 {
		t.Errorf("killed twice: %v", rerr)
	}
	// OP-36, REL-7: turns write no entries; at the end of a day, and of yaya, one counts
	// what they have changed.
	counted, err := control.AuditLog(t.Context(), w.Log, control.Query{Event: "agent_update*"})
	if err != nil || len(counted) != 1 || counted[0].Target != "k1" || !strings.Contains(string(counted[0].Payload), `"statuses":{"idle":1,"running":1}`) {
		t.Errorf("got %v, %v, want one entry that counts the updates of k1", counted, err)
	}
	// W-44, W-45, W-46: the audit names the actor, with the index.
	audit, err := control.AuditLog(t.Context(), w.Log, control.Query{Target: id})
	if err != nil || len(audit) != 2 {
		t.Fatalf("got %v %v, want len(audit) 2", audit, err)
	}
	if audit[0].Actor != "phone" || audit[0].Event != "agent_registered" || audit[1].Event != "agent_killed" || audit[1].Index <= audit[0].Index {
		t.Errorf(`got %+v, want audit[0].Actor "phone", audit[0].Event "agent_registered", audit[1].Event "agent_killed", audit[1].Index more than %v`, audit, audit[0].Index)
	}
}

// W-22, W-38, W-39, W-56, W-28: the topics name the leader, report failing writes,
// and let clients only listen.
func TestConsensus(t *testing.T) {
	w := wiretest.New(t)
	g := w.Enroll("phone")
	c := w.Connect(g, false, true)
	res := c.Join("cluster:consensus", nil)
	m := c.Read()
	if m.Event != "leader_elected" || m.Payload["node"] != res["leader"] || m.Payload["term"] != res["term"] || res["quorum"] != true || res["node_count"] != float64(1) {
		t.Errorf("got %v and %+v, want a leader_elected with the node and the term of the former, and a quorum of one", res, m)
	}
	c.Join("cluster:main", nil) // another name of it
	for _, topic := range []string{"agent:lobby", "cluster:consensus", "skill:evolution"} {
		if topic != "cluster:consensus" {
			c.Join(topic, nil)
		}
		if status, res := c.Ask(topic, "register_agent", map[string]any{"id": "x"}); status != "error" || !strings.Contains(fmt.Sprint(res["reason"]), "server") {
			t.Errorf(`%s: got %s %v, want status "error", reason with "server"`, topic, status, res)
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
	if _, rerr := w.Call(g, "agent.spawn", map[string]any{}); rerr == nil || rerr.Code != -32001 || rerr.Message != "bridge_unavailable" {
		t.Errorf(`got %v, want an error, Code %v, Message "bridge_unavailable"`, rerr, -32001)
	}
	w.Plane.Tick()
	if m := c.Until(func(m wiretest.Message) bool { return strings.HasPrefix(m.Event, "quorum_") }); m.Event != "quorum_lost" || m.Payload["node_count"] != float64(1) {
		t.Errorf("got %+v, want a quorum_lost with a node_count of 1", m)
	}
	if st, _ := w.Call(g, "cluster.status", map[string]any{}); st["state"] != "no_quorum" {
		t.Errorf(`got %v, want state "no_quorum"`, st)
	}
	failing.Store(false)
	if _, rerr := w.Call(g, "agent.spawn", map[string]any{}); rerr != nil {
		t.Errorf("got %v, want no error", rerr)
	}
	w.Plane.Tick()
	if m := c.Until(func(m wiretest.Message) bool { return strings.HasPrefix(m.Event, "quorum_") }); m.Event != "quorum_restored" {
		t.Errorf(`got %+v, want Event "quorum_restored"`, m)
	}
}

// W-21, W-34…W-37, W-57: a kernel attaches, beats, advertises and keeps its agents;
// another device cannot speak for it.
func TestKernels(t *testing.T) {
	w := wiretest.New(t)
	kernel, watcher := w.Enroll("server2", auth.KernelAttach), w.Enroll("phone", auth.AgentsRead)
	other := w.Enroll("other", auth.KernelAttach)
	look := w.Connect(watcher, false, true)
	if status, _ := look.Ask("kernel:k2", "phx_join", nil); status != "error" {
		t.Error("a kernel that nobody knows")
	}
	look.Join("kernel:k1", nil)
	w.Plane.Tick()
	if m := look.Read(); m.Event != "heartbeat" || m.Payload["kernel_id"] != "k1" || m.Payload["memory_count"] != float64(0) || m.Payload["entropy"] != float64(0) || m.Payload["agent_count"] != float64(0) || m.Payload["drift_score"] != float64(0) {
		t.Errorf("got %+v, want a heartbeat of k1 with zeros", m)
	}
	k := w.Connect(kernel, true, true)
	k.Join("kernel:k2", nil)
	look.Join("kernel:k2", nil)
	look.Join("agent:lobby", nil)
	if status, res := k.Ask("kernel:k2", "heartbeat", map[string]any{"type": "heartbeat", "agent_count": 3, "entropy": 0.5, "drift_score": 0.25, "memory_count": 9}); status != "ok" {
		t.Errorf(`got %v, want status "ok"`, res)
	}
	if m := look.Until(func(m wiretest.Message) bool { return m.Topic == "kernel:k2" }); m.Event != "heartbeat" || m.Payload["agent_count"] != float64(3) || m.Payload["kernel_id"] != "k2" || m.Payload["entropy"] != 0.5 {
		t.Errorf("got %+v, want a heartbeat of k2 with 3 agents and an entropy of 0.5", m)
	}
	status, res := k.Ask("kernel:k2", "advertise_capabilities", map[string]any{"type": "advertise_capabilities", "skills": []string{"sum", "add", "sum"}})
	if status != "ok" || fmt.Sprint(res["registered"]) != "[add sum]" {
		t.Errorf(`got %v, %v, want status "ok", registered "[add sum]"`, status, res)
	}
	list, _ := w.Call(watcher, "kernel.list", map[string]any{})
	text := fmt.Sprint(list)
	if !strings.Contains(text, "kernel_id:k1") || !strings.Contains(text, "capabilities:[add sum]") || !strings.Contains(text, "status:connected") {
		t.Errorf(`got %v, want "kernel_id:k1" in it, "capabilities:[add sum]" in it, "status:connected" in it`, text)
	}
	// Its agents.
	if status, res := k.Ask("kernel:k2", "register_agent", map[string]any{"type": "register_agent", "id": "a1", "kernel_id": "k2", "skill": "sum", "status": "idle", "meta": map[string]any{"x": 1}}); status != "ok" || res["raft_log_index"].(float64) < 1 {
		t.Errorf(`got %v, %v, want status "ok", raft_log_index at least 1`, status, res)
	}
	if status, res := k.Ask("kernel:k2", "update_agent", map[string]any{"id": "a1", "status": "running", "context_patch": map[string]any{"step": 1}}); status != "ok" {
		t.Errorf(`got %v, want status "ok"`, res)
	}
	got, rerr := w.Call(watcher, "agent.get", map[string]any{"id": "a1"})
	if rerr != nil || got["status"] != "running" || fmt.Sprint(got["context"]) != "map[step:1]" {
		t.Errorf(`got %v, %v, want status "running", context "map[step:1]"`, got, rerr)
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
			t.Errorf(`%s: got %s, want "error"`, name, status)
		}
	}
	// R14: others may not speak for it, nor for this kernel, nor take its agents.
	o := w.Connect(other, false, true)
	if status, res := o.Ask("kernel:k2", "phx_join", nil); status != "error" {
		t.Errorf(`got %v, want status "error"`, res)
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
	// Attaching again on the same connection does not detach the kernel, whatever comes first.
	for range 20 {
		k.Join("kernel:k2", nil)
		if status, res := k.Ask("kernel:k2", "heartbeat", map[string]any{"agent_count": 1}); status != "ok" {
			t.Fatalf(`got %v, want status "ok"`, res)
		}
	}
	time.Sleep(20 * time.Millisecond)
	if status, res := k.Ask("kernel:k2", "heartbeat", map[string]any{"agent_count": 1}); status != "ok" {
		t.Errorf(`got %v, want status "ok"`, res)
	}
	// It goes; it is another device's never.
	_ = k.WS.Close()
	if m := look.Until(func(m wiretest.Message) bool { return m.Event == "bridge_disconnected" }); m.Payload["kernel_id"] != "k2" || m.Payload["type"] != "bridge_disconnected" {
		t.Errorf(`got %+v, want kernel_id "k2", type "bridge_disconnected"`, m)
	}
	if status, _ := o.Ask("kernel:k2", "phx_join", nil); status != "error" {
		t.Error("another device takes the kernel over")
	}
	k = w.Connect(kernel, true, true)
	k.Join("kernel:k2", nil)
	if m := look.Until(func(m wiretest.Message) bool { return m.Event == "bridge_connected" }); m.Payload["kernel_id"] != "k2" {
		t.Errorf(`got %+v, want kernel_id "k2"`, m)
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
	kernel, g := w.Enroll("server2", auth.KernelAttach), w.Enroll("phone", auth.SkillsInvoke, auth.AgentsRead)
	look := w.Connect(g, false, true)
	look.Join("agent:lobby", nil)
	res, rerr := w.Call(g, "skill.invoke", map[string]any{"skill": "local", "payload": map[string]any{"n": 9007199254740993}})
	if rerr != nil || res["handler_id"] != "k1" || res["skill"] != "local" || !strings.Contains(fmt.Sprint(res["result"]), "by:device:phone") {
		t.Errorf(`got %v, %v, want handler_id "k1", skill "local", result with "by:device:phone"`, res, rerr)
	}
	dead := func(reason string) map[string]any {
		t.Helper()
		m := look.Until(func(m wiretest.Message) bool { return m.Event == "skill_error" })
		if m.Topic != "agent:lobby" || m.Payload["reason"] != reason || m.Payload["type"] != "skill_error" || m.Payload["handler_id"] == "" || m.Payload["ts"] == nil {
			t.Errorf("%+v, want %s", m, reason)
		}
		return m.Payload
	}
	if _, rerr := w.Call(g, "skill.invoke", map[string]any{"skill": "nope", "request_id": "r1"}); rerr == nil || rerr.Code != -32602 || rerr.Message != "No handler for skill: nope" {
		t.Errorf(`got %v, want an error, Code %v, Message "No handler for skill: nope"`, rerr, -32602)
	}
	if p := dead("handler_unavailable"); p["request_id"] != "r1" {
		t.Errorf(`got %v, want request_id "r1"`, p)
	}
	if _, rerr := w.Call(g, "skill.invoke", map[string]any{"skill": "local", "payload": map[string]any{"fail": 1}}); rerr == nil || rerr.Code != -32006 || rerr.Message != "it cannot be done" {
		t.Errorf(`got %v, want an error, Code %v, Message "it cannot be done"`, rerr, -32006)
	}
	for _, ms := range []int{-1, 60_001} {
		if _, rerr := w.Call(g, "skill.invoke", map[string]any{"skill": "local", "timeout_ms": ms}); rerr == nil || rerr.Code != -32602 {
			t.Errorf("got %v, %v, want an error, Code %v", ms, rerr, -32602)
		}
	}
	// Another kernel's.
	k := w.Connect(kernel, true, true)
	k.Join("kernel:k2", nil)
	if status, _ := k.Ask("kernel:k2", "advertise_capabilities", map[string]any{"skills": []string{"far"}}); status != "ok" {
		t.Fatalf(`got %q, want "ok"`, status)
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
			t.Errorf("got %+v, want the skill far, the actor phone and a timeout of 30000 ms", m)
		}
		k.Post(nil, "r", "kernel:k2", "skill_result", map[string]any{"type": "skill_result", "request_id": m.Payload["request_id"], "result": map[string]any{"done": true}})
	})
	res, rerr = w.Call(g, "skill.invoke", map[string]any{"skill": "far"})
	<-done
	if rerr != nil || res["handler_id"] != "k2" || fmt.Sprint(res["result"]) != "map[done:true]" {
		t.Errorf(`got %v, %v, want handler_id "k2", result "map[done:true]"`, res, rerr)
	}
	done = serve(func(wiretest.Message) {})
	if _, rerr = w.Call(g, "skill.invoke", map[string]any{"skill": "far", "timeout_ms": 50}); rerr == nil || rerr.Code != -32004 {
		t.Errorf("got %v, want an error, Code %v", rerr, -32004)
	}
	<-done
	if p := dead("timeout"); p["handler_id"] != "k2" {
		t.Errorf(`got %v, want handler_id "k2"`, p)
	}
	done = serve(func(wiretest.Message) { _ = k.WS.Close() })
	if _, rerr = w.Call(g, "skill.invoke", map[string]any{"skill": "far"}); rerr == nil || rerr.Code != -32001 {
		t.Errorf("got %v, want an error, Code %v", rerr, -32001)
	}
	<-done
	dead("handler_unavailable")
	if _, rerr = w.Call(g, "skill.invoke", map[string]any{"skill": "far"}); rerr == nil || rerr.Code != -32602 { // it has gone
		t.Errorf("got %v, want an error, Code %v", rerr, -32602)
	}
	dead("handler_unavailable")
	// Sixty in a minute; others are not concerned (LD-04).
	limited := 0
	for range 70 {
		if _, rerr := w.Call(g, "skill.invoke", map[string]any{"skill": "local"}); rerr != nil && rerr.Code == -32005 {
			limited++
		}
	}
	if limited < 10 || limited > 20 {
		t.Errorf("%d of 70 were limited", limited)
	}
	dead("rate_limited")
	if _, rerr := w.Call(w.Enroll("second", auth.SkillsInvoke, auth.AgentsRead), "skill.invoke", map[string]any{"skill": "local"}); rerr != nil {
		t.Errorf("got %v, want no error", rerr)
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
	c := w.Connect(w.Enroll("phone", auth.AgentsRead), false, true)
	first := c.Join("skill:evolution", nil)
	n := 0
	invoke := func(times int) {
		for range times {
			n++
			g := auth.LocalOwner
			if _, err := w.Plane.Invoke(t.Context(), g, invocation("s")); (err != nil) != fail.Load() && n <= 60 {
				t.Fatalf("Invoke = %v, want an error: %v", err, fail.Load())
			}
		}
	}
	invoke(25)
	m := c.Read()
	if m.Event != "skill_promoted" || m.Payload["skill_id"] != "s" || m.Payload["skill_name"] != "s" || m.Payload["originating_kernel"] != "k1" || m.Payload["fitness_score"].(float64) < 0.9 {
		t.Errorf(`got %+v, want Event "skill_promoted", skill_id "s", skill_name "s", originating_kernel "k1", fitness_score at least 0.9`, m)
	}
	fail.Store(true)
	invoke(30)
	m = c.Read()
	if m.Event != "skill_demoted" || m.Payload["skill_id"] != "s" || m.Payload["reason"] == "" {
		t.Errorf(`got %+v, want Event "skill_demoted", skill_id "s", a reason`, m)
	}
	late := w.Connect(w.Enroll("late", auth.AgentsRead), true, false)
	cur := first["cursor"].(map[string]any)
	late.Join("skill:evolution", map[string]any{"since": cur["seq"], "epoch": cur["epoch"]})
	for _, want := range []string{"skill_promoted", "skill_demoted"} {
		if m := late.Read(); m.Event != want {
			t.Errorf("%+v, want %s", m, want)
		}
	}
}

// W-24: clients can query this kernel's memory.
func TestMemory(t *testing.T) {
	w := wiretest.New(t)
	g := w.Enroll("phone", auth.MemoryRead)
	c := w.Connect(g, false, true)
	for _, topic := range []string{"memory:query", "memory:shared"} {
		c.Join(topic, nil)
		status, res := c.Ask(topic, "memory_query", map[string]any{"query": "anything", "k": 3})
		if _, ok := res["hits"]; status != "ok" || !ok || res["kernel_id"] != "k1" {
			t.Errorf(`got %s %v, want status "ok", ok, kernel_id "k1"`, status, res)
		}
	}
	for name, payload := range map[string]any{"empty": map[string]any{}, "many": map[string]any{"query": "x", "k": 51}, "unknown": map[string]any{"q": "x"}} {
		if status, _ := c.Ask("memory:query", "memory_query", payload); status != "error" {
			t.Errorf(`%s: got %s, want "error"`, name, status)
		}
	}
	if status, _ := c.Ask("memory:query", "forget", map[string]any{}); status != "error" {
		t.Error("an unknown event")
	}
}

// Presence: the lobby hears when a device comes and goes, and nothing of its second
// connection.
func TestPresence(t *testing.T) {
	w := wiretest.New(t)
	look := w.Connect(w.Enroll("watcher", auth.AgentsRead), false, true)
	look.Join("agent:lobby", nil)
	g := w.Enroll("phone", auth.AgentsRead)
	one, two := w.Connect(g, false, true), w.Connect(g, false, true)
	if m := look.Read(); m.Event != "presence_join" || m.Payload["device_id"] != "phone" {
		t.Errorf(`got %+v, want Event "presence_join", device_id "phone"`, m)
	}
	if res := two.Join("agent:lobby", nil); fmt.Sprint(res["present"]) != "[phone watcher]" {
		t.Errorf(`got %v, want present "[phone watcher]"`, res)
	}
	_ = one.WS.Close()
	_ = two.WS.Close()
	if m := look.Read(); m.Event != "presence_leave" || m.Payload["device_id"] != "phone" {
		t.Errorf(`got %+v, want Event "presence_leave", device_id "phone"`, m)
	}
}

func invocation(skill string) plane.Invocation { return plane.Invocation{Skill: skill} }
