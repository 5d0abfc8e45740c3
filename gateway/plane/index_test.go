package plane_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/plane"
	"github.com/yaya-ai/yaya/gateway/wire/wiretest"
	"github.com/yaya-ai/yaya/internal/journal/journaltest"
)

// strict is a client of the lobby that takes no change whose index is not above all
// before.
type strict struct {
	t    *testing.T
	c    *wiretest.Client
	last int64
	seen []string // what it got since the join
}

func (s *strict) join(w *wiretest.World, g *wiretest.Gadget, since map[string]any) map[string]any {
	s.t.Helper()
	s.c, s.seen = w.Connect(g, true, true), nil
	return s.c.Join("agent:lobby", since)
}

// until reads up to a change with that index.
func (s *strict) until(index int64) {
	s.t.Helper()
	for s.last < index {
		s.take(s.c.Read())
	}
	if s.last != index {
		s.t.Fatalf("got index %d, want %d", s.last, index)
	}
}

// rest reads what else was sent so far.
func (s *strict) rest() {
	s.t.Helper()
	s.c.Post(nil, "rest", "phoenix", "heartbeat", map[string]any{})
	s.c.Until(func(m wiretest.Message) bool {
		s.take(m)
		return m.Ref == "rest"
	})
}

func (s *strict) take(m wiretest.Message) {
	s.t.Helper()
	raw, ok := m.Payload["raft_log_index"].(float64)
	if m.Topic != "agent:lobby" || !ok {
		return
	}
	at := int64(raw)
	if at <= s.last {
		s.t.Fatalf("%s of %v has index %d after %d", m.Event, m.Payload["id"], at, s.last)
	}
	s.last = at
	s.seen = append(s.seen, fmt.Sprint(m.Event, " ", m.Payload["id"]))
}

// registered attaches kernel k2 and has it register agents.
func registered(t *testing.T, w *wiretest.World, g *wiretest.Gadget, ids ...string) *wiretest.Client {
	t.Helper()
	k := w.Connect(g, false, true)
	k.Join("kernel:k2", nil)
	for _, id := range ids {
		push(t, k, "register_agent", id)
	}
	return k
}

// push changes an agent as its kernel and returns the index of the change.
func push(t *testing.T, k *wiretest.Client, event, id string) int64 {
	t.Helper()
	payload := map[string]any{"id": id}
	if event == "update_agent" {
		payload["status"] = "running"
	}
	status, res := k.Ask("kernel:k2", event, payload)
	if status != "ok" {
		t.Fatalf("%s of %s: status %v, %v; want ok", event, id, status, res)
	}
	return int64(res["raft_log_index"].(float64))
}

// flood has 8 goroutines update an agent each, n times, and returns the highest index.
func flood(t *testing.T, w *wiretest.World, n int) int64 {
	t.Helper()
	var last atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range n {
				at, err := w.Plane.Update(t.Context(), "k2", fmt.Sprint("a", i%2), "running", map[string]any{"i": i})
				if err != nil {
					t.Errorf("Update = %v, want no error", err)
					return
				}
				for was := last.Load(); at > was && !last.CompareAndSwap(was, at); was = last.Load() {
				}
			}
		})
	}
	wg.Wait()
	return last.Load()
}

