package tool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/kernel/tool"
)

// planned is a tool that prepares its calls, and tells what happens to it.
type planned struct {
	*raw
	log     []string
	prepare func() (*tool.Prepared, error)
	agreed  bool // in advance
}

func (*planned) ObeysContext() {}

func (p *planned) Prepare(context.Context, tool.Call) (*tool.Prepared, error) {
	p.log = append(p.log, "prepared")
	return p.prepare()
}

func (p *planned) PreApproved(call tool.Call) bool { return p.agreed && call.Prepared.Run == "plan" }

type looker struct{ p *planned }

func (l looker) PreToolCall(_ context.Context, call tool.Call, _ tool.Definition) (tool.Verdict, error) {
	l.p.log = append(l.p.log, "hook "+string(call.Bound()))
	return tool.Verdict{}, nil
}

// R18: a call is prepared once, after its arguments were validated and before anybody
// decides; people are asked about what was prepared, the tool runs from that, and what it
// holds is given back however the call ends.
func TestPreparedCalls(t *testing.T) {
	fine := func(p *planned) func() (*tool.Prepared, error) {
		return func() (*tool.Prepared, error) {
			return &tool.Prepared{Shown: json.RawMessage(`{"plan":1}`), Run: "plan", Close: func() { p.log = append(p.log, "closed") }}, nil
		}
	}
	for name, tt := range map[string]struct {
		args    string
		agreed  bool
		answer  error
		prepare func(*planned) func() (*tool.Prepared, error)
		run     func()
		want    string
		kind    tool.ErrorKind
	}{
		"approved":             {`{}`, false, nil, fine, nil, `prepared, hook {"plan":1}, asked {"plan":1}, ran plan approved=true, closed`, ""},
		"agreed to in advance": {`{}`, true, errors.New("nobody"), fine, nil, `prepared, hook {"plan":1}, ran plan approved=false, closed`, ""},
		"rejected":             {`{}`, false, &tool.RejectedError{}, fine, nil, `prepared, hook {"plan":1}, asked {"plan":1}, closed`, tool.ErrRejected},
		"it panics":            {`{}`, true, nil, fine, func() { panic("x") }, `prepared, hook {"plan":1}, closed`, tool.ErrCrashed},
		"bad arguments":        {`[]`, true, nil, fine, nil, ``, tool.ErrValidation},
		"it cannot be done": {`{}`, true, nil, func(*planned) func() (*tool.Prepared, error) {
			return func() (*tool.Prepared, error) {
				return nil, &tool.Failure{Kind: tool.ErrUnavailable, Err: errors.New("no")}
			}
		}, nil, `prepared`, tool.ErrUnavailable},
		"an error": {`{}`, true, nil, func(*planned) func() (*tool.Prepared, error) {
			return func() (*tool.Prepared, error) { return nil, errors.New("no") }
		}, nil, `prepared`, tool.ErrInternal},
		"nothing": {`{}`, true, nil, func(*planned) func() (*tool.Prepared, error) {
			return func() (*tool.Prepared, error) { return nil, nil }
		}, nil, `prepared`, tool.ErrInternal},
		"a panic": {`{}`, true, nil, func(*planned) func() (*tool.Prepared, error) {
			return func() (*tool.Prepared, error) { panic("x") }
		}, nil, `prepared`, tool.ErrCrashed},
	} {
		p := &planned{agreed: tt.agreed}
		p.raw = rawTool("plan", func(_ context.Context, call tool.Call) (tool.Result, error) {
			if tt.run != nil {
				tt.run()
			}
			p.log = append(p.log, fmt.Sprintf("ran %v approved=%v", call.Prepared.Run, call.Prepared.Approved))
			return tool.OK("ok"), nil
		})
		p.def.Kind = tool.KindExec
		p.prepare = tt.prepare(p)
		asks := asker(func(call tool.Call) error {
			p.log = append(p.log, "asked "+string(call.Bound()))
			return tt.answer
		})
		d, reg := setup(t, tool.DispatcherConfig{Approver: asks}, p)
		d.AddHook(looker{p})
		res := call(d, reg, "plan", tt.args)
		if got := strings.Join(p.log, ", "); got != tt.want || res.ErrorKind != tt.kind {
			t.Errorf("%s: %s, kind %q; want %s, kind %q", name, got, res.ErrorKind, tt.want, tt.kind)
		}
		// S-51: the witness learns which calls never ran.
		if want := tt.kind != "" && tt.run == nil; res.NotRun != want || res.Envelope().NotRun != want {
			t.Errorf("%s: NotRun = %v, in the envelope %v, want %v", name, res.NotRun, res.Envelope().NotRun, want)
		}
	}
}

type asker func(call tool.Call) error

func (f asker) Approve(_ context.Context, call tool.Call, _ tool.Definition, _ string) error {
	return f(call)
}

// toucher knows which files it changes.
type toucher struct {
	*raw
	paths []string
}

func (t toucher) Touches(tool.Call) []string { return t.paths }

// allow is a rule of the user's.
type allow struct{}

func (allow) Decide(context.Context, tool.Call, tool.Definition) (tool.Verdict, error) {
	return tool.Verdict{Decision: tool.Allow}, nil
}

