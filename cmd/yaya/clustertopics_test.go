package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/yaya-ai/yaya/gateway/client"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// agentWatch holds the events of an agent that a client has got.
type agentWatch struct {
	mu     sync.Mutex
	events []client.Event
	joins  int
	closed error
}

func (w *agentWatch) join(c *client.Client, id string, since *client.Cursor) *client.Channel {
	return c.Join("agent:"+id, client.Join{
		Since: since,
		OnEvent: func(e client.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, e)
		},
		OnJoined: func(json.RawMessage, bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.joins++
		},
		OnClosed: func(err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.closed = err
		},
	})
}

// until waits for an event.
func (w *agentWatch) until(t *testing.T, name string, n int) (last client.Event) {
	t.Helper()
	eventually.True(t, fmt.Sprintf("event %d of %s comes", n, name), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		left := n
		for _, e := range w.events {
			if e.Name == name {
				if left--; left == 0 {
					last = e
					return true
				}
			}
		}
		return false
	})
	return last
}

// W-20, CL-09: a device that is connected to one node watches an agent of another one, speaks to it,
// answers its asks, and ends with its rights.
func TestClusterTopics(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	all, _ := newCluster(t, n)
	north, south, west := all[0], all[1], all[2]
	ws := south.workspace()
	south.patches(map[string]string{"change": numbered})
	id := south.turn(ws, "begin")
	code := south.invite("default", "approvals:answer", "agents:kill")
	north.knows(south.box)
	creds, err := north.enrolls("dashboard", code)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		b.knows(north.box)
	}
	c := client.Start(client.Options{Credentials: creds})
	defer c.Close()
	w := new(agentWatch)
	ch := w.join(c, id, &client.Cursor{})
	if err := ch.Joined(t.Context()); err != nil {
		t.Fatalf("a join of an agent of another node: %v", err)
	}
	w.until(t, "turn.completed", 1) // from the beginning
	if err := ch.Push(t.Context(), "message", map[string]any{"content": "change it", "id": "m1"}, nil); err != nil {
		t.Fatal(err)
	}
	var ask struct {
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(w.until(t, "approval.request", 1).Payload, &ask); err != nil {
		t.Fatal(err)
	}
	if err := ch.Push(t.Context(), "approval", map[string]any{"request_id": ask.Data.ID, "response": "approve"}, nil); err != nil {
		t.Fatal(err)
	}
	w.until(t, "turn.completed", 2)
	w.until(t, "stream_end", 1)
	if got, err := os.ReadFile(filepath.Join(ws, "a.txt")); err != nil || string(got) != "1\ntwo\n" {
		t.Errorf("the file is %q, %v, want it changed", got, err)
	}
	w.mu.Lock()
	for i, seq := 0, int64(0); i < len(w.events); i++ {
		if at := w.events[i].Cursor; at != nil {
			if at.Seq <= seq {
				t.Errorf("event %d comes after %d", at.Seq, seq)
			}
			seq = at.Seq
		}
	}
	w.mu.Unlock()
	for i, b := range all {
		for _, m := range b.cluster().Members {
			if len(m.Devices) > 0 && m.Name != "north" {
				t.Errorf("%s: the dashboard is connected to %s, want to north alone", nodeNames[i], m.Name)
			}
		}
	}
	west.must("device", "revoke", "dashboard")
	eventually.True(t, "the connection ends on both nodes", func() bool {
		return strings.Contains(south.metric("yaya_passed_websockets"), " 0") && len(north.cluster().Present) == 0
	})
	if err := ch.Push(t.Context(), "message", map[string]any{"content": "again"}, nil); err == nil {
		t.Error("a device that was revoked speaks to an agent")
	}
}

// metric returns the line of a metric.
func (b *box) metric(name string) string {
	b.t.Helper()
	_, raw, _ := b.raw("GET", "/metrics", "")
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, name+" ") {
			return line
		}
	}
	b.t.Fatalf("there is no metric %s", name)
	return ""
}

// W-3, W-60, WS-25: the npm client, unmodified, watches an agent of another node, is told when that node
// goes, joins again by itself when it is back, and goes on without a gap.
func TestClusterPhoenixClient(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	n := newNATS(t)
	all, _ := newCluster(t, n)
	north, south := all[0], all[1]
	// A device may speak to agents in folders that it may use; its own has none.
	pad := south.device("pad", "default")
	status, raw, _ := south.raw("POST", "/rpc", `{"jsonrpc":"2.0","id":1,"method":"agent.spawn","params":{}}`, "Content-Type", "application/json", "Authorization", "Bearer "+pad.Token)
	var spawned struct{ Result struct{ ID string } }
	if err := json.Unmarshal(raw, &spawned); err != nil || spawned.Result.ID == "" {
		t.Fatalf("agent.spawn on south: %d %s, %v", status, raw, err)
	}
	code := south.invite("default")
	north.knows(south.box)
	cmd := exec.CommandContext(t.Context(), node, "../../examples/phoenix/watch.mjs", "http://"+north.addr, code, npmModule(t, "phoenix-1-8-16", "priv", "static", "phoenix.mjs"), spawned.Result.ID)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var seqs []int64
	until := func(what string, want func(line) bool) {
		t.Helper()
		for lines.Scan() {
			var l line
			if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
				t.Fatalf("watch.mjs prints %q, %v; want JSON", lines.Text(), err)
			}
			if l.Seq > 0 {
				seqs = append(seqs, l.Seq)
			}
			if want(l) {
				return
			}
		}
		t.Fatalf("%s does not come", what)
	}
	turn := func(say string) {
		t.Helper()
		if _, err := io.WriteString(in, say+"\n"); err != nil {
			t.Fatal(err)
		}
		until("the end of the turn", func(l line) bool { return l.Event == "turn.completed" })
	}
	until("the join", func(l line) bool { return l.Did == "joined" })
	turn("one")
	end(t, south.p)
	until("a refusal while the node is gone", func(l line) bool { return l.Did == "refused" })
	south.p = south.serve()
	until("the next join", func(l line) bool { return l.Did == "joined" && l.Resync == nil })
	turn("two")
	for i := 1; i < len(seqs); i++ {
		if seqs[i] <= seqs[i-1] {
			t.Errorf("%d comes after %d", seqs[i], seqs[i-1])
		}
	}
	if _, err := io.WriteString(in, "quit\n"); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("watch.mjs ends with %v, want no error", err)
	}
}
