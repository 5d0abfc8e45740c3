package yaya

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// kernel speaks with a plugin that is served in this process.
type kernel struct {
	t    *testing.T
	in   io.WriteCloser
	out  *bufio.Scanner
	done chan error
}

func serve(t *testing.T, p Plugin) *kernel {
	t.Helper()
	fromKernel, in := io.Pipe()
	out, toKernel := io.Pipe()
	k := &kernel{t: t, in: in, out: bufio.NewScanner(out), done: make(chan error, 1)}
	go func() {
		k.done <- Serve(p, fromKernel, toKernel)
		_ = toKernel.Close()
	}()
	t.Cleanup(func() {
		_ = in.Close()
		if err := <-k.done; err != nil {
			t.Errorf("Serve() = %v, want no error", err)
		}
	})
	return k
}

func (k *kernel) send(line string) {
	k.t.Helper()
	if _, err := io.WriteString(k.in, line+"\n"); err != nil {
		k.t.Fatal(err)
	}
}

// wants reads the next line, which must contain the parts.
func (k *kernel) wants(parts ...string) string {
	k.t.Helper()
	if !k.out.Scan() {
		k.t.Fatalf("the output has ended, want %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(k.out.Text(), part) {
			k.t.Errorf("got %s, want %q in it", k.out.Text(), part)
		}
	}
	return k.out.Text()
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"abi":1,"kernel":{"version":"1","protocol":"v0"},"config":{"units":"metric"},"state_dir":"/s"}}`

type args struct {
	Text  string   `json:"text" doc:"to repeat"`
	Times *int     `json:"times"`
	Tags  []string `json:"tags,omitempty"`
}

// The SDK speaks the protocol: settings, tools with their schemas, progress, errors, cancel.
func TestServe(t *testing.T) {
	p := Plugin{Name: "echo", Version: "1.0.0", Category: "tool", OnStart: func(_ context.Context, h *Host) error {
		var units string
		if ok, err := h.Started.Get("units", &units); !ok || err != nil || units != "metric" || h.StateDir != "/s" {
			return errors.New("the settings did not arrive")
		}
		return nil
	}, Tools: []Tool{
		NewTool("repeat", "Repeats.", func(_ context.Context, c *Call, in args) (Result, error) {
			c.Progress(1, 2, "half")
			return Text(in.Text), nil
		}),
		NewTool("wait", "Waits.", func(ctx context.Context, c *Call, _ struct{}) (Result, error) {
			c.Progress(0, 0, "began")
			<-ctx.Done()
			return Result{}, ctx.Err()
		}),
		NewTool("panics", "Panics.", func(context.Context, *Call, struct{}) (Result, error) { panic("no") }),
	}}
	k := serve(t, p)
	k.send(hello)
	var got struct {
		Result struct {
			ABI   int    `json:"abi"`
			Tools []Tool `json:"tools"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(k.wants(`"name":"echo"`)), &got); err != nil {
		t.Fatal(err)
	}
	if want := `{"additionalProperties":false,"properties":{"tags":{"items":{"type":"string"},"type":"array"},"text":{"description":"to repeat","type":"string"},"times":{"type":"integer"}},"required":["text"],"type":"object"}`; got.Result.ABI != ABI || string(got.Result.Tools[0].InputSchema) != want {
		t.Errorf("version %d and the schema\n%s\nwant %d and\n%s", got.Result.ABI, got.Result.Tools[0].InputSchema, ABI, want)
	}
	k.send(`{"jsonrpc":"2.0","id":2,"method":"tool.call","params":{"call_id":"c","name":"repeat","args":{"text":"hi"},"session_id":"s","deadline_ms":1000}}`)
	k.wants(`"method":"progress"`, `"id":2`, `"message":"half"`)
	k.wants(`"id":2`, `"ok":true`, `"text":"hi"`)
	k.send(`{"jsonrpc":"2.0","id":3,"method":"tool.call","params":{"call_id":"c","name":"wait","args":{},"session_id":"s"}}`)
	k.wants(`"message":"began"`)
	k.send(`{"jsonrpc":"2.0","method":"cancel","params":{"id":3}}`)
	k.wants(`"id":3`, `"ok":false`)
	k.send(`{"jsonrpc":"2.0","id":4,"method":"tool.call","params":{"call_id":"c","name":"panics","args":{},"session_id":"s"}}`)
	k.wants(`"id":4`, `"error"`, "panic: no")
	k.send(`{"jsonrpc":"2.0","id":5,"method":"x.new","params":{}}`)
	k.wants(`"id":5`, "-32601")
	k.send(`{"jsonrpc":"2.0","id":6,"method":"shutdown","params":{}}`)
	k.wants(`"id":6`, `"result":{}`)
}

