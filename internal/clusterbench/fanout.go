//go:build linux

package main

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// fanOutTimes is how many changes are measured.
	fanOutTimes = 30
	// ofOne is how many connections of one principal a node takes at least.
	ofOne = 250
)

// fanOut measures how long a change of one node takes until the last one of many dashboards has it, which are
// spread over three nodes: fanout [-yaya FILE] [-subscribers N].
func fanOut(args []string) error {
	flags := flag.NewFlagSet("fanout", flag.ContinueOnError)
	yaya, many := flags.String("yaya", "bin/yaya", "the binary to run"), flags.Int("subscribers", 10_000, "dashboards, on three nodes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return withCluster(*yaya, func(ctx context.Context, r *round) (err error) {
		c := &crowd{came: map[string]*arrivals{}, of: *many}
		defer c.end()
		for i := range *many {
			if i%(len(r.m)*ofOne) == 0 {
				if err := c.enroll(ctx, r.m[0], fmt.Sprint("crowd-", i)); err != nil {
					return err
				}
			}
			var last error
			if err := until(ctx, fmt.Sprintf("dashboard %d joins", i), func() bool { // its node may not know the device yet
				last = c.join(ctx, r.m[i%len(r.m)])
				return last == nil
			}); err != nil {
				return errors.Join(err, last)
			}
		}
		var took []time.Duration
		for i := range fanOutTimes {
			d, err := c.spawn(ctx, r.m[i%len(r.m)])
			if err != nil {
				return err
			}
			took = append(took, d)
		}
		slices.Sort(took)
		fmt.Printf("%d dashboards on three nodes, %d changes: the last one had a change after %v (median), %v (the slowest)\n",
			*many, fanOutTimes, took[len(took)/2].Round(time.Millisecond/10), took[len(took)-1].Round(time.Millisecond/10))
		return nil
	})
}

// crowd are many dashboards that follow agent:lobby.
type crowd struct {
	of    int
	token string // of the device of the next dashboards
	key   ed25519.PrivateKey
	conns []*websocket.Conn
	work  sync.WaitGroup

	mu   sync.Mutex
	came map[string]*arrivals // by the id of the agent
}

// arrivals are how many dashboards have heard of an agent, and when the last one of all had.
type arrivals struct {
	n    int
	last time.Time
	all  chan struct{}
}

func (c *crowd) agent(id string) *arrivals {
	a := c.came[id]
	if a == nil {
		a = &arrivals{all: make(chan struct{})}
		c.came[id] = a
	}
	return a
}

// enroll makes the device of the next dashboards.
func (c *crowd) enroll(ctx context.Context, m *machine, id string) error {
	status, raw, err := m.ask(ctx, http.MethodPost, "/api/devices/invite", "", map[string]any{"label": id, "scopes": []string{"default"}})
	var made struct{ Code string }
	if err == nil {
		err = json.Unmarshal(raw, &made)
	}
	if err != nil {
		return fmt.Errorf("an invitation: %d %.200s: %w", status, raw, err)
	}
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}
	if status, raw, err = m.ask(ctx, http.MethodPost, "/auth/register", "", map[string]any{"public_key": public, "device_id": id, "label": id, "code": made.Code}); err != nil {
		return err
	}
	c.key = key
	if status != http.StatusOK {
		return fmt.Errorf("a device: %d %.200s", status, raw)
	}
	c.token, err = tokenOf(raw)
	return err
}

// join connects another dashboard, and waits until it has joined.
func (c *crowd) join(ctx context.Context, m *machine) error {
	dialer := websocket.Dialer{HandshakeTimeout: 10 * time.Second, NetDialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return dialLoopback(ctx, addr) }, ReadBufferSize: 1 << 10, WriteBufferSize: 1 << 10}
	ws, resp, err := dialer.DialContext(ctx, "ws://"+m.addr+"/ws?vsn=2.0.0", nil)
	if err != nil {
		if resp != nil {
			err = errors.Join(err, resp.Body.Close())
		}
		return err
	}
	c.conns = append(c.conns, ws)
	var asked struct{ Challenge []byte }
	if err := ws.ReadJSON(&asked); err != nil {
		return err
	}
	if err := ws.WriteJSON(map[string]any{"type": "auth", "device_token": c.token, "challenge_sig": ed25519.Sign(c.key, asked.Challenge)}); err != nil {
		return err
	}
	if err := ws.WriteMessage(websocket.TextMessage, []byte(`["join","join","agent:lobby","phx_join",{}]`)); err != nil {
		return err
	}
	for {
		_, raw, err := ws.ReadMessage()
		if err != nil {
			return err
		}
		if strings.Contains(string(raw), `"phx_reply"`) {
			break
		}
	}
	c.work.Go(func() {
		for {
			_, raw, err := ws.ReadMessage()
			if err != nil {
				return
			}
			c.heard(raw)
		}
	})
	return nil
}

func (c *crowd) heard(raw []byte) {
	now := time.Now()
	var f frame
	var e struct{ ID string }
	if raw[0] != '[' || json.Unmarshal(raw, &f) != nil || f.Event != "register_agent" || json.Unmarshal(f.Payload, &e) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.agent(e.ID)
	if a.n++; a.n == c.of {
		a.last = now
		close(a.all)
	}
}

// spawn makes an agent on a node, and returns how long it took until every dashboard knew.
func (c *crowd) spawn(ctx context.Context, m *machine) (time.Duration, error) {
	begun := time.Now()
	var made struct{ ID string }
	if err := m.rpc(ctx, "agent.spawn", map[string]any{}, &made); err != nil {
		return 0, err
	}
	c.mu.Lock()
	a := c.agent(made.ID)
	c.mu.Unlock()
	select {
	case <-a.all:
	case <-time.After(30 * time.Second):
		c.mu.Lock()
		defer c.mu.Unlock()
		return 0, fmt.Errorf("%d of %d dashboards heard of the agent", a.n, c.of)
	}
	return a.last.Sub(begun), m.rpc(ctx, "agent.kill", map[string]any{"id": made.ID, "reason": "the bench"}, nil)
}

func (c *crowd) end() {
	for _, ws := range c.conns {
		_ = ws.Close()
	}
	c.work.Wait()
}
