package tool_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/yaya-ai/yaya/kernel/tool"
)

// MIS-1: an agent that calls a tool that there is not, or with arguments that are not JSON, learns how to do
// better. Others learn no names of tools.
func TestErrorsThatHelp(t *testing.T) {
	d, reg := setup(t, tool.DispatcherConfig{}, echo(t, tool.Definition{Name: "shell"}, nil), echo(t, tool.Definition{Name: "read_file"}, nil))
	if errs := reg.Replace("far", []tool.Provided{{Tool: echo(t, tool.Definition{Name: "far__glob"}, nil)}}); errs != nil {
		t.Fatal(errs)
	}
	for name, tt := range map[string]struct {
		tool, args string
		origin     tool.Origin
		want       string
	}{
		"another agent's": {"Bash", `{}`, tool.OriginLoop, `unknown tool "Bash" (did you mean "shell"?)`},
		"close":           {"readfile", `{}`, tool.OriginLoop, `unknown tool "readfile" (did you mean "read_file"?)`},
		"not close":       {"deploy", `{}`, tool.OriginLoop, `unknown tool "deploy"`},
		"out of reach":    {"far__glo", `{}`, tool.OriginLoop, `unknown tool "far__glo"`},
		"a client":        {"Bash", `{}`, tool.OriginMCP, `unknown tool "Bash"`},
		"cut off":         {"shell", `"{\"text\": \"a"`, tool.OriginLoop, "invalid arguments for shell: the arguments are not valid JSON: unexpected end of JSON input"},
		"wrapped":         {"shell", `"{\"text\": \"a\"}"`, tool.OriginLoop, "invalid arguments for shell: the arguments are a string: give the object itself"},
		"missing":         {"shell", `{}`, tool.OriginLoop, "invalid arguments for shell: text is missing"},
		"unknown":         {"shell", `{"text":"a","txet":"b"}`, tool.OriginLoop, `invalid arguments for shell: unknown member "txet"`},
		"both":            {"shell", `{"txet":"b"}`, tool.OriginLoop, "invalid arguments for shell:\n- text is missing\n- unknown member \"txet\""},
		"of another type": {"shell", `{"text":1}`, tool.OriginLoop, "invalid arguments for shell: /text: got number, want string"},
		"a list":          {"shell", `[]`, tool.OriginLoop, "invalid arguments for shell: got array, want object"},
	} {
		t.Run(name, func(t *testing.T) {
			near := tool.Caller{Principal: "p", But: "far"}
			res := d.Call(t.Context(), reg.Snapshot(), tool.Call{Caller: near, ID: "c", Name: tt.tool, Args: json.RawMessage(tt.args), SessionID: "s", Origin: tt.origin})
			if res.Text() != tt.want {
				t.Errorf("got %q, want %q", res.Text(), tt.want)
			}
		})
	}
}

// checked is a tool that finds out whether a call can succeed.
type checked struct {
	tool.Tool
	why string
}

func (c checked) Check(context.Context, tool.Call) (tool.Result, bool) {
	return tool.Fail(tool.ErrTool, "%s", c.why), c.why == ""
}

// USE-6: nobody is asked about a call that cannot succeed, and nothing is checked of one that nobody is
// asked about.
func TestCallsThatCannotSucceedAreNotAskedAbout(t *testing.T) {
	for name, tt := range map[string]struct {
		kind      tool.Kind
		why       string
		asked     int
		ran       int32
		wantError string
	}{
		"it can":         {tool.KindWrite, "", 1, 1, ""},
		"it cannot":      {tool.KindWrite, "it does not apply", 0, 0, "it does not apply"},
		"nobody's asked": {tool.KindRead, "it does not apply", 0, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var runs atomic.Int32
			var asks approver
			d, reg := setup(t, tool.DispatcherConfig{Approver: &asks}, checked{echo(t, tool.Definition{Kind: tt.kind}, &runs), tt.why})
			res := call(d, reg, "echo", `{"text":"a"}`)
			if asked := len(asks.briefs); asked != tt.asked || runs.Load() != tt.ran || res.OK != (tt.wantError == "") || !strings.Contains(res.Text(), tt.wantError) || res.NotRun == res.OK {
				t.Errorf("asked %d times, ran %d times, %q (not run: %v); want %d and %d, and %q", asked, runs.Load(), res.Text(), res.NotRun, tt.asked, tt.ran, tt.wantError)
			}
		})
	}
}
