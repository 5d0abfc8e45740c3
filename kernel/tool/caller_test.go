package tool_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/yaya-ai/yaya/kernel/tool"
)

// COD-5: a call without a caller is refused before anybody is asked, whatever its
// origin, and does not run.
func TestNobodyCallsNothing(t *testing.T) {
	for _, origin := range []tool.Origin{tool.OriginLoop, tool.OriginMCP, tool.OriginCLI, tool.OriginWire, tool.OriginAPI} {
		var runs atomic.Int32
		d, reg := setup(t, tool.DispatcherConfig{}, echo(t, tool.Definition{Kind: tool.KindRead, InFolder: true}, &runs))
		var asked gatekeeper
		d.SetGate(&asked)
		call := tool.Call{ID: "c", Name: "echo", Args: []byte(`{"text":"x"}`), SessionID: "s", Origin: origin}
		if res := d.Call(t.Context(), reg.Snapshot(), call); res.ErrorKind != tool.ErrRejected || !strings.Contains(res.Text(), "denied: the caller of") {
			t.Errorf("%s: got %s %q, want a refusal", origin, res.ErrorKind, res.Text())
		}
		if runs.Load() != 0 || len(asked) != 0 {
			t.Errorf("%s: the tool ran %d times, and the gate was asked about %q, want neither", origin, runs.Load(), asked)
		}
		call.Caller = tool.Caller{Principal: "device:phone"}
		if res := d.Call(t.Context(), reg.Snapshot(), call); !res.OK {
			t.Errorf("%s: somebody's call: %s", origin, res.Text())
		}
	}
}

// gatekeeper admits every call, and notes which it was asked about.
type gatekeeper []string

func (g *gatekeeper) Admit(_ context.Context, _ tool.Call, def tool.Definition) error {
	*g = append(*g, def.Name)
	return nil
}

type rule func(tool.Definition) (tool.Verdict, error)

func (r rule) Decide(_ context.Context, _ tool.Call, def tool.Definition) (tool.Verdict, error) {
	return r(def)
}

// A call that the rules deny is refused before anybody is asked whether its folder is
// trusted, also one that was agreed to in advance.
func TestNobodyIsAskedAboutWhatIsDenied(t *testing.T) {
	for name, tt := range map[string]struct {
		rule     rule
		prepares bool
		asked    int
		runs     bool
	}{
		"allowed":                    {func(tool.Definition) (tool.Verdict, error) { return tool.Verdict{Decision: tool.Allow}, nil }, false, 1, true},
		"denied":                     {func(tool.Definition) (tool.Verdict, error) { return tool.Verdict{Decision: tool.Deny}, nil }, false, 0, false},
		"denied, agreed to":          {func(tool.Definition) (tool.Verdict, error) { return tool.Verdict{Decision: tool.Deny}, nil }, true, 0, false},
		"rules that cannot be read":  {func(tool.Definition) (tool.Verdict, error) { return tool.Verdict{}, errors.New("damaged") }, false, 0, false},
		"its kind denied":            {noExec, false, 0, false},
		"its kind denied, agreed to": {noExec, true, 0, false},
	} {
		ran := false
		r := rawTool("x", func(context.Context, tool.Call) (tool.Result, error) {
			ran = true
			return tool.OK("ok"), nil
		})
		r.def.Kind, r.def.InFolder = tool.KindExec, true
		var tl tool.Tool = r
		if tt.prepares {
			tl = &planned{raw: r, agreed: true, prepare: func() (*tool.Prepared, error) { return &tool.Prepared{Run: "plan"}, nil }}
		}
		d, reg := setup(t, tool.DispatcherConfig{Policy: tt.rule}, tl)
		var asked gatekeeper
		d.SetGate(&asked)
		if res := call(d, reg, "x", `{}`); len(asked) != tt.asked || ran != tt.runs || res.OK != tt.runs {
			t.Errorf("%s: asked about %q, ran %v, %+v; want %d questions, ran %v", name, asked, ran, res, tt.asked, tt.runs)
		}
	}
}

func noExec(def tool.Definition) (tool.Verdict, error) {
	if def.Kind == tool.KindExec {
		return tool.Verdict{Decision: tool.Deny, Reason: "nothing is run"}, nil
	}
	return tool.Verdict{Decision: tool.Allow}, nil
}