// A handler of an event talks with yaya meanwhile, and gets its refusals as errors.
func TestHost(t *testing.T) {
	k := serve(t, Plugin{Name: "skill", Version: "1.0.0", Category: "skill", OnEvent: func(ctx context.Context, h *Host, ev Event) error {
		h.Log("info", "got "+ev.Kind)
		got, err := h.Request(ctx, "memory.query", ev.SessionID, map[string]any{"query": "x"})
		if err != nil || got.Kind != "memory.result" {
			return errors.Join(errors.New("the request was not answered"), err)
		}
		err = h.Emit(ctx, "x.skill.done", ev.SessionID, struct{}{})
		var refused *Error
		if !errors.As(err, &refused) || refused.Code != CodeRefused {
			return errors.New("the refusal did not arrive")
		}
		return nil
	}})
	k.send(`{"jsonrpc":"2.0","id":1,"method":"event","params":{"event":{"id":"e","kind":"user.message.received","session_id":"s","ts":1,"source":"web","payload":{}},"deadline_ms":5000}}`)
	k.wants(`"method":"log"`, "got user.message.received")
	k.wants(`"method":"request"`, `"id":1`, "memory.query")
	k.send(`{"jsonrpc":"2.0","id":1,"result":{"event":{"id":"r","kind":"memory.result","session_id":"s","ts":1,"source":"m","payload":{}}}}`)
	k.wants(`"method":"emit"`, `"id":2`)
	k.send(`{"jsonrpc":"2.0","id":2,"error":{"code":-32001,"message":"no"}}`)
	k.wants(`"id":1`, `"result":{}`)
}

// PL-03: guards answer, their errors and panics are errors, and a point that is not guarded is refused.
func TestGuards(t *testing.T) {
	k := serve(t, Plugin{Name: "sentry", Version: "1.0.0", Category: "skill", GuardTool: func(_ context.Context, _ *Host, c GuardedCall) (Verdict, error) {
		switch string(c.Args) {
		case `{"do":"fail"}`:
			return Allow(), errors.New("no disk")
		case `{"do":"panic"}`:
			panic("boom")
		case `{"do":"ask"}`:
			return Ask("look at " + c.Name + " of " + c.Principal + " in " + c.SessionID), nil
		}
		return Allow(), nil
	}})
	k.send(hello)
	k.wants(`"id":1`, `"guards":["pre_tool"]`)
	for i, c := range []struct{ params, want string }{
		{`"point":"pre_tool","session_id":"s","call":{"name":"shell","principal":"agent:x","args":{}}`, `"result":{"decision":"allow"}`},
		{`"point":"pre_tool","session_id":"s","call":{"name":"shell","principal":"agent:x","args":{"do":"ask"}}`, `"result":{"decision":"ask","reason":"look at shell of agent:x in s"}`},
		{`"point":"pre_tool","call":{"args":{"do":"fail"}}`, `"message":"no disk"`},
		{`"point":"pre_tool","call":{"args":{"do":"panic"}}`, "panic: boom"},
		{`"point":"prompt","prompt":"hi"`, `"code":-32602`},
		{`"point":"later"`, `"code":-32602`},
		{`"point":7`, `"code":-32602`},
	} {
		k.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"guard","params":{%s}}`, i+2, c.params))
		k.wants(fmt.Sprintf(`"id":%d`, i+2), c.want)
	}
	prompts := serve(t, Plugin{Name: "sentry", Version: "1.0.0", Category: "skill", GuardPrompt: func(_ context.Context, _ *Host, p GuardedPrompt) (Verdict, error) {
		return Deny("no " + p.Text), nil
	}})
	prompts.send(`{"jsonrpc":"2.0","id":1,"method":"guard","params":{"point":"prompt","session_id":"s","prompt":"passwords","deadline_ms":1000}}`)
	prompts.wants(`"result":{"decision":"deny","reason":"no passwords"}`)
}