// SEC-7: the witness learns of an agent's call that may change the workspace and that
// no person has agreed to, before it runs; when that cannot be noted, it does not run.
func TestUnreviewedChanges(t *testing.T) {
	any := "anything"
	for name, tt := range map[string]struct {
		kind     tool.Kind
		provider string
		paths    []string
		touches  bool
		ask      bool
		origin   tool.Origin
		fail     error
		want     string
	}{
		"by a rule":               {kind: tool.KindExec, want: any},
		"approved":                {kind: tool.KindExec, ask: true},
		"it writes":               {kind: tool.KindWrite, want: any},
		"of no known kind":        {kind: "odd", want: any},
		"it reads":                {kind: tool.KindRead},
		"over the network":        {kind: tool.KindNetwork},
		"of a server":             {kind: tool.KindNetwork, provider: "files", want: any},
		"of a server, which asks": {kind: tool.KindNetwork, provider: "files", ask: true},
		"of a client":             {kind: tool.KindNetwork, provider: "files", origin: tool.OriginMCP},
		"typed":                   {kind: tool.KindExec, origin: tool.OriginCLI},
		"these files":             {kind: tool.KindWrite, touches: true, paths: []string{"a", "b"}, want: "[a b]"},
		"none":                    {kind: tool.KindExec, touches: true},
		"it cannot be noted":      {kind: tool.KindExec, fail: errors.New("the disk is full"), want: any},
	} {
		ran, told := false, ""
		r := rawTool("x", func(context.Context, tool.Call) (tool.Result, error) {
			ran = true
			return tool.OK("ok"), nil
		})
		r.def.Kind = tt.kind
		var tl tool.Tool = r
		if tt.touches {
			tl = toucher{r, tt.paths}
		}
		reg := new(tool.Registry)
		if errs := reg.Replace("files", nil); errs != nil {
			t.Fatal(errs)
		}
		if tt.provider != "" {
			if errs := reg.Replace(tt.provider, []tool.Provided{{Tool: tl}}); errs != nil {
				t.Fatal(errs)
			}
		} else if err := reg.Register(tl); err != nil {
			t.Fatal(err)
		}
		cfg := tool.DispatcherConfig{Registry: reg, Policy: allow{}, Approver: asker(func(tool.Call) error { return nil })}
		if tt.ask {
			cfg.Policy = nil
		}
		d := tool.NewDispatcher(cfg)
		d.SetWitness(func(c tool.Change) (func() error, error) {
			if ran || c.SessionID != "s" || c.Tool != "x" {
				t.Errorf("%s: told of %+v, after it ran: %v", name, c, ran)
			}
			if told = fmt.Sprint(c.Paths); c.Any {
				told = any
			}
			return func() error { return nil }, tt.fail
		})
		origin := tt.origin
		if origin == "" {
			origin = tool.OriginLoop
		}
		res := d.Call(t.Context(), reg.Snapshot(), tool.Call{Name: "x", SessionID: "s", Origin: origin, Caller: tool.LocalOwner})
		if told != tt.want || ran == (tt.fail != nil) || res.OK != ran {
			t.Errorf("%s: told %q, ran %v, %+v; want %q", name, told, ran, res, tt.want)
		}
		if err := d.Close(context.Background()); err != nil {
			t.Errorf("%s: Close of the dispatcher = %v, want no error", name, err)
		}
	}
}

// SEC-7: the witness is called again when the tool has ended, in any way, and
// not before; its error is logged then.
func TestUnreviewedChangesEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		run      func(context.Context) error
		obedient bool
		closed   bool
		fail     error
		kind     tool.ErrorKind
		want     string
	}{
		"it ends":              {run: func(context.Context) error { return nil }, want: "noted, began, ended, noted"},
		"it ends, obedient":    {run: func(context.Context) error { return nil }, obedient: true, want: "noted, began, ended, noted"},
		"it fails":             {run: func(context.Context) error { return errors.New("no") }, obedient: true, kind: tool.ErrInternal, want: "noted, began, ended, noted"},
		"it panics":            {run: func(context.Context) error { panic("x") }, kind: tool.ErrCrashed, want: "noted, began, ended, noted"},
		"it panics, obedient":  {run: func(context.Context) error { panic("x") }, obedient: true, kind: tool.ErrCrashed, want: "noted, began, ended, noted"},
		"it outlasts its time": {run: func(context.Context) error { time.Sleep(time.Hour); return nil }, kind: tool.ErrTimeout, want: "noted, began, result, ended, noted"},
		"it does not begin":    {run: func(context.Context) error { return nil }, closed: true, kind: tool.ErrCancelled, want: "noted, noted"},
		"it cannot be noted":   {run: func(context.Context) error { return nil }, fail: errors.New("the disk is full"), want: "noted, began, ended, noted"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var log []string
			note := func(what string) {
				mu.Lock()
				defer mu.Unlock()
				log = append(log, what)
			}
			r := rawTool("x", func(ctx context.Context, _ tool.Call) (tool.Result, error) {
				note("began")
				defer note("ended")
				return tool.OK("ok"), tt.run(ctx)
			})
			r.def.Kind = tool.KindWrite
			var tl tool.Tool = r
			if tt.obedient {
				tl = &obedient{r}
			}
			var errs bytes.Buffer
			d, reg := setup(t, tool.DispatcherConfig{Policy: allow{}, Log: zerolog.New(&errs)}, tl)
			d.SetWitness(func(tool.Change) (func() error, error) {
				note("noted")
				return func() error { note("noted"); return tt.fail }, nil
			})
			if tt.closed {
				if err := d.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			res := call(d, reg, "x", `{}`)
			if res.ErrorKind == tool.ErrTimeout {
				note("result")
			}
			if err := d.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(log, ", "); got != tt.want || res.ErrorKind != tt.kind {
				t.Errorf("%s: %s, kind %q; want %s, kind %q", name, got, res.ErrorKind, tt.want, tt.kind)
			}
			if got := strings.Contains(errs.String(), "the disk is full"); got != (tt.fail != nil) {
				t.Errorf("%s: logged %s", name, errs.String())
			}
		})
	}
}