// MIS-7: patterns of principals cover what they say and no more; a slash is a
// character like others.
func TestPrincipals(t *testing.T) {
	for _, c := range []struct {
		pattern, principal string
		want               bool
	}{
		{"owner", "owner", true},
		{"owner", "device:owner", false},
		{"owner", "", false},
		{"*", "", false},
		{"*", "owner", true},
		{"*", "issuer:https://id.example/u/1", true},
		{"device:*", "device:phone", true},
		{"device:*", "issuer:device:phone", false},
		{"device:phone", "device:phone2", false},
		{"device:phone?", "device:phone2", true},
		{"device:[a-f]*", "device:desk", true},
		{"device:[a-f]*", "device:phone", false},
		{"issuer:https://id.example/*", "issuer:https://id.example/u/1", true},
		{"issuer:https://id.example/?/1", "issuer:https://id.example/u/1", true},
		{"issuer:https://id.example*", "issuer:https://id.example.org/1", true}, // as it says
		{"issuer:a[b", "issuer:a[b", true},                                      // itself, if nothing else
		{"issuer:a*c", "issuer:a*c", true},
	} {
		if got := tool.MatchPrincipal(c.pattern, c.principal); got != c.want {
			t.Errorf("MatchPrincipal(%q, %q) = %v, want %v", c.pattern, c.principal, got, c.want)
		}
	}
	for pattern, ok := range map[string]bool{
		"owner": true, "device:phone": true, "issuer:a/b": true, "agent:react": true, "gateway:example.com/phone": true, "*": true, "dev*": true, "[di]*": true,
		"": false, "Owner": false, "owners": false, "devices:phone": false, "device:": false, "phone": false, "device:[": false, "issuer:[a/b]": false,
	} {
		if err := tool.CheckPrincipal(pattern); (err == nil) != ok {
			t.Errorf("CheckPrincipal(%q) = %v, want it to be %v", pattern, err, ok)
		}
	}
	for pattern, hint := range map[string]string{"Owner": "did you mean owner?", "phone": "did you mean device:phone?", "devices:phone": ""} {
		err := tool.CheckPrincipal(pattern)
		if err == nil || strings.Contains(err.Error(), "did you mean") != (hint != "") || !strings.Contains(err.Error(), hint) {
			t.Errorf("CheckPrincipal(%q) = %v, want %q in it", pattern, err, hint)
		}
	}
}

// R7, R22: on surfaces without sessions of their own, every principal has one.
func TestSessionsOfSurfaces(t *testing.T) {
	session := func(principal string) string { return tool.Caller{Principal: principal}.Session("wire") }
	if got := session(tool.Owner); got != "wire" {
		t.Errorf("the owner's: got %q, want %q", got, "wire")
	}
	seen := map[string]string{}
	for _, p := range []string{"device:a", "device:b", "issuer:a", "agent:a", "device:A", tool.Owner} {
		if s := session(p); seen[s] != "" {
			t.Errorf("%s and %s share %s", p, seen[s], s)
		} else if seen[s] = p; session(p) != s {
			t.Errorf("%s has two sessions", p)
		}
	}
}

// Behind a call of a server there is nobody who has agreed to it, and its own tools are
// not its to call.
func TestCallsOfServers(t *testing.T) {
	def := tool.Definition{Name: "b__t", Identity: tool.Identity{Provider: "b", Tool: "t"}}
	for principal, want := range map[string]tool.Decision{tool.Owner: tool.Allow, "device:x": tool.Allow, tool.ServerPrefix + "a": tool.Ask} {
		got, err := tool.DefaultPolicy{}.Decide(t.Context(), tool.Call{Origin: tool.OriginMCP, Caller: tool.Caller{Principal: principal}}, def)
		if err != nil || got.Decision != want {
			t.Errorf("a call by %s: got %v, %v; want %v", principal, got.Decision, err, want)
		}
	}
	who := tool.Caller{Principal: tool.ServerPrefix + "a", But: "a"}
	for provider, want := range map[string]bool{"a": false, "b": true, "": true} {
		if got := who.Reaches(provider); got != want {
			t.Errorf("Reaches(%q) = %v, want %v", provider, got, want)
		}
	}
	if err := tool.CheckPrincipal("server:a"); err != nil {
		t.Errorf("a rule about server:a: %v", err)
	}
}
