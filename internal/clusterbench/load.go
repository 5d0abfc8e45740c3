//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Kinds of operations.
const (
	kindToken       = "create a token"
	kindTokenRevoke = "revoke a token"
	kindInvite      = "invite"
	kindEnroll      = "enroll"
	kindRefresh     = "refresh"
	kindRevoke      = "revoke"
	kindCall        = "call with a token"
	kindOwnCall     = "call as the user"
	kindRead        = "read the cluster"
	kindAgent       = "spawn and kill an agent"
	kindSay         = "say something to an agent"
)

// load are the clients of a cluster, with their history.
type load struct {
	r     *round
	seed  uint64
	group sync.WaitGroup

	mu          sync.Mutex
	ops         []op
	revocations []revocation
	tokens      []string // that are to be revoked
	count       int
}

func newLoad(r *round, seed uint64) *load { return &load{r: r, seed: seed} }

func (l *load) wait() { l.group.Wait() }

// next returns a name that nothing has had.
func (l *load) next(what string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	return fmt.Sprint(what, "-", l.count)
}

// worker does something again and again, until going ends, with random numbers of its own.
func (l *load) worker(going context.Context, pause time.Duration, do func(rng *mathrand.Rand)) {
	l.count++
	rng := mathrand.New(mathrand.NewPCG(l.seed, uint64(1+l.count))) //nolint:gosec // to be repeated
	l.group.Go(func() {
		for going.Err() == nil {
			do(rng)
			select {
			case <-time.After(pause):
			case <-going.Done():
			}
		}
	})
}

// begin starts the clients. They begin nothing more when going ends; what they have begun then has
// its time, so that an outcome is never unknown because the round is over.
func (l *load) begin(ctx, going context.Context) {
	for _, m := range l.r.m {
		l.worker(going, 50*time.Millisecond, func(*mathrand.Rand) { l.makeToken(ctx, m) })
		l.worker(going, 50*time.Millisecond, func(rng *mathrand.Rand) { l.revokeToken(ctx, l.any(rng)) })
		l.worker(going, 50*time.Millisecond, func(*mathrand.Rand) {
			var c cluster
			o := l.timed(ctx, op{Kind: kindRead, Node: m.i}, func(ctx context.Context) (_ outcome, err error) {
				c, err = m.cluster(ctx)
				return answered(err), err
			})
			o.Index = c.Status.Index
			l.record(o)
		})
		for kind, token := range map[string]string{kindCall: l.r.token, kindOwnCall: ""} {
			c := newCaller(m, token)
			l.worker(going, 20*time.Millisecond, func(*mathrand.Rand) {
				l.do(ctx, op{Kind: kind, Node: m.i}, func(ctx context.Context) (outcome, error) {
					err := c.call(ctx, l.next("text"))
					return answered(err), err
				})
			})
		}
		l.worker(going, 100*time.Millisecond, func(*mathrand.Rand) { l.agent(ctx, m) })
		l.worker(going, sayEvery, func(rng *mathrand.Rand) { l.say(ctx, m, rng) })
		l.worker(going, 100*time.Millisecond, func(rng *mathrand.Rand) { l.device(ctx, going, rng) })
	}
}

func answered(err error) outcome {
	if err != nil {
		return failed
	}
	return ok
}

// patience is how long a client waits for an answer. It is longer than yaya tries to write.
const patience = 9 * time.Second

// do runs an operation and records it.
func (l *load) do(ctx context.Context, o op, f func(context.Context) (outcome, error)) op {
	o = l.timed(ctx, o, f)
	l.record(o)
	return o
}

// timed runs an operation.
func (l *load) timed(ctx context.Context, o op, f func(context.Context) (outcome, error)) op {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	o.Begin = l.r.now()
	var err error
	o.Outcome, err = f(ctx)
	o.End = l.r.now()
	if err != nil {
		o.Why = fmt.Sprintf("%.300s", err.Error())
	}
	return o
}

func (l *load) record(o op) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ops = append(l.ops, o)
}

