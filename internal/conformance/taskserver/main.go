// Command taskserver is an MCP server with the Tasks extension (SEP-2663), over
// stdio and in the modern era only: the conformance suite needs it behind yaya, and
// the official SDK does not implement it. It is a fixture, and is not shipped.
package main

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

const (
	extension = "io.modelcontextprotocol/tasks"
	version   = "2026-07-28"
	maxTasks  = 1024
	ttl       = time.Minute
)

type object = map[string]any

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name           string                     `json:"name"`
		TaskID         string                     `json:"taskId"`
		RequestState   string                     `json:"requestState"`
		InputResponses map[string]json.RawMessage `json:"inputResponses"`
		Arguments      struct {
			Name    string  `json:"name"`
			Seconds float64 `json:"seconds"`
		} `json:"arguments"`
		Meta struct {
			Capabilities struct {
				Extensions map[string]json.RawMessage `json:"extensions"`
			} `json:"io.modelcontextprotocol/clientCapabilities"`
		} `json:"_meta"`
	} `json:"params"`
}

type failure struct {
	code    int
	message string
	data    any
}

// task is work that continues after its call was answered.
type task struct {
	id      string
	status  string
	created time.Time
	updated time.Time
	result  any
	err     any
	open    object // questions without an answer
	end     *time.Timer
	then    func() object // makes the result when nothing is open
}

type server struct {
	mu    sync.Mutex
	out   *json.Encoder
	tasks map[string]*task
}

func main() {
	s := &server{out: json.NewEncoder(os.Stdout), tasks: map[string]*task{}}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 8<<20)
	for in.Scan() {
		var r request
		if err := json.Unmarshal(in.Bytes(), &r); err != nil || r.ID == nil {
			continue
		}
		s.mu.Lock()
		result, fail := s.answer(&r)
		msg := object{"jsonrpc": "2.0", "id": r.ID, "result": result}
		if fail != nil {
			e := object{"code": fail.code, "message": fail.message}
			if fail.data != nil {
				e["data"] = fail.data
			}
			msg = object{"jsonrpc": "2.0", "id": r.ID, "error": e}
		}
		err := s.out.Encode(msg)
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func tool(name, description string) object {
	return object{"name": name, "description": description, "inputSchema": object{"type": "object"}}
}

func (s *server) answer(r *request) (any, *failure) {
	switch r.Method {
	case "server/discover":
		return object{
			"resultType": "complete", "supportedVersions": []string{version}, "ttlMs": 0, "cacheScope": "private",
			"capabilities": object{"tools": object{}, "extensions": object{extension: object{}}},
			"_meta":        object{"io.modelcontextprotocol/serverInfo": object{"name": "taskserver", "version": "1"}},
		}, nil
	case "tools/list":
		return object{"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": []object{
			tool("greet", "Greets"), tool("slow_compute", "Takes its time"), tool("failing_job", "Fails, as a task only"),
			tool("protocol_error_job", "Breaks"), tool("confirm_delete", "Asks before it deletes"), tool("multi_input", "Asks two things"),
			tool("test_tool_with_task", "Asks, then becomes a task"),
		}}, nil
	case "tools/call":
		return s.call(r)
	case "tasks/get", "tasks/update", "tasks/cancel":
		if !r.declares() {
			return nil, missing()
		}
		t := s.tasks[r.Params.TaskID]
		if t == nil {
			return nil, &failure{code: -32602, message: "task not found"}
		}
		switch r.Method {
		case "tasks/update":
			s.update(t, r.Params.InputResponses)
		case "tasks/cancel":
			s.finish(t, "cancelled")
		default:
			return t.detail(), nil
		}
		return object{"resultType": "complete"}, nil
	}
	return nil, &failure{code: -32601, message: "unknown method " + r.Method}
}

func (r *request) declares() bool { return r.Params.Meta.Capabilities.Extensions[extension] != nil }

func missing() *failure {
	return &failure{-32021, "the Tasks extension is required", object{"requiredCapabilities": object{"extensions": object{extension: object{}}}}}
}

func text(s string) object {
	return object{"resultType": "complete", "content": []object{{"type": "text", "text": s}}}
}

func elicit(message string) object {
	return object{"method": "elicitation/create", "params": object{"mode": "form", "message": message, "requestedSchema": object{
		"type": "object", "properties": object{"name": object{"type": "string"}, "confirm": object{"type": "boolean"}},
	}}}
}

func (s *server) call(r *request) (any, *failure) {
	p := &r.Params
	after := func(d time.Duration, status string, result, err any) (any, *failure) {
		t := s.create()
		t.end = time.AfterFunc(d, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			t.result, t.err = result, err
			s.finish(t, status)
		})
		return t.asResult(), nil
	}
	switch p.Name {
	case "greet":
		return text("Hello, " + p.Arguments.Name + "!"), nil
	case "slow_compute":
		took := time.Duration(p.Arguments.Seconds * float64(time.Second))
		done := text(fmt.Sprintf("computed for %v", took))
		if !r.declares() {
			return done, nil
		}
		return after(took, "completed", done, nil)
	case "failing_job":
		if !r.declares() {
			return nil, missing()
		}
		res := text("it failed, as it always does")
		res["isError"] = true
		return after(50*time.Millisecond, "completed", res, nil)
	case "protocol_error_job":
		if !r.declares() {
			return nil, missing()
		}
		return after(50*time.Millisecond, "failed", nil, object{"code": -32603, "message": "broken"})
	case "confirm_delete", "multi_input":
		if !r.declares() {
			return nil, missing()
		}
		t := s.create()
		t.status, t.open = "input_required", object{"first": elicit("Delete it?")}
		if p.Name == "multi_input" {
			t.open["second"] = elicit("And the other?")
		}
		t.then = func() object { return text("done") }
		return t.asResult(), nil
	case "test_tool_with_task":
		raw, ok := p.InputResponses["user_name"]
		if !ok {
			return object{"resultType": "input_required", "requestState": "asked", "inputRequests": object{"user_name": elicit("Your name?")}}, nil
		}
		var answer struct {
			Content struct {
				Name string `json:"name"`
			} `json:"content"`
		}
		if err := json.Unmarshal(raw, &answer); err != nil {
			return nil, &failure{code: -32602, message: err.Error()}
		}
		done := text("Hello, " + answer.Content.Name)
		if !r.declares() {
			return done, nil
		}
		return after(50*time.Millisecond, "completed", done, nil)
	}
	return nil, &failure{code: -32602, message: "unknown tool " + p.Name}
}

