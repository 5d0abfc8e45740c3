//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// perEntry is how many indexes of the lobby an entry of the log has (docs/WIRE.md).
const perEntry = 1_000_000

// Times of a dashboard.
const (
	beatEvery = 10 * time.Second // its heartbeats
	silent    = 45 * time.Second // without any message, its connection counts as lost
	backAfter = 100 * time.Millisecond
)

// sight holds one event of the lobby that a dashboard saw, or the place that a join began at.
type sight struct {
	Index int64  // of the lobby
	Event string // "" for a join that did not continue from an earlier place
	ID    string // of the agent
}

// dashboard is connected to a node and follows agent:lobby. When its connection ends it comes back with
// the place that it has.
type dashboard struct {
	m *machine

	mu    sync.Mutex
	epoch string
	at    int64
	saw   []sight
	joins int
}

// follow follows the lobby until ctx ends.
func (d *dashboard) follow(ctx context.Context) {
	for ctx.Err() == nil {
		_ = d.once(ctx) // whatever ends a connection, it comes back
		select {
		case <-time.After(backAfter):
		case <-ctx.Done():
		}
	}
}

// frame is a message at vsn 2.0.0.
type frame struct {
	Ref     *string
	Event   string
	Payload json.RawMessage
}

// UnmarshalJSON implements [json.Unmarshaler].
func (f *frame) UnmarshalJSON(raw []byte) error {
	var joinRef, topic any
	return json.Unmarshal(raw, &[]any{&joinRef, &f.Ref, &topic, &f.Event, &f.Payload})
}

func (d *dashboard) once(ctx context.Context) error {
	dialer := websocket.Dialer{HandshakeTimeout: 2 * time.Second, NetDialContext: d.m.overSocket}
	ws, resp, err := dialer.DialContext(ctx, "ws://"+d.m.addr+"/api/live?vsn=2.0.0", http.Header{})
	if err != nil {
		if resp != nil {
			err = errors.Join(err, resp.Body.Close())
		}
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var job sync.WaitGroup
	defer job.Wait()
	defer cancel()
	say := func(text string) error { return ws.WriteMessage(websocket.TextMessage, []byte(text)) }
	if err := say(d.join()); err != nil {
		return errors.Join(err, ws.Close())
	}
	job.Go(func() {
		defer func() { _ = ws.Close() }()
		beat := time.NewTicker(beatEvery)
		defer beat.Stop()
		for {
			select {
			case <-beat.C:
				if say(`[null,"beat","phoenix","heartbeat",{}]`) != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	})
	for {
		if err := ws.SetReadDeadline(time.Now().Add(silent)); err != nil {
			return err
		}
		_, raw, err := ws.ReadMessage()
		if err != nil {
			return err
		}
		if raw[0] != '[' {
			continue // auth_ok
		}
		var f frame
		if err := json.Unmarshal(raw, &f); err != nil {
			return err
		}
		if err := d.take(f); err != nil {
			return err
		}
	}
}

// join returns the message that joins the lobby, where the dashboard was.
func (d *dashboard) join() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	payload := "{}"
	if d.epoch != "" {
		payload = fmt.Sprintf(`{"since":%d,"epoch":%q}`, d.at, d.epoch)
	}
	return `["join","join","agent:lobby","phx_join",` + payload + `]`
}

// take takes a message.
func (d *dashboard) take(f frame) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch f.Event {
	case "phx_error", "phx_close":
		return errors.New("the join has ended")
	case "phx_reply":
		if f.Ref == nil || *f.Ref != "join" {
			return nil
		}
		var reply struct {
			Status   string `json:"status"`
			Response struct {
				Cursor struct {
					Epoch string `json:"epoch"`
					Seq   int64  `json:"seq"`
				} `json:"cursor"`
				Resync string `json:"resync"`
			} `json:"response"`
		}
		if err := json.Unmarshal(f.Payload, &reply); err != nil {
			return err
		}
		if reply.Status != "ok" {
			return errors.New("the join was refused")
		}
		d.joins++
		if at := reply.Response.Cursor; d.epoch == "" || reply.Response.Resync != "" {
			d.epoch, d.at = at.Epoch, at.Seq
			d.saw = append(d.saw, sight{Index: at.Seq})
		}
	case "register_agent", "update_agent", "kill_agent":
		var e struct {
			Index int64  `json:"raft_log_index"`
			ID    string `json:"id"`
		}
		if err := json.Unmarshal(f.Payload, &e); err != nil {
			return err
		}
		d.saw, d.at = append(d.saw, sight{e.Index, f.Event, e.ID}), e.Index
	}
	return nil
}

// reached reports whether the dashboard has seen up to an index.
func (d *dashboard) reached(index int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.epoch != "" && d.at >= index
}

// seen returns what the dashboard saw, and how often it joined.
func (d *dashboard) seen() ([]sight, int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.saw), d.joins
}

