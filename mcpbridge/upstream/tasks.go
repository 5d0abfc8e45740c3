package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

// Tasks (SEP-2663). A modern client that knows tasks gets a server's task unchanged. For legacy
// clients and the agent loop, yaya follows the task to its end, so that they can use a tool
// that only works as a task, too.

// Bounds of following a task.
const (
	taskPoll    = time.Second // if the server does not say
	taskPollMin = 100 * time.Millisecond
	taskPollMax = 10 * time.Second
)

var isTask = []byte(`"task"`)

// follows reports whether yaya follows tasks on behalf of a client.
func (s *session) follows(p relay.Peer) bool {
	return (p == nil || !p.Modern()) && s.tasks
}

// withTasks adds the extension to a client's declared capabilities.
func withTasks(caps jsonrpc.Object) []byte {
	ext := []byte(`{"` + relay.Tasks + `":{}}`)
	if raw := caps.Get("extensions"); raw != nil {
		if obj, err := jsonrpc.ParseObject(raw); err == nil {
			ext = obj.Append(nil, jsonrpc.Edit{Name: relay.Tasks, Value: []byte("{}")})
		}
	}
	return caps.Append(nil, jsonrpc.Edit{Name: "extensions", Value: ext})
}

// task is a server's report on a task.
type task struct {
	ID       string                    `json:"taskId"`
	Status   string                    `json:"status"`
	Poll     int64                     `json:"pollIntervalMs"`
	Requests map[string]relay.Question `json:"inputRequests"`
}

// followTask waits for the end of the task that a call has become, and answers its questions.
// If the call is cancelled, followTask cancels the task.
func (p *Provider) followTask(ctx context.Context, s *session, o outgoing, r reply) (_ reply, err error) {
	var t task
	if err := json.Unmarshal(r.result.Raw(), &t); err != nil || t.ID == "" {
		return r, odd("the server's task is malformed: %w", cmp.Or(err, errors.New("it has no id")))
	}
	r.buf.Release()
	id := append(jsonrpc.AppendString([]byte(`{"taskId":`), t.ID), '}')
	params, err := jsonrpc.ParseObject(id)
	if err != nil {
		return reply{}, err
	}
	defer func() {
		if err == nil || ctx.Err() == nil {
			return
		}
		s.work.Go(func() {
			ctx, cancel := context.WithTimeout(s.life, listTimeout)
			defer cancel()
			_, _ = s.relay(ctx, outgoing{method: "tasks/cancel", params: params, peer: o.peer}) // it ends by itself, too
		})
	}()
	answered := map[string]bool{}
	for {
		wait := min(max(cmp.Or(time.Duration(t.Poll)*time.Millisecond, taskPoll), taskPollMin), taskPollMax)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return reply{}, ctx.Err()
		}
		got, err := s.relay(ctx, outgoing{method: "tasks/get", params: params, peer: o.peer})
		if err != nil || got.err != nil {
			return got, err
		}
		t = task{}
		if err := json.Unmarshal(got.result.Raw(), &t); err != nil {
			got.buf.Release()
			return reply{}, odd("the server's report on its task is malformed: %w", err)
		}
		if o.limit != nil {
			o.limit.extend() // the task is alive
		}
		switch t.Status {
		case "completed": // the result stays where it is
			obj, err := jsonrpc.ParseObject(got.result.Get("result"))
			return reply{result: obj, buf: got.buf}, err
		case "failed":
			if e := got.result.Get("error"); len(e) > 0 {
				return reply{err: e, buf: got.buf}, nil
			}
		}
		got.buf.Release()
		switch t.Status {
		case "working":
		case "input_required":
			if err := p.updateTask(ctx, s, o, params, t, answered); err != nil {
				return reply{}, err
			}
		case "failed":
			return reply{}, odd("the server's task failed without an error")
		case "cancelled":
			return reply{}, odd("the server cancelled its task")
		default:
			return reply{}, odd("the server's task is in the unknown state %q", cut.Text(t.Status, 40))
		}
	}
}

// updateTask answers the new questions of a task.
func (p *Provider) updateTask(ctx context.Context, s *session, o outgoing, params jsonrpc.Object, t task, answered map[string]bool) error {
	answers := map[string]json.RawMessage{}
	for key, q := range t.Requests {
		if answered[key] {
			continue
		}
		if len(answered) >= maxAsksReq {
			return odd("the server's task asked more than %d times", maxAsksReq)
		}
		answered[key] = true
		if o.limit != nil {
			o.limit.pause()
		}
		got, err := p.answerOne(ctx, o.peer, q.Method, q.Params)
		if o.limit != nil {
			o.limit.resume()
		}
		if err != nil {
			return odd("its task asked for %s: %w", cut.Text(q.Method, 64), err)
		}
		answers[key] = got
	}
	if len(answers) == 0 {
		return nil
	}
	raw, err := json.Marshal(answers)
	if err != nil {
		return err
	}
	r, err := s.relay(ctx, outgoing{method: "tasks/update", params: params, edits: []jsonrpc.Edit{{Name: "inputResponses", Value: raw}}, peer: o.peer})
	if err == nil && r.err != nil {
		err = jsonrpc.ParseError(r.err)
	}
	r.buf.Release()
	return err
}
