package downstream

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

// Tasks (SEP-2663). yaya prefixes the id of a server's task with the server's name, so that
// later requests find the server. For a client that knows tasks, a long call to a server that
// creates no tasks becomes a task of yaya's own, whose id has no server. In a cluster, the node
// stands behind the server.

const (
	taskSeparator = "~"

	defaultTaskAfter = 20 * time.Second // before clients time out
	taskKept         = 20 * time.Minute // since the last request for it
	taskPoll         = time.Second
)

// canBecomeTask reports whether a request may be answered with a task.
func (x *exchange) canBecomeTask() bool {
	return x.modern && x.msg.Method == "tools/call" && relay.HasTasks(x.caps)
}

// task serves tasks/get, tasks/update and tasks/cancel.
func (s *Server) task(ctx context.Context, x *exchange) ([]byte, error) {
	if !x.modern {
		return nil, fail(jsonrpc.CodeMethodNotFound, "unknown method %q", x.msg.Method)
	}
	if !relay.HasTasks(x.caps) {
		e := fail(mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, "the client has not declared the extension %s", relay.Tasks)
		e.Data = json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + relay.Tasks + `":{}}}}`)
		return nil, e
	}
	id, ok := x.msg.Params.String("taskId")
	name, own, found := strings.Cut(id, taskSeparator)
	name = strings.TrimSuffix(name, s.marked(""))
	unknown := fail(jsonrpc.CodeInvalidParams, "there is no task %q", clip(id))
	if !ok || !found {
		return nil, unknown
	}
	if name == "" {
		s.mu.Lock()
		t := s.tasks[id]
		s.mu.Unlock()
		if t == nil || t.client != x.c.session || t.profile != x.profile.name {
			return nil, unknown
		}
		return t.serve(x)
	}
	if !s.ownsTask(x, name+taskSeparator+own) {
		return nil, unknown
	}
	for _, server := range s.cfg.Router.Servers() {
		if server.Name() != name || !x.profile.server(name) {
			continue
		}
		out, err := x.reply(server.Relay(ctx, x, x.msg.Method, x.msg.Params, jsonrpc.Edit{Name: "taskId", Value: jsonrpc.AppendString(nil, own)}))
		if err != nil {
			return nil, err
		}
		obj, err := jsonrpc.ParseObject(out)
		if err != nil {
			return nil, err
		}
		return s.renameTask(name, obj), nil
	}
	return nil, unknown
}

// renameTask replaces the task's id in a result with the id for clients.
func (s *Server) renameTask(server string, o jsonrpc.Object) []byte {
	id, ok := o.String("taskId")
	if !ok {
		return o.Raw()
	}
	return o.Append(nil, jsonrpc.Edit{Name: "taskId", Value: jsonrpc.AppendString(nil, s.marked(server)+taskSeparator+id)})
}

// ownTask is a flight that its client knows as a task. The flight's mutex guards it.
type ownTask struct {
	f       *flight
	id      string
	client  string
	profile string // the profile of the call
	created time.Time
	updated time.Time
	end     *landing // the outcome; nil while it runs
	gone    bool     // the client has cancelled it
}