// change sends a change to a node, and reads from an error whether the change may have been made.
func change(ctx context.Context, m *machine, method, path, token string, body any) (outcome, []byte, error) {
	status, raw, err := m.ask(ctx, method, path, token, body)
	switch {
	case err != nil:
		return unknown, nil, err
	case status < 300:
		return ok, raw, nil
	}
	err = fmt.Errorf("%d %.200s", status, raw)
	device := strings.HasPrefix(path, "/auth/") // strangers are not told why
	if status >= 500 && (status != http.StatusServiceUnavailable || device || bytes.Contains(raw, []byte("nobody has said whether"))) {
		return unknown, nil, err
	}
	return failed, nil, err
}

func (l *load) any(rng *mathrand.Rand) *machine { return l.r.m[rng.IntN(len(l.r.m))] }

// mostTokens are left to revokers, so that yaya's limit of tokens is never met.
const mostTokens = 50

// makeToken makes a lasting token on a node. While this fails, the node takes no changes.
func (l *load) makeToken(ctx context.Context, m *machine) {
	name := l.next("token")
	made := l.do(ctx, op{Kind: kindToken, Node: m.i, Key: "token_created/" + name}, func(ctx context.Context) (outcome, error) {
		out, _, err := change(ctx, m, http.MethodPost, "/api/tokens", "", map[string]any{"name": name})
		return out, err
	})
	if made.Outcome != ok {
		return
	}
	l.mu.Lock()
	l.tokens = append(l.tokens, name)
	many := len(l.tokens) > mostTokens
	l.mu.Unlock()
	if many { // the revokers wait for nodes that do not answer
		l.revokeToken(ctx, m)
	}
}

// revokeToken revokes the oldest token on a node.
func (l *load) revokeToken(ctx context.Context, m *machine) {
	l.mu.Lock()
	if len(l.tokens) == 0 {
		l.mu.Unlock()
		return
	}
	name := l.tokens[0]
	l.tokens = l.tokens[1:]
	l.mu.Unlock()
	l.do(ctx, op{Kind: kindTokenRevoke, Node: m.i, Key: "token_revoked/" + name}, func(ctx context.Context) (outcome, error) {
		out, _, err := change(ctx, m, http.MethodDelete, "/api/tokens/"+name, "", nil)
		return out, err
	})
}

// device is one that enrolls with a code, refreshes its token on all nodes, and is revoked. Two
// devices try the same code, and the same token is refreshed on two nodes at the same time.
func (l *load) device(ctx, going context.Context, rng *mathrand.Rand) {
	at := l.any(rng)
	label := l.next("invitation")
	var code string
	l.do(ctx, op{Kind: kindInvite, Node: at.i, Key: "device_invited/" + label}, func(ctx context.Context) (outcome, error) {
		out, raw, err := change(ctx, at, http.MethodPost, "/api/devices/invite", "", map[string]any{"label": label, "scopes": []string{"default", "tools:call"}})
		if out == ok {
			var made struct{ Code string }
			err = json.Unmarshal(raw, &made)
			code = made.Code
		}
		return out, err
	})
	if code == "" {
		return
	}
	var both sync.WaitGroup
	var ids, tokens [2]string
	for n := range ids {
		m := l.any(rng)
		ids[n] = l.next("device")
		both.Go(func() { tokens[n] = l.enroll(ctx, m, ids[n], code) })
	}
	both.Wait()
	for n, token := range tokens {
		if token == "" {
			continue
		}
		for range 3 {
			if going.Err() != nil {
				return
			}
			token = l.refresh(ctx, rng, token)
		}
		l.revoke(ctx, going, l.any(rng), ids[n], token)
	}
}

