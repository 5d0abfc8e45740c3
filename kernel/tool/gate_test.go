package tool_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/kernel/tool"
)

type gate func(tool.Call) error

func (g gate) Admit(_ context.Context, call tool.Call, _ tool.Definition) error { return g(call) }

// SEC-3: a tool that works in the session's folder runs when the gate admits its call, and
// not without a gate; other tools do not wait for it.
func TestGate(t *testing.T) {
	for name, c := range map[string]struct {
		inFolder bool
		gate     tool.Gate
		asked    int
		want     string // of the result's brief; "" runs
	}{
		"admitted":             {true, gate(func(tool.Call) error { return nil }), 1, ""},
		"refused":              {true, gate(func(tool.Call) error { return &tool.RejectedError{Feedback: "not there"} }), 1, "rejected: not there"},
		"unanswered":           {true, gate(func(tool.Call) error { return errors.New("nobody is there") }), 1, "no approval for x: nobody is there"},
		"of another place":     {false, gate(func(tool.Call) error { return errors.New("not asked") }), 0, ""},
		"without a gate":       {true, nil, 0, "denied: x works in the session's folder, and there is no gate"},
		"elsewhere, no gate":   {false, nil, 0, ""},
		"elsewhere, open gate": {false, gate(func(tool.Call) error { return nil }), 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ran := false
			r := rawTool("x", func(context.Context, tool.Call) (tool.Result, error) {
				ran = true
				return tool.OK("ok"), nil
			})
			r.def.InFolder = c.inFolder
			reg := new(tool.Registry)
			if err := reg.Register(r); err != nil {
				t.Fatal(err)
			}
			asked := 0
			d := tool.NewDispatcher(tool.DispatcherConfig{Registry: reg, Policy: allow{}})
			if c.gate != nil {
				d.SetGate(gate(func(call tool.Call) error {
					asked++
					if call.SessionID != "s" || ran {
						t.Errorf("the gate is asked about session %q after the tool ran: %v, want s before", call.SessionID, ran)
					}
					return c.gate.Admit(context.Background(), call, tool.Definition{})
				}))
			}
			res := d.Call(t.Context(), reg.Snapshot(), tool.Call{Name: "x", SessionID: "s", Origin: tool.OriginLoop, Caller: tool.LocalOwner})
			if ran != (c.want == "") || res.OK != ran || !strings.Contains(res.Text(), c.want) || asked != c.asked {
				t.Errorf("got %+v, ran %v, asked %d times; want %q and %d", res, ran, asked, c.want, c.asked)
			}
		})
	}
}

// R11: a dispatcher that was not put together refuses, whoever calls what.
func TestZeroDispatcherRefuses(t *testing.T) {
	for _, kind := range []tool.Kind{tool.KindRead, tool.KindNetwork, tool.KindWrite, tool.KindExec} {
		for _, origin := range []tool.Origin{tool.OriginLoop, tool.OriginMCP, tool.OriginCLI, tool.OriginWire, tool.OriginAPI} {
			ran := false
			r := rawTool("x", func(context.Context, tool.Call) (tool.Result, error) {
				ran = true
				return tool.OK("ok"), nil
			})
			r.def.Kind = kind
			reg := new(tool.Registry)
			if err := reg.Register(r); err != nil {
				t.Fatal(err)
			}
			res := new(tool.Dispatcher).Call(t.Context(), reg.Snapshot(), tool.Call{Name: "x", SessionID: "s", Origin: origin, Caller: tool.LocalOwner})
			if ran || res.ErrorKind != tool.ErrRejected {
				t.Errorf("%v by %v: got %+v, ran %v, want a rejection", kind, origin, res, ran)
			}
		}
	}
}

// R11: without a witness nothing that needs one runs, and everything else does.
func TestNoWitness(t *testing.T) {
	for name, tt := range map[string]struct {
		kind   tool.Kind
		origin tool.Origin
		policy tool.Policy
		runs   bool
	}{
		"an agent reads":                   {tool.KindRead, tool.OriginLoop, allow{}, true},
		"an agent writes unasked":          {tool.KindWrite, tool.OriginLoop, allow{}, false},
		"an agent runs something unasked":  {tool.KindExec, tool.OriginLoop, allow{}, false},
		"an agent writes, and was allowed": {tool.KindWrite, tool.OriginLoop, tool.DefaultPolicy{}, true},
		"a person writes":                  {tool.KindWrite, tool.OriginCLI, allow{}, true},
	} {
		ran := false
		r := rawTool("x", func(context.Context, tool.Call) (tool.Result, error) {
			ran = true
			return tool.OK("ok"), nil
		})
		r.def.Kind = tt.kind
		d, reg := setup(t, tool.DispatcherConfig{Policy: tt.policy, Approver: asker(func(tool.Call) error { return nil })}, r)
		d.SetWitness(nil)
		res := d.Call(t.Context(), reg.Snapshot(), tool.Call{Name: "x", SessionID: "s", Origin: tt.origin, Caller: tool.LocalOwner})
		if ran != tt.runs || res.OK != ran || (!ran && res.ErrorKind != tool.ErrRejected) {
			t.Errorf("%s: got %+v, ran %v, want %v", name, res, ran, tt.runs)
		}
	}
}