// W-31: each of 1,664 updates made at once has an index of its own, with entries of the
// log between some of them, and so have those behind the last index of an entry; a
// client that comes back in between gets only higher ones.
func TestEveryUpdateHasItsIndex(t *testing.T) {
	w := wiretest.New(t)
	g := w.Enroll("server2", auth.KernelAttach, auth.AgentsRead)
	s := &strict{t: t}
	joined := s.join(w, g, nil)
	epoch := joined["cursor"].(map[string]any)["epoch"]
	k := registered(t, w, g, "a0", "a1")
	const rounds = 13
	for round := range rounds { // few at once: a client that does not keep up is cut off
		if round == 5 {
			w.Plane.UseUp(3)
		}
		s.until(flood(t, w, 16))
		if round%4 == 3 {
			s.until(push(t, k, "register_agent", fmt.Sprint("b", round)))
		}
		again := &strict{t: t, last: s.last - 20}
		if res := again.join(w, g, map[string]any{"since": again.last, "epoch": epoch}); res["resync"] != nil {
			t.Fatalf("round %d: got %v, want no resync", round, res)
		}
		again.until(s.last)
		_ = again.c.WS.Close()
	}
	if _, body := w.Get(g, "/agents"); !strings.Contains(body, fmt.Sprintf(`"raft_log_index":%d}`, s.last)) {
		t.Errorf("GET /agents = %s, want raft_log_index %d at its end", body, s.last)
	}
	if got, rerr := w.Call(g, "agent.get", map[string]any{"id": "b11"}); rerr != nil || int64(got["raft_log_index"].(float64))%plane.PerEntry != 0 {
		t.Errorf("agent.get = %v, %v, want the index of an entry", got, rerr)
	}
	w.Stop()
	w.Start("")
	if n, entries := updatesCounted(t, w); n != rounds*8*16 || entries < 2 {
		t.Errorf("%d entries count %d updates, want at least 2 and %d", entries, n, rounds*8*16)
	}
}

// updatesCounted returns how many updates the log has counted, and in how many entries.
func updatesCounted(t *testing.T, w *wiretest.World) (n int64, entries int) {
	t.Helper()
	audit, err := control.AuditLog(t.Context(), w.Log, control.Query{Event: "agent_updates_counted"})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range audit {
		var p struct{ Statuses map[string]int64 }
		if err := json.Unmarshal(a.Payload, &p); err != nil {
			t.Fatal(err)
		}
		for _, k := range p.Statuses {
			n += k
		}
	}
	return n, len(audit)
}

// W-31: when the indexes of an entry are used up and the log cannot be written, updates
// are refused with the cause, and none repeats an index; they go on when it can.
func TestNoIndexTwiceOnAFullDisk(t *testing.T) {
	w := wiretest.New(t)
	var failing atomic.Bool
	w.FS.Before = func(s journaltest.Step) error {
		if failing.Load() && (s.Op == "sync" || s.Op == "truncate") {
			return syscall.ENOSPC
		}
		return nil
	}
	g := w.Enroll("server2", auth.KernelAttach, auth.AgentsRead)
	s := &strict{t: t}
	s.join(w, g, nil)
	k := registered(t, w, g, "a0")
	w.Plane.UseUp(1)
	failing.Store(true)
	s.until(push(t, k, "update_agent", "a0"))
	for range 2 {
		status, res := k.Ask("kernel:k2", "update_agent", map[string]any{"id": "a0", "status": "failed"})
		if status != "error" || res["reason"] != "bridge_unavailable" || res["code"] != float64(-32001) {
			t.Errorf(`got %s %v, want the error "bridge_unavailable" with the code -32001`, status, res)
		}
	}
	if _, err := w.Plane.Update(t.Context(), "k2", "a0", "failed", nil); !errors.Is(err, control.ErrUnavailable) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "used up") {
		t.Errorf("got %v, want an error with the cause", err)
	}
	if got, _ := w.Call(g, "agent.get", map[string]any{"id": "a0"}); got["status"] != "running" || int64(got["raft_log_index"].(float64)) != s.last {
		t.Errorf(`got %v, want the status "running" and the index %d`, got, s.last)
	}
	failing.Store(false)
	last := s.last
	s.until(push(t, k, "update_agent", "a0"))
	if s.last/plane.PerEntry <= last/plane.PerEntry {
		t.Errorf("got index %d after %d, want one of a later entry", s.last, last)
	}
	w.Stop()
	w.Start("")
	if n, _ := updatesCounted(t, w); n != 2 {
		t.Errorf("%d updates were counted, want 2", n)
	}
}

