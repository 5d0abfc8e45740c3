//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// perNode is how many sessions of agents begin on each node.
const perNode = 2

// Times of clients that talk to agents.
const (
	sayEvery = 150 * time.Millisecond
	sayAgain = time.Second // a client that got no answer says the same again
	sayTries = 5
)

// openSessions begins sessions on each node, in a folder that all machines have.
func (r *round) openSessions(ctx context.Context) error {
	dir := filepath.Join(r.g.dir, "work")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, m := range r.m {
		for range perNode {
			status, raw, err := m.ask(ctx, http.MethodPost, "/v1/sessions", "", map[string]any{"workspace_path": dir})
			if err == nil && status != http.StatusCreated {
				err = fmt.Errorf("POST /v1/sessions on %s: %d %.200s", m.name, status, raw)
			}
			if err != nil {
				return err
			}
			var made struct {
				ID string `json:"session_id"`
			}
			if err := json.Unmarshal(raw, &made); err != nil {
				return err
			}
			r.sessions = append(r.sessions, made.ID)
		}
	}
	return nil
}

// say says something in a session, through a node. A client that does not know whether it was taken says it
// again, with the same id, through any node.
func (l *load) say(ctx context.Context, m *machine, rng *mathrand.Rand) {
	session, text := l.r.sessions[rng.IntN(len(l.r.sessions))], l.next("said")
	o := op{Kind: kindSay, Node: m.i, Session: session, Text: text, Begin: l.r.now(), Outcome: failed}
	for try := range sayTries {
		if try > 0 {
			m = l.any(rng)
			if l.r.wait(ctx, sayAgain) != nil {
				break
			}
		}
		got := l.timed(ctx, op{}, func(ctx context.Context) (outcome, error) {
			status, raw, err := m.ask(ctx, http.MethodPost, "/v1/sessions/"+session+"/messages", "", map[string]any{
				"role": "user", "id": text, "delivery": "queue", "parts": []any{map[string]any{"type": "text", "text": text}},
			})
			switch {
			case err != nil:
				return unknown, err
			case status == http.StatusAccepted || status == http.StatusOK:
				return ok, nil
			case status >= 500 || status == http.StatusTooManyRequests:
				return unknown, fmt.Errorf("%s: %d %.200s", m.name, status, raw)
			}
			return failed, fmt.Errorf("%s: %d %.200s", m.name, status, raw)
		})
		if o.Why = got.Why; got.Outcome != failed {
			o.Outcome = got.Outcome
		}
		if got.Outcome != unknown {
			break
		}
	}
	o.End = l.r.now()
	l.record(o)
}

// said returns what users have said in a session, as a node tells, the first message first.
func (m *machine) said(ctx context.Context, session string) (all []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for before := int64(0); ; {
		status, raw, err := m.ask(ctx, http.MethodGet, fmt.Sprintf("/v1/sessions/%s/messages?limit=200&before=%d", session, before), "", nil)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("the messages of %s on %s: %d %.200s", session, m.name, status, raw)
		}
		if err != nil {
			return nil, err
		}
		var page struct {
			Messages []struct {
				Role  string
				Parts []struct{ Text string }
			}
			Before int64
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, err
		}
		for _, x := range page.Messages {
			if x.Role == "user" && len(x.Parts) == 1 {
				all = append(all, x.Parts[0].Text)
			}
		}
		if before = page.Before; before == 0 {
			slices.Reverse(all)
			return all, nil
		}
	}
}

// checkSaid holds what was said in a session against its history, as [checkLog] does.
func checkSaid(ops []op, session string, said []string) []string {
	var here []op
	for _, o := range ops {
		if o.Kind == kindSay && o.Session == session {
			o.Key = "said/" + o.Text
			here = append(here, o)
		}
	}
	log := make([]entry, len(said))
	for i, text := range said {
		log[i] = entry{Index: int64(i) + 1, Event: "said", Target: text, Payload: json.RawMessage("{}")}
	}
	return checkLog(here, log)
}

// acknowledged counts what was said in a session and taken.
func acknowledged(ops []op, session string) (n int) {
	for _, o := range ops {
		if o.Kind == kindSay && o.Session == session && o.Outcome == ok {
			n++
		}
	}
	return n
}

// checkRefused finds messages that a node refused, though their sessions exist and may be written to.
func checkRefused(ops []op) (found []string) {
	for _, o := range ops {
		if o.Kind == kindSay && o.Outcome == failed {
			found = append(found, fmt.Sprintf("%v was refused", o))
		}
	}
	return found
}

// judgeTalk checks that every node tells the same of each session, and that it is what was said.
func (r *round) judgeTalk(ctx context.Context, p *played, l *load) {
	p.Findings = append(p.Findings, checkRefused(l.ops)...)
	for _, session := range r.sessions {
		var told [3][]string
		why := ""
		least := acknowledged(l.ops, session)
		p.Said += least
		if err := until(ctx, "every node tells the same of session "+session, func() bool {
			for i, m := range r.m {
				var err error
				if told[i], err = m.said(ctx, session); err != nil {
					why = err.Error()
					return false
				}
			}
			why = fmt.Sprintf("%d messages were acknowledged, and the nodes tell of %d, %d and %d", least, len(told[0]), len(told[1]), len(told[2]))
			return len(told[0]) >= least && slices.Equal(told[0], told[1]) && slices.Equal(told[0], told[2])
		}); err != nil {
			p.Findings = append(p.Findings, err.Error()+": "+why)
		}
		p.Findings = append(p.Findings, checkSaid(l.ops, session, told[0])...)
		p.SayGap = max(p.SayGap, silence(l.ops, session))
	}
}

// silence is the longest time in which nothing that was said in a session was acknowledged.
func silence(ops []op, session string) (most time.Duration) {
	var ends []time.Duration
	for _, o := range ops {
		if o.Kind == kindSay && o.Session == session && o.Outcome == ok {
			ends = append(ends, o.End)
		}
	}
	slices.Sort(ends)
	for i := 1; i < len(ends); i++ {
		most = max(most, ends[i]-ends[i-1])
	}
	return most
}