// enroll returns the token of a device, "" if it has none. A node that does not know a code yet is
// asked again.
func (l *load) enroll(ctx context.Context, m *machine, id, code string) (token string) {
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return ""
	}
	l.do(ctx, op{Kind: kindEnroll, Node: m.i, Key: "device_enrolled/" + id}, func(ctx context.Context) (out outcome, err error) {
		for range 3 {
			var raw []byte
			out, raw, err = change(ctx, m, http.MethodPost, "/auth/register", "", map[string]any{"public_key": base64.StdEncoding.EncodeToString(public), "device_id": id, "label": id, "code": code})
			if out == ok {
				token, err = tokenOf(raw)
			}
			if out != failed || l.r.wait(ctx, 50*time.Millisecond) != nil {
				break
			}
		}
		return out, err
	})
	return token
}

// refresh refreshes a token on two nodes at the same time, and returns the token that is good then.
func (l *load) refresh(ctx context.Context, rng *mathrand.Rand, token string) string {
	previous, err := tokenID(token)
	if err != nil {
		return token
	}
	var got [2]string
	var both sync.WaitGroup
	for n := range got {
		m := l.any(rng)
		both.Go(func() {
			o := l.timed(ctx, op{Kind: kindRefresh, Node: m.i, Key: "device_token_issued/" + previous}, func(ctx context.Context) (outcome, error) {
				out, raw, err := change(ctx, m, http.MethodPost, "/auth/refresh", token, nil)
				if out == ok {
					got[n], err = tokenOf(raw)
				}
				return out, err
			})
			if id, err := tokenID(got[n]); err == nil {
				o.ID = id
			}
			l.record(o)
		})
	}
	both.Wait()
	for _, t := range got {
		if t != "" {
			return t
		}
	}
	return token
}

func tokenOf(raw []byte) (string, error) {
	var a struct {
		Token string `json:"device_token"`
	}
	err := json.Unmarshal(raw, &a)
	if err == nil && a.Token == "" {
		err = errors.New("an answer without a token")
	}
	return a.Token, err
}

// tokenID is the id in a token.
func tokenID(token string) (string, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", errors.New("a token of a device has three parts")
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	var c struct {
		ID string `json:"jti"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	return c.ID, err
}

// revoke revokes a device, and asks each node with its token until it is refused.
func (l *load) revoke(ctx, going context.Context, at *machine, id, token string) {
	status, _, err := l.ping(ctx, at, token)
	if err != nil || !admits(status) { // it would prove nothing that the token is refused afterwards
		return
	}
	done := l.do(ctx, op{Kind: kindRevoke, Node: at.i, Key: "device_revoked/" + id}, func(ctx context.Context) (outcome, error) {
		out, _, err := change(ctx, at, http.MethodPost, "/api/devices/"+id+"/revoke", "", map[string]any{})
		return out, err
	})
	if done.Outcome != ok {
		return
	}
	l.group.Go(func() {
		rev := revocation{device: id, acked: done.End}
		var all sync.WaitGroup
		for i, m := range l.r.m {
			all.Go(func() { rev.last[i] = l.admitted(ctx, going, m, token) })
		}
		all.Wait()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.revocations = append(l.revocations, rev)
	})
}

// ping asks a node with a token.
func (l *load) ping(ctx context.Context, m *machine, token string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return m.ask(ctx, http.MethodPost, "/mcp", token, map[string]any{"jsonrpc": "2.0", "id": 1, "method": "ping"})
}

// admits reports whether a status comes from a node that has accepted a token.
func admits(status int) bool {
	return status != http.StatusUnauthorized && status != http.StatusServiceUnavailable && status != http.StatusTooManyRequests
}

// admitted asks a node with a token until it is refused for good, and returns when the last request
// began that it served, 0 for none.
func (l *load) admitted(ctx, going context.Context, m *machine, token string) (last time.Duration) {
	for pause := 20 * time.Millisecond; ; pause = min(pause*11/10, 200*time.Millisecond) {
		begin := l.r.now()
		status, _, err := l.ping(ctx, m, token)
		switch {
		case err == nil && status == http.StatusUnauthorized:
			return last
		case err == nil && admits(status):
			last = begin
		}
		if l.r.wait(going, pause) != nil {
			return last
		}
	}
}
