package client

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

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/gateway/plane/agents"
)

// Limits and codes that local-only mode promises.
const (
	freshFor     = 500 * time.Millisecond
	maxQueued    = 1000
	firstRetry   = 10 * time.Second
	lastRetry    = 60 * time.Second
	beatEvery    = 15 * time.Second
	codeNoBridge = -32001
	pushTimeout  = 10 * time.Second
)

// UplinkConfig attaches a kernel to a gateway elsewhere.
type UplinkConfig struct {
	Options  Options
	KernelID string
	// Heartbeat is how this kernel is.
	Heartbeat func() agents.Heartbeat
	// Skills returns the skills of this kernel that others may invoke, and Invoke runs one.
	Skills func() []string
	Invoke func(ctx context.Context, actor, skill string, payload json.RawMessage) (json.RawMessage, error)
	// OnKill is called when an agent of this kernel was killed from elsewhere; nil for
	// nobody.
	OnKill func(id, reason string)
	// OnBridge is called for bridge_connected and bridge_disconnected; nil for
	// nobody.
	OnBridge func(agents.BridgeChange)
	// OnAnchored is called with the index of a queued write; nil for
	// nobody.
	OnAnchored func(target string, index int64)
	Log        zerolog.Logger
}

// Uplink is a kernel's place at a gateway elsewhere. While the gateway cannot be
// reached, the kernel is in local-only mode: what it reads comes from what it knew,
// what it writes waits, and what needs the gateway fails with -32001. Its methods
// are safe for concurrent use.
type Uplink struct {
	cfg    UplinkConfig
	client *Client
	agents agents.Set

	ctx    context.Context // a base context: of what the gateway asks for, which comes by callbacks without one
	cancel context.CancelFunc
	work   sync.WaitGroup
	few    zerolog.Logger // for what a gateway could repeat

	mu        sync.Mutex
	kernel    *Channel
	lobby     *Channel
	connected bool // and attached
	contact   time.Time
	reason    error     // why it is not; nil before the first attempt has ended
	since     time.Time // of reason or connected
	said      string    // the last reason that was logged,
	saidAt    time.Time // and when
	asked     time.Time // when the gateway last did not take this kernel
	again     bool      // the connection is dropped to ask again
	queue     []write
	evicted   int64
	flushed   int64
	more      chan struct{} // one fits: there is something to write, or to try again
}

// write is one change of an agent that waits.
type write struct {
	event   string
	target  string
	payload any
}

// Attach begins to attach a kernel, and goes on until Close.
func Attach(cfg UplinkConfig) *Uplink {
	u := &Uplink{cfg: cfg, more: make(chan struct{}, 1), few: cfg.Log.Sample(&zerolog.BurstSampler{Burst: sayMost, Period: sayAgain})}
	u.ctx, u.cancel = context.WithCancel(context.Background())
	o := cfg.Options
	if o.Retry == nil {
		o.Retry = Backoff(firstRetry, lastRetry)
	}
	told := o.OnState
	o.OnState = func(there bool, why error) {
		if there {
			u.offer()
		} else {
			u.lost(why)
		}
		if told != nil {
			told(there, why)
		}
	}
	u.mu.Lock()
	u.client = Start(o)
	u.kernel = u.client.Join("kernel:"+cfg.KernelID, Join{OnEvent: u.onKernel, OnJoined: func(json.RawMessage, bool) { u.attached() }, OnClosed: func(err error) {
		u.lost(fmt.Errorf("%w: %w", errNotTaken, err))
	}})
	u.lobby = u.client.Join("agent:lobby", Join{OnEvent: u.onLobby, OnJoined: u.onSnapshot})
	u.mu.Unlock()
	u.work.Go(u.writer)
	u.work.Go(u.beat)
	return u
}

// Close detaches the kernel. Messages that are still queued are lost, and counted.
func (u *Uplink) Close() {
	u.cancel()
	u.client.Close()
	u.work.Wait()
	u.mu.Lock()
	defer u.mu.Unlock()
	if n := len(u.queue); n > 0 {
		u.cfg.Log.Warn().Int("writes", n).Msg("changes of agents could not be sent to the gateway and are lost")
	}
}

// attached is when the kernel has its place.
func (u *Uplink) attached() {
	now := time.Now()
	u.mu.Lock()
	was := u.connected
	u.connected, u.contact = true, now
	u.reason, u.since, u.said = nil, now, ""
	u.mu.Unlock()
	if !was {
		u.cfg.Log.Info().Str("gateway", u.client.Credentials().URL).Msg("attached to the gateway")
		u.bridge("bridge_connected", now)
	}
	u.wake()
	u.work.Go(u.advertise)
}

