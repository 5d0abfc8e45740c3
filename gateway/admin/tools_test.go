package admin_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/kernel/tool"
)

type echoTool struct{ calls []tool.Call }

func (*echoTool) Definition() tool.Definition {
	return tool.Definition{Name: "echo", Description: "Says it again.", Kind: tool.KindExec, RequiresApproval: true, InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)}
}

func (e *echoTool) Invoke(_ context.Context, c tool.Call) (tool.Result, error) {
	e.calls = append(e.calls, c)
	return tool.OK("said", tool.Text(string(c.Args))), nil
}

// R27: a call through the API goes through the one door: it is validated, and policy and
// rules see it as what it is. Whoever calls has approved it, and so must be somebody who
// may approve; it is audited before it happens.
func TestCallTool(t *testing.T) {
	w := newWorld(t)
	e := new(echoTool)
	w.admin.Registry = new(tool.Registry)
	if err := w.admin.Registry.Register(e); err != nil {
		t.Fatal(err)
	}
	w.admin.Dispatch = tool.NewDispatcher(tool.DispatcherConfig{Registry: w.admin.Registry})
	w.rebuild()
	w.want("GET", "/api/tools", "", 200, `"name":"echo"`)
	w.want("POST", "/api/tools/echo/call", `{"arguments":{"n":12345678901234567890}}`, 200, `12345678901234567890`)
	w.want("POST", "/api/tools/echo/call", `{"arguments":{"n":"x"}}`, 200, `"kind":"validation"`)
	w.want("POST", "/api/tools/nothing/call", `{"arguments":{}}`, 200, `"kind":"not_found"`)
	w.want("POST", "/api/tools/echo/call", `{}`, 400, "arguments")
	if len(e.calls) != 1 || e.calls[0].Origin != tool.OriginAPI || !strings.HasPrefix(e.calls[0].SessionID, "_bridge:") {
		t.Errorf("calls %+v", e.calls)
	}
	w.want("GET", "/api/audit?event=tool_called", "", 200, `"target":"echo"`)
	w.who = auth.Principal{} // who may not answer asks may not be their own answer
	w.want("POST", "/api/tools/echo/call", `{"arguments":{"n":1}}`, 403, "approvals:answer")
	w.who = auth.LocalOwner
	if err := w.log.Close(); err != nil {
		t.Fatal(err)
	}
	w.want("POST", "/api/tools/echo/call", `{"arguments":{"n":1}}`, 503, "control log")
	if len(e.calls) != 1 {
		t.Errorf("it was called %d times", len(e.calls))
	}
}