// create makes a task; it is forgotten when its time is over.
func (s *server) create() *task {
	if len(s.tasks) >= maxTasks {
		clear(s.tasks)
	}
	now := time.Now().UTC()
	t := &task{id: rand.Text(), status: "working", created: now, updated: now}
	s.tasks[t.id] = t
	return t
}

func (s *server) finish(t *task, status string) {
	if t.status != "working" && t.status != "input_required" {
		return
	}
	if t.end != nil {
		t.end.Stop()
	}
	t.status, t.updated, t.open = status, time.Now().UTC(), nil
}

func (s *server) update(t *task, answers map[string]json.RawMessage) {
	if t.status != "input_required" {
		return
	}
	for key := range answers {
		delete(t.open, key)
	}
	if len(t.open) == 0 {
		t.result = t.then()
		s.finish(t, "completed")
	}
}

func (t *task) envelope() object {
	return object{
		"taskId": t.id, "status": t.status, "createdAt": t.created.Format(time.RFC3339Nano), "lastUpdatedAt": t.updated.Format(time.RFC3339Nano),
		"ttlMs": ttl.Milliseconds(), "pollIntervalMs": 100,
	}
}

// asResult is the answer to the call that made the task.
func (t *task) asResult() object {
	o := t.envelope()
	o["resultType"] = "task"
	return o
}

func (t *task) detail() object {
	o := t.envelope()
	o["resultType"] = "complete"
	if t.result != nil {
		o["result"] = t.result
	}
	if t.err != nil {
		o["error"] = t.err
	}
	if len(t.open) > 0 {
		o["inputRequests"] = t.open
	}
	return o
}