func (u *Uplink) bridge(name string, now time.Time) {
	if u.cfg.OnBridge != nil {
		u.cfg.OnBridge(agents.BridgeChange{Type: name, KernelID: u.cfg.KernelID, Time: now.UTC().Format("2006-01-02T15:04:05.000Z")})
	}
}

func (u *Uplink) advertise() {
	ctx, cancel := context.WithTimeout(u.ctx, pushTimeout)
	defer cancel()
	if err := u.kernel.Push(ctx, "advertise_capabilities", map[string]any{"type": "advertise_capabilities", "skills": u.cfg.Skills()}, nil); err != nil && u.ctx.Err() == nil {
		u.cfg.Log.Warn().Err(err).Msg("the gateway was not told what this kernel can do")
	}
	u.heartbeat(ctx)
}

func (u *Uplink) beat() {
	t := time.NewTicker(beatEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			u.retake()
			if u.Connected() {
				ctx, cancel := context.WithTimeout(u.ctx, pushTimeout)
				u.heartbeat(ctx)
				cancel()
			}
		case <-u.ctx.Done():
			return
		}
	}
}

func (u *Uplink) heartbeat(ctx context.Context) {
	h := u.cfg.Heartbeat()
	err := u.kernel.Push(ctx, "heartbeat", map[string]any{
		"type": "heartbeat", "kernel_id": u.cfg.KernelID, "agent_count": h.AgentCount, "entropy": h.Entropy, "drift_score": h.DriftScore, "memory_count": h.MemoryCount,
	}, nil)
	if err != nil && !errors.Is(err, ErrUnavailable) && u.ctx.Err() == nil {
		u.cfg.Log.Warn().Err(err).Msg("a heartbeat was refused")
	}
}

// Connected reports whether the kernel is attached; if not, it is in local-only
// mode.
func (u *Uplink) Connected() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.connected
}

// UplinkStats are counters since the start.
type UplinkStats struct {
	Queued  int   // writes that wait
	Evicted int64 // that were given up because there were too many
	Flushed int64 // that the gateway has taken
}

// Stats returns the counters.
func (u *Uplink) Stats() UplinkStats {
	u.mu.Lock()
	defer u.mu.Unlock()
	return UplinkStats{len(u.queue), u.evicted, u.flushed}
}

// Register, Update and Kill tell the gateway of agents: at once, or when
// it can be reached again, in order. Beyond 1,000 the oldest gives way.
func (u *Uplink) Register(id, skill string, meta map[string]any) {
	u.enqueue(write{"register_agent", id, map[string]any{"type": "register_agent", "id": id, "kernel_id": u.cfg.KernelID, "skill": skill, "status": agents.Idle, "meta": meta}})
}

// Update is described at [Uplink.Register].
func (u *Uplink) Update(id, status string, patch map[string]any) {
	u.enqueue(write{"update_agent", id, map[string]any{"type": "update_agent", "id": id, "status": status, "context_patch": patch}})
}

// Kill is described at [Uplink.Register].
func (u *Uplink) Kill(id, reason string) {
	u.enqueue(write{"kill_agent", id, map[string]any{"type": "kill_agent", "id": id, "reason": reason}})
}

func (u *Uplink) enqueue(w write) {
	u.mu.Lock()
	var evicted int64
	if len(u.queue) >= maxQueued {
		u.queue = slices.Delete(u.queue, 0, 1)
		u.evicted++
		evicted = u.evicted
	}
	u.queue = append(u.queue, w)
	u.mu.Unlock()
	if evicted == 1 || (evicted > 0 && evicted%100 == 0) { // one line for many
		u.cfg.Log.Warn().Int64("evicted", evicted).Msg("the gateway cannot be reached and too many changes wait: the oldest are given up")
	}
	u.wake()
}

func (u *Uplink) wake() {
	select {
	case u.more <- struct{}{}:
	default:
	}
}

// writer sends what is queued, one after the other.
func (u *Uplink) writer() {
	for {
		select {
		case <-u.more:
		case <-u.ctx.Done():
			return
		}
		for u.writeOne() {
		}
	}
}

// writeOne sends the oldest write; false when there is none, or nobody to send it
// to.
func (u *Uplink) writeOne() bool {
	u.mu.Lock()
	if len(u.queue) == 0 || !u.connected {
		u.mu.Unlock()
		return false
	}
	w, before := u.queue[0], u.evicted
	u.mu.Unlock()
	ctx, cancel := context.WithTimeout(u.ctx, pushTimeout)
	defer cancel()
	var res struct {
		Index int64 `json:"raft_log_index"`
	}
	err := u.kernel.Push(ctx, w.event, w.payload, &res)
	if _, refused := errors.AsType[*Refusal](err); err != nil && !refused {
		return false // it waits for the connection: attached wakes us
	}
	u.mu.Lock()
	if u.evicted == before { // else it has been given up meanwhile
		u.queue = slices.Delete(u.queue, 0, 1)
	}
	if err == nil {
		u.flushed++
	}
	u.mu.Unlock()
	if err != nil {
		u.cfg.Log.Warn().Err(err).Str("event", w.event).Str("target", w.target).Msg("the gateway has refused a change of an agent")
	} else if u.cfg.OnAnchored != nil {
		u.cfg.OnAnchored(w.target, res.Index)
	}
	return true
}