// lobbyEvent returns the event of the lobby that an entry makes, "" for none.
func lobbyEvent(e entry) string {
	switch e.Event {
	case "agent_registered":
		return "register_agent"
	case "agent_killed":
		return "kill_agent"
	}
	return ""
}

// newestInLobby is the index of the last event that entries make in the lobby.
func newestInLobby(log []entry) (index int64) {
	for _, e := range log {
		if lobbyEvent(e) != "" {
			index = e.Index * perEntry
		}
	}
	return index
}

// checkLobby holds what a dashboard saw against the log: each change of agents behind the place where
// it began comes once, in the order of its index, and nothing comes that is not in the log.
func checkLobby(who string, saw []sight, log []entry) (found []string) {
	want := map[int64]sight{} // by index
	for _, e := range log {
		if event := lobbyEvent(e); event != "" {
			want[e.Index*perEntry] = sight{e.Index * perEntry, event, e.Target}
		}
	}
	last := int64(-1)
	got := map[int64]bool{}
	for i, s := range saw {
		if s.Event == "" { // it begins here, and has what was before
			for index := range want {
				if index <= s.Index && (i == 0 || index > last) {
					got[index] = true
				}
			}
			last = s.Index
			continue
		}
		if s.Index <= last {
			found = append(found, fmt.Sprintf("a dashboard on %s saw %s of %s at %d behind %d", who, s.Event, s.ID, s.Index, last))
		}
		last = s.Index
		if s.Event == "update_agent" {
			continue
		}
		if want[s.Index] != s {
			found = append(found, fmt.Sprintf("a dashboard on %s saw %s of %s at %d, which is not in the log", who, s.Event, s.ID, s.Index))
		}
		got[s.Index] = true
	}
	for index, s := range want {
		if !got[index] {
			found = append(found, fmt.Sprintf("a dashboard on %s did not see %s of %s at %d", who, s.Event, s.ID, index))
		}
	}
	return found
}

// agent spawns an agent on a node and kills it. Dashboards hear of both.
func (l *load) agent(ctx context.Context, m *machine) {
	l.do(ctx, op{Kind: kindAgent, Node: m.i}, func(ctx context.Context) (outcome, error) {
		var made struct{ ID string }
		if err := m.rpc(ctx, "agent.spawn", map[string]any{}, &made); err != nil {
			return unknown, err
		}
		if err := m.rpc(ctx, "agent.kill", map[string]any{"id": made.ID, "reason": "the bench"}, nil); err != nil {
			return unknown, err
		}
		return ok, nil
	})
}

// rpc has the machine's user call a method.
func (m *machine) rpc(ctx context.Context, method string, params, out any) error {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+m.addr+"/rpc", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := m.local.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	var answer struct{ Result, Error json.RawMessage }
	if err := json.Unmarshal(raw, &answer); err != nil || resp.StatusCode != http.StatusOK || answer.Error != nil {
		return errors.Join(fmt.Errorf("%s: %s %.200s", method, resp.Status, raw), err)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer.Result, out)
}