// becomeTask answers a long call with a task.
func (f *flight) becomeTask(x *exchange) ([]byte, error) {
	now := time.Now().UTC()
	t := &ownTask{f: f, id: f.s.marked("") + taskSeparator + rand.Text(), client: x.c.session, profile: x.profile.name, created: now, updated: now}
	f.s.mu.Lock()
	full := !f.s.shares.tasks.Take(f.owner, f.owner == tool.Owner)
	if !full {
		f.s.tasks[t.id] = t
	}
	f.s.mu.Unlock()
	if full {
		f.abandon(errTooMany)
		return nil, fail(jsonrpc.CodeInternal, "too many tasks")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leave() // from now on, its messages have to be requested
	f.timer = time.AfterFunc(taskKept, func() {
		f.s.mu.Lock()
		found := f.s.tasks[t.id] == t
		if found {
			delete(f.s.tasks, t.id)
			f.s.shares.tasks.Give(f.owner)
		}
		f.s.mu.Unlock()
		if found {
			t.drop(errParkedTooLong)
		}
	})
	return json.Marshal(t.envelope("task", "working"))
}

type taskEnvelope struct {
	ResultType string                    `json:"resultType"`
	ID         string                    `json:"taskId"`
	Status     string                    `json:"status"`
	Created    time.Time                 `json:"createdAt"`
	Updated    time.Time                 `json:"lastUpdatedAt"`
	TTL        int64                     `json:"ttlMs"`
	Poll       int64                     `json:"pollIntervalMs"`
	Result     json.RawMessage           `json:"result,omitempty"`
	Error      json.RawMessage           `json:"error,omitempty"`
	Requests   map[string]relay.Question `json:"inputRequests,omitempty"`
}

func (t *ownTask) envelope(kind, status string) taskEnvelope {
	return taskEnvelope{ResultType: kind, ID: t.id, Status: status, Created: t.created, Updated: t.updated, TTL: (time.Since(t.created) + taskKept).Milliseconds(), Poll: taskPoll.Milliseconds()}
}

var acknowledged = []byte(`{"resultType":"complete"}`)

func (t *ownTask) serve(x *exchange) ([]byte, error) {
	switch x.msg.Method {
	case "tasks/update":
		answers, err := inputResponses(x)
		if err != nil {
			return nil, err
		}
		t.f.mu.Lock()
		defer t.f.mu.Unlock()
		t.f.answer(answers)
		t.updated = time.Now().UTC()
		return acknowledged, nil
	case "tasks/cancel":
		t.f.mu.Lock()
		defer t.f.mu.Unlock()
		if t.settle(); t.end == nil {
			t.gone, t.f.gone, t.updated = true, true, time.Now().UTC()
			t.f.cancel(errNoAnswer)
		}
		return acknowledged, nil
	}
	t.f.mu.Lock()
	t.f.timer.Reset(taskKept)
	e := t.detail()
	end := t.end
	t.f.mu.Unlock()
	out, err := json.Marshal(e)
	if err != nil || end == nil || end.kept == nil {
		return out, err
	}
	return end.kept.load(x, append(out[:len(out)-1], `,"result":`...), []byte{'}'})
}

// drop ends a task that nobody will request.
func (t *ownTask) drop(why error) {
	t.f.abandon(why)
	t.f.mu.Lock()
	defer t.f.mu.Unlock()
	if t.end != nil {
		t.end.drop()
	}
}

// settle stores the outcome of the flight if it has ended; the caller holds the flight's mutex.
func (t *ownTask) settle() {
	if t.end != nil || t.gone {
		return
	}
	select {
	case l := <-t.f.done:
		t.updated = time.Now().UTC()
		t.end = &l
	default:
	}
}

func (t *ownTask) detail() taskEnvelope {
	t.settle()
	switch {
	case t.gone:
		return t.envelope("complete", "cancelled")
	case t.end == nil && len(t.f.open) > 0:
		e := t.envelope("complete", "input_required")
		e.Requests = t.f.questions()
		return e
	case t.end == nil:
		return t.envelope("complete", "working")
	case t.end.err == nil:
		e := t.envelope("complete", "completed")
		e.Result = t.end.result
		return e
	case errors.Is(t.end.err, errNoAnswer):
		return t.envelope("complete", "cancelled")
	}
	e := t.envelope("complete", "failed")
	failure, ok := errors.AsType[*jsonrpc.Error](t.end.err)
	if !ok {
		failure = fail(jsonrpc.CodeInternal, "internal error")
	}
	e.Error = failure.Append(nil)
	return e
}

// inputResponses reads the answers that a request brings.
func inputResponses(x *exchange) (map[string]relay.Reply, error) {
	var answers map[string]json.RawMessage
	if raw := x.msg.Params.Get("inputResponses"); raw != nil {
		if err := json.Unmarshal(raw, &answers); err != nil || answers == nil {
			return nil, fail(jsonrpc.CodeInvalidParams, "inputResponses must be an object")
		}
	}
	replies := make(map[string]relay.Reply, len(answers))
	for key, raw := range answers {
		obj, err := jsonrpc.ParseObject(raw)
		if err != nil {
			return nil, fail(jsonrpc.CodeInvalidParams, "inputResponses: %q must be an object", clip(key))
		}
		replies[key] = relay.Reply{Result: obj}
	}
	return replies, nil
}
