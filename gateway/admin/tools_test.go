package admin_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"os"
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
// rules see it as what it is. The call counts as approved by its caller, so only a caller
// that may approve can make it; it is audited before it happens.
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
	w.who = auth.Principal{Kind: auth.External, ID: "issuer|eve"} // who may not answer asks may not be their own answer
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

// R7, R22: what is kept of a call over the API is its caller's: each principal's calls
// have a session of their own, and no other reads what was cut off their results.
func TestCallsAreKeptByCaller(t *testing.T) {
	w := newWorld(t)
	e := new(echoTool)
	w.admin.Registry = new(tool.Registry)
	if err := w.admin.Registry.Register(e); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	w.admin.Artifacts = tool.NewStore(root)
	w.admin.Dispatch = tool.NewDispatcher(tool.DispatcherConfig{Registry: w.admin.Registry})
	w.rebuild()
	who := []auth.Principal{auth.LocalOwner, w.device("one"), w.device("two")}
	ids := make([]string, len(who))
	for i, p := range who {
		w.who = p
		w.want("POST", "/api/tools/echo/call", `{"arguments":{"n":1}}`, 200, `"ok":true`)
		if got := e.calls[i].Caller.Principal; got != p.Name() {
			t.Errorf("call %d: got principal %q, want %q", i, got, p.Name())
		}
		a, err := w.admin.Artifacts.Put(e.calls[i], "text/plain", []byte("rest"))
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = a.ID
	}
	for i, p := range who {
		for j, id := range ids {
			w.who = p
			status, want := 404, "artifact not found"
			if i == j {
				status, want = 200, `"size":4`
			}
			w.want("GET", "/api/tools/artifacts/"+id, "", status, want)
		}
	}
}

// device enrolls a device that may do everything.
func (w *world) device(id string) auth.Principal {
	w.t.Helper()
	inv, err := w.dev.Invite(w.t.Context(), auth.LocalOwner, "", auth.AllScopes())
	if err != nil {
		w.t.Fatal(err)
	}
	pub, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	got, err := w.dev.Register(w.t.Context(), id, auth.Registration{PublicKey: base64.StdEncoding.EncodeToString(pub), DeviceID: id, Label: id, Code: inv.Code})
	if err != nil {
		w.t.Fatal(err)
	}
	p, err := w.dev.VerifyToken(got.Token.Token)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// tracker is a tool of a server, with words of its own.
type tracker struct{ name, text string }

func (x tracker) Definition() tool.Definition {
	return tool.Definition{Name: "tracker__" + x.name, Description: x.text, Kind: tool.KindRead, InputSchema: json.RawMessage(`{"type":"object"}`), Identity: tool.Identity{Provider: "tracker", Tool: x.name}}
}

func (tracker) Invoke(context.Context, tool.Call) (tool.Result, error) {
	return tool.OK("", tool.Text("")), nil
}

// Tools are found by what they do, best first, and those that come later are found, too.
func TestSearchTools(t *testing.T) {
	w := newWorld(t)
	w.admin.Registry = new(tool.Registry)
	w.admin.Dispatch = tool.NewDispatcher(tool.DispatcherConfig{Registry: w.admin.Registry})
	w.rebuild()
	for _, x := range []tracker{{"create_issue", "Opens a ticket."}, {"list_issues", "Lists tickets."}, {"get_weather", "Tells the weather."}} {
		if err := w.admin.Registry.Register(x); err != nil {
			t.Fatal(err)
		}
	}
	w.want("GET", "/api/tools/search?q=make+an+issue", "", 200, `["tracker__create_issue","tracker__list_issues"]`)
	w.want("GET", "/api/tools/search?q=list+issues&limit=1", "", 200, `["tracker__list_issues"]`)
	w.want("GET", "/api/tools/search?q=calendar", "", 200, `[]`)
	if err := w.admin.Registry.Register(tracker{"read_calendar", "Reads."}); err != nil {
		t.Fatal(err)
	}
	w.want("GET", "/api/tools/search?q=calendar", "", 200, `["tracker__read_calendar"]`)
	w.want("GET", "/api/tools/search", "", 400, "q")
	w.want("GET", "/api/tools/search?q="+strings.Repeat("a", 1025), "", 400, "q")
}