// R11: an ask that ends without an answer is a no, whatever ended it.
func TestUnansweredIsNo(t *testing.T) {
	for name, err := range map[string]error{"a refusal": &tool.RejectedError{}, "an error": errors.New("the disk is full"), "the end of the call": context.Canceled} {
		ran := false
		r := rawTool("x", func(context.Context, tool.Call) (tool.Result, error) {
			ran = true
			return tool.OK("ok"), nil
		})
		r.def.Kind = tool.KindExec
		reg := new(tool.Registry)
		if err := reg.Register(r); err != nil {
			t.Fatal(err)
		}
		d := tool.NewDispatcher(tool.DispatcherConfig{Registry: reg, Approver: asker(func(tool.Call) error { return err })})
		res := d.Call(t.Context(), reg.Snapshot(), tool.Call{Name: "x", SessionID: "s", Origin: tool.OriginLoop, Caller: tool.LocalOwner})
		if ran || res.OK || res.ErrorKind != tool.ErrRejected {
			t.Errorf("%s: got %+v, ran %v, want a rejection", name, res, ran)
		}
	}
}

// An approver that is set later is asked from then on, and the configured one no longer.
func TestApproverIsSetLater(t *testing.T) {
	r := rawTool("x", func(context.Context, tool.Call) (tool.Result, error) { return tool.OK("ok"), nil })
	r.def.Kind = tool.KindWrite
	d, reg := setup(t, tool.DispatcherConfig{Approver: asker(func(tool.Call) error { return errors.New("the first one was asked") })}, r)
	if res := call(d, reg, "x", `{}`); res.OK || !strings.Contains(res.Brief, "the first one") {
		t.Errorf("with the configured approver got %+v, want its refusal", res)
	}
	d.SetApprover(asker(func(tool.Call) error { return nil }))
	if res := call(d, reg, "x", `{}`); !res.OK {
		t.Errorf("with another approver got %+v, want its agreement", res)
	}
}

// No tool has the name of the question about a folder: its asks would be taken for it.
func TestReservedName(t *testing.T) {
	if err := new(tool.Registry).Register(rawTool(tool.TrustQuestion, nil)); err == nil || !strings.Contains(err.Error(), "reserved") {
		t.Errorf("Register(%q) = %v, want that it is reserved", tool.TrustQuestion, err)
	}
}

// A method of a server does not run under a name under which yaya itself asks: guards and people
// would take it for that question.
func TestReservedNamesDoNotRun(t *testing.T) {
	for name, runs := range map[string]bool{"other": true, tool.TrustQuestion: false, tool.HostQuestion: false} {
		ran := false
		d := tool.NewDispatcher(tool.DispatcherConfig{Registry: new(tool.Registry), Policy: allow{}})
		def := tool.Definition{Name: name, Identity: tool.Identity{Provider: "srv", Tool: name}, Kind: tool.KindRead, InputSchema: []byte(`{"type":"object"}`)}
		res := d.Run(t.Context(), &raw{def: def, run: func(context.Context, tool.Call) (tool.Result, error) {
			ran = true
			return tool.OK("done"), nil
		}}, tool.Call{ID: "1", Name: name, Args: []byte(`{}`), Caller: tool.LocalOwner, Native: &tool.NativeCall{Protocol: "mcp"}})
		if res.OK != runs || ran != runs || !runs && res.ErrorKind != tool.ErrNotFound {
			t.Errorf("%s: %+v, ran %v; want %v", name, res, ran, runs)
		}
	}
}

// An operation that is in no snapshot has its arguments checked like a tool, unless the call is native.
func TestRunChecksArguments(t *testing.T) {
	d := tool.NewDispatcher(tool.DispatcherConfig{Registry: new(tool.Registry)})
	def := tool.Definition{Name: "x", Identity: tool.Identity{Tool: "x"}, Kind: tool.KindRead, InputSchema: []byte(`{"type":"object","required":["uri"]}`)}
	op := &raw{def: def, run: func(context.Context, tool.Call) (tool.Result, error) { return tool.OK("ran"), nil }}
	for args, want := range map[string]bool{`{"uri":"a"}`: true, `{}`: false, `[]`: false} {
		if res := d.Run(t.Context(), op, tool.Call{Name: "x", Args: []byte(args), Caller: tool.LocalOwner}); res.OK != want || (!want && res.ErrorKind != tool.ErrValidation) {
			t.Errorf("Run with %s = %+v, want OK %t, or %s", args, res, want, tool.ErrValidation)
		}
	}
}