// Agents returns all agents of the gateway as far as this kernel knows. fresh is
// false when that is older than 500 ms.
func (u *Uplink) Agents() (all []agents.Agent, fresh bool) {
	u.mu.Lock()
	fresh = u.connected || time.Since(u.contact) < freshFor
	u.mu.Unlock()
	return u.agents.List(), fresh
}

// onSnapshot takes over the state of the lobby.
func (u *Uplink) onSnapshot(response json.RawMessage, resync bool) {
	var r struct {
		Agents []agents.Agent `json:"agents"`
	}
	if json.Unmarshal(response, &r) == nil && (r.Agents != nil || resync) {
		u.agents.Replace(r.Agents)
	}
}

// onLobby keeps the state; the last writer wins.
func (u *Uplink) onLobby(e Event) {
	switch e.Name {
	case "register_agent":
		var m agents.RegisterAgent
		if json.Unmarshal(e.Payload, &m) == nil {
			u.agents.Register(m)
		}
	case "update_agent":
		var m agents.UpdateAgent
		if json.Unmarshal(e.Payload, &m) == nil {
			u.agents.Update(m)
		}
	case "kill_agent":
		var m agents.KillAgent
		if json.Unmarshal(e.Payload, &m) == nil {
			u.agents.Kill(m)
		}
	}
}

// onKernel handles the gateway's requests to this kernel.
func (u *Uplink) onKernel(e Event) {
	switch e.Name {
	case "kill_agent":
		var m agents.KillAgent
		if json.Unmarshal(e.Payload, &m) == nil && u.cfg.OnKill != nil {
			u.cfg.OnKill(m.ID, m.Reason)
		}
	case "skill_invoke":
		var m struct {
			RequestID string          `json:"request_id"`
			Skill     string          `json:"skill"`
			Payload   json.RawMessage `json:"payload"`
			TimeoutMS int64           `json:"timeout_ms"`
			Actor     string          `json:"actor"`
		}
		if json.Unmarshal(e.Payload, &m) != nil || u.ctx.Err() != nil {
			return
		}
		u.work.Go(func() {
			u.invoke(m.RequestID, m.Actor, m.Skill, m.Payload, time.Duration(m.TimeoutMS)*time.Millisecond)
		})
	}
}

func (u *Uplink) invoke(id, actor, skill string, payload json.RawMessage, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(u.ctx, min(max(timeout, time.Second), time.Minute))
	defer cancel()
	answer := map[string]any{"type": "skill_result", "request_id": id}
	if !slices.Contains(u.cfg.Skills(), skill) { // the gateway does not decide what this kernel offers
		answer["error"] = "this kernel does not offer " + skill
	} else if out, err := u.cfg.Invoke(ctx, actor, skill, payload); err != nil {
		answer["error"] = err.Error()
	} else {
		answer["result"] = out
	}
	ctx, cancel = context.WithTimeout(u.ctx, pushTimeout)
	defer cancel()
	if err := u.kernel.Push(ctx, "skill_result", answer, nil); err != nil && u.ctx.Err() == nil {
		u.cfg.Log.Warn().Err(err).Str("skill", skill).Msg("the result of a skill did not reach the gateway")
	}
}

// Call calls a method of the gateway's JSON-RPC. In local-only mode it fails with
// code -32001, bridge_unavailable.
func (u *Uplink) Call(ctx context.Context, method string, params, out any) error {
	if !u.Connected() {
		return &Refusal{Reason: ErrUnavailable.Error(), Code: codeNoBridge}
	}
	creds := u.client.Credentials()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, creds.URL+"/rpc", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+creds.Token)
	h, err := creds.httpClient(u.cfg.Options.HTTP)
	if err != nil {
		return err
	}
	resp, err := h.Do(req)
	if err != nil {
		return &Refusal{Reason: ErrUnavailable.Error(), Code: codeNoBridge}
	}
	defer func() { _ = resp.Body.Close() }()
	var res struct {
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxFrame)).Decode(&res); err != nil {
		return fmt.Errorf("%s: HTTP %s", method, resp.Status)
	}
	if res.Error != nil {
		return &Refusal{Reason: res.Error.Message, Code: res.Error.Code}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(res.Result, out)
}