// W-31: after a restart, and after kill -9, indexes go on behind those that clients have
// seen, and clients get the present state of the agents.
func TestIndexesGoOnAfterARestart(t *testing.T) {
	for _, name := range []string{"stop", "kill -9"} {
		t.Run(name, func(t *testing.T) {
			w := wiretest.New(t)
			g := w.Enroll("server2", auth.KernelAttach, auth.AgentsRead)
			s := &strict{t: t}
			since := s.join(w, g, nil)["cursor"].(map[string]any)
			registered(t, w, g, "a0", "a1")
			for range 3 { // restarts
				s.until(flood(t, w, 8))
				addr := w.HTTP.Listener.Addr().String()
				left := copied(t, w.Dir)
				w.Stop()
				if name == "kill -9" {
					w.Dir = left // what was on the disk before yaya could end anything
				}
				w.Start(addr)
				if res := s.join(w, g, map[string]any{"since": s.last, "epoch": since["epoch"]}); res["resync"] != nil || res["agents"] != nil {
					t.Fatalf("got %v, want no resync, no agents", res)
				}
				k := registered(t, w, g)
				s.until(push(t, k, "kill_agent", "a1"))
				if got := fmt.Sprint(s.seen); got != "[update_agent a0 update_agent a1 kill_agent a1]" {
					t.Errorf("got %s, want a0 and a1 as they are, and then the end of a1", got)
				}
				if got, rerr := w.Call(g, "agent.get", map[string]any{"id": "a0"}); rerr != nil || got["status"] != "idle" {
					t.Errorf(`agent.get = %v, %v, want the status "idle"`, got, rerr)
				}
				s.until(push(t, k, "register_agent", "a1"))
			}
		})
	}
}

// copied returns a copy of the control log and the keys of a data directory.
func copied(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	err := errors.Join(
		os.CopyFS(filepath.Join(to, "control"), os.DirFS(filepath.Join(dir, "control"))), os.CopyFS(filepath.Join(to, "keys"), os.DirFS(filepath.Join(dir, "keys"))))
	if err == nil {
		err = filepath.WalkDir(to, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Chmod(name, map[bool]fs.FileMode{true: 0o700, false: 0o600}[d.IsDir()])
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// W-31, WS-12: a client that resumes at an update gets the later ones, in the order of the
// indexes; cursors of the earlier numbering get the state.
func TestResumeBehindAnUpdate(t *testing.T) {
	w := wiretest.New(t)
	g := w.Enroll("server2", auth.KernelAttach, auth.AgentsRead)
	s := &strict{t: t}
	epoch := s.join(w, g, nil)["cursor"].(map[string]any)["epoch"]
	k := registered(t, w, g, "a0", "a1", "a2")
	first := push(t, k, "update_agent", "a0")
	push(t, k, "update_agent", "a1")
	push(t, k, "update_agent", "a1")
	push(t, k, "register_agent", "a3")
	push(t, k, "update_agent", "a2")
	last := push(t, k, "kill_agent", "a3")
	s.until(last)
	const rest = "update_agent a1 register_agent a3 update_agent a2 kill_agent a3]"
	for name, tt := range map[string]struct {
		since          int64
		epoch          any
		resync, agents any
		want           string
	}{
		"an update":                     {first, epoch, nil, nil, "[" + rest},
		"the entry before it":           {first - 1, epoch, nil, nil, "[update_agent a0 " + rest},
		"the last change":               {last, epoch, nil, nil, "[]"},
		"an update that is yet to come": {last + 1, epoch, "ahead", 3, "[]"},
		"the earlier numbering":         {w.Plane.Status().Index - 3, w.Dev.ServerID(), "epoch", 3, "[]"},
		"the earlier numbering alone":   {3, nil, nil, nil, "[register_agent a0 register_agent a1 register_agent a2 update_agent a0 " + rest},
	} {
		t.Run(name, func(t *testing.T) {
			s := &strict{t: t, last: tt.since}
			since := map[string]any{"since": tt.since}
			if tt.epoch != nil {
				since["epoch"] = tt.epoch
			}
			res := s.join(w, g, since)
			all, _ := res["agents"].([]any)
			if res["resync"] != tt.resync || (tt.agents != nil) != (len(all) == 3) {
				t.Fatalf("got %v, want resync %v, agents %v", res, tt.resync, tt.agents)
			}
			if tt.want != "[]" {
				s.until(last)
			}
			s.rest()
			if got := fmt.Sprint(s.seen); got != tt.want {
				t.Errorf("got %s\nwant %s", got, tt.want)
			}
		})
	}
}
