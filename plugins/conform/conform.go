// Package conform checks a plugin's program against the protocol of docs/PLUGINS.md, for
// its author.
//
// It starts the program in its sandbox, as yaya does, and speaks with it as a careful and as
// an impolite kernel. It calls no tool: that might have effects.
package conform

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/plugins/remote"

	"github.com/yaya-ai/yaya/internal/errnos"
)

// answerTime is how long a check waits for an answer.
const answerTime = 5 * time.Second

// Result is the outcome of a check. Err is nil if the plugin has passed it.
type Result struct {
	Check string
	Err   error
}

// Run runs all checks, and reports each as soon as it is known. start starts the program. After
// a check that ends the program, the next one starts it again.
func Run(ctx context.Context, d remote.Description, start func() (*remote.Process, error), report func(Result)) {
	r := &runner{done: ctx.Done(), d: d, start: start}
	defer r.end()
	for _, c := range checks {
		err := r.fresh()
		if err == nil {
			err = c.run(r)
		}
		report(Result{c.name, err})
		if err != nil {
			r.end()
		}
		if ctx.Err() != nil || !r.greeted {
			return // nothing else can pass
		}
	}
}

// check is one check. It finds a program that has answered initialize.
type check struct {
	name string
	run  func(*runner) error
}

var checks = []check{
	{"answers initialize as plugin.toml says", (*runner).initialized},
	{"answers an unknown request with the error -32601", (*runner).unknownMethod},
	{"answers health, or says that it does not know it", (*runner).health},
	{"ignores unknown members", (*runner).unknownMembers},
	{"ignores unknown notifications, and a cancel of nothing", (*runner).notifications},
	{"answers requests that come together", (*runner).together},
	{"refuses a tool that it does not have", (*runner).unknownTool},
	{"decides as a guard, where it guards, and nowhere else", (*runner).guards},
	{"reads a message of 4 MiB", (*runner).large},
	{"answers shutdown, and exits", (*runner).shutdown},
	{"exits when its standard input ends", (*runner).endOfInput},
}

type runner struct {
	done    <-chan struct{} // ends the run
	d       remote.Description
	start   func() (*remote.Process, error)
	p       *remote.Process
	lines   chan []byte // its output; closed at its end
	last    int
	told    remote.InitializeResult
	greeted bool
}

// fresh starts the program, unless it runs.
func (r *runner) fresh() error {
	if r.p != nil {
		return nil
	}
	p, err := r.start()
	if err != nil {
		return err
	}
	r.p, r.lines = p, make(chan []byte, 1024)
	go read(p.Stdout, r.lines)
	raw, err := r.ask("initialize", remote.InitializeParams{
		ABI: remote.ABI, Kernel: remote.Kernel{Version: "0.0.0-test", Protocol: "v0"}, Settings: remote.Settings{Config: map[string]json.RawMessage{}}, StateDir: p.StateDir,
	}, remote.StartTime)
	if err == nil {
		r.told = remote.InitializeResult{}
		err = json.Unmarshal(raw, &r.told)
	}
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	r.greeted = true
	return nil
}

// read sends the lines of a program until its output ends; the runner reads until then.
func read(from io.Reader, lines chan<- []byte) {
	defer close(lines)
	all := bufio.NewScanner(from)
	all.Buffer(make([]byte, 64<<10), remote.MaxLine)
	for all.Scan() {
		lines <- bytes.Clone(all.Bytes())
	}
}

// end ends the program.
func (r *runner) end() {
	if r.p == nil {
		return
	}
	ended := make(chan struct{})
	go func() { // ends with the output
		defer close(ended)
		for range r.lines { //nolint:revive // what it still says does not matter
		}
	}()
	r.p.Kill()
	<-ended
	r.p = nil
}

func (r *runner) write(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := r.p.Stdin.SetWriteDeadline(time.Now().Add(answerTime)); err != nil {
		return err
	}
	_, err = r.p.Stdin.Write(append(line, '\n'))
	if errors.Is(err, errnos.BrokenPipe) {
		return r.ended()
	}
	return err
}

// ended says how the program has ended, with all that it has said, in lines.
func (r *runner) ended() error {
	limit := time.NewTimer(answerTime)
	defer limit.Stop()
	how := "has closed its standard output"
	select {
	case <-r.p.Done():
		how = r.p.Err().Error()
	case <-limit.C:
	case <-r.done:
	}
	said := strings.TrimSpace(r.p.Stderr())
	if said == "" {
		return fmt.Errorf("the program %s, and said nothing on standard error", how)
	}
	return fmt.Errorf("the program %s, and said on standard error:\n%s", how, said)
}

type object = map[string]any

// send sends a request and returns its id.
func (r *runner) send(method string, params any) (int, error) {
	r.last++
	return r.last, r.write(object{"jsonrpc": "2.0", "id": r.last, "method": method, "params": params})
}

// reply is an answer of the program.
type reply struct {
	Version string          `json:"jsonrpc"`
	ID      *int            `json:"id"`
	Method  string          `json:"method"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// get waits for the answer to a request. Requests and notifications of the plugin are passed
// over: nobody publishes its events here.
func (r *runner) get(id int, wait time.Duration) (*reply, error) {
	limit := time.NewTimer(wait)
	defer limit.Stop()
	for {
		select {
		case line, open := <-r.lines:
			if !open {
				return nil, r.ended()
			}
			if len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			var m reply
			if err := json.Unmarshal(line, &m); err != nil || m.Version != "2.0" {
				return nil, fmt.Errorf("standard output has a line that is not a message: %.200q", line)
			}
			switch {
			case m.Method != "":
				continue
			case m.ID == nil || *m.ID != id:
				return nil, fmt.Errorf("an answer to a request that nobody has made: %.200q", line)
			case (m.Result == nil) == (m.Error == nil):
				return nil, fmt.Errorf("an answer with neither a result nor an error, or both: %.200q", line)
			}
			return &m, nil
		case <-limit.C:
			return nil, fmt.Errorf("no answer within %v", wait)
		case <-r.done:
			return nil, context.Canceled
		}
	}
}

// ask sends a request and returns its result.
func (r *runner) ask(method string, params any, wait time.Duration) (json.RawMessage, error) {
	id, err := r.send(method, params)
	if err != nil {
		return nil, err
	}
	m, err := r.get(id, wait)
	if err != nil {
		return nil, err
	}
	if m.Error != nil {
		return nil, fmt.Errorf("the error %d: %.300s", m.Error.Code, m.Error.Message)
	}
	return m.Result, nil
}

// refuses sends a request that must be answered with an error.
func (r *runner) refuses(method string, params any, code int) error {
	id, err := r.send(method, params)
	if err != nil {
		return err
	}
	m, err := r.get(id, answerTime)
	switch {
	case err != nil:
		return err
	case m.Error == nil:
		return fmt.Errorf("got the result %.200s, want an error", m.Result)
	case code != 0 && m.Error.Code != code:
		return fmt.Errorf("got the error %d, want %d", m.Error.Code, code)
	}
	return nil
}

func (r *runner) initialized() error {
	if err := remote.CheckGreeting(r.d, r.told); err != nil {
		return err
	}
	var errs []error
	for _, t := range r.told.Tools {
		errs = append(errs, tool.CheckDefinition(tool.Definition{Name: t.Name, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema}))
	}
	return errors.Join(errs...)
}

func (r *runner) unknownMethod() error {
	return r.refuses("x.no.such.method", object{}, -32601)
}

func (r *runner) health() error {
	id, err := r.send("health", object{})
	if err != nil {
		return err
	}
	m, err := r.get(id, answerTime)
	if err != nil {
		return err
	}
	if m.Error != nil {
		if m.Error.Code != -32601 {
			return fmt.Errorf("got the error %d, want a report or -32601", m.Error.Code)
		}
		return nil
	}
	var h remote.HealthResult
	if err := json.Unmarshal(m.Result, &h); err != nil {
		return err
	}
	switch plugin.Health(h.Status) {
	case plugin.Healthy, plugin.Degraded, plugin.Failing:
		return nil
	}
	return fmt.Errorf("got the status %.40q, want ok, degraded or failed", h.Status)
}

// alive asks something that every plugin answers.
func (r *runner) alive() error { return r.unknownMethod() }

func (r *runner) unknownMembers() error {
	r.last++
	err := r.write(object{"jsonrpc": "2.0", "id": r.last, "method": "health", "params": object{"x_new": []int{1}}, "x_new": true})
	if err != nil {
		return err
	}
	_, err = r.get(r.last, answerTime)
	return err
}

func (r *runner) notifications() error {
	return errors.Join(
		r.write(object{"jsonrpc": "2.0", "method": "x.no.such.notification", "params": object{}}),
		r.write(object{"jsonrpc": "2.0", "method": "cancel", "params": object{"id": 999999}}),
		r.alive(),
	)
}

func (r *runner) together() error {
	const n = 20
	for range n {
		if _, err := r.send("x.no.such.method", object{}); err != nil {
			return err
		}
	}
	open := map[int]bool{}
	for id := r.last - n + 1; id <= r.last; id++ {
		open[id] = true
	}
	limit := time.NewTimer(answerTime)
	defer limit.Stop()
	for len(open) > 0 {
		select {
		case line, more := <-r.lines:
			if !more {
				return r.ended()
			}
			var m reply
			if json.Unmarshal(line, &m) != nil {
				return fmt.Errorf("got %.200q, want an answer", line)
			}
			if m.Method != "" {
				continue
			}
			if m.ID == nil || !open[*m.ID] {
				return fmt.Errorf("got %.200q, want the answer to a request that is open", line)
			}
			delete(open, *m.ID)
		case <-r.done:
			return context.Canceled
		case <-limit.C:
			return fmt.Errorf("%d of %d requests have no answer within %v", len(open), n, answerTime)
		}
	}
	return nil
}

func (r *runner) unknownTool() error {
	if r.d.Category != string(plugin.Tool) {
		return nil
	}
	id, err := r.send("tool.call", remote.CallParams{CallID: "c", Name: "no_such_tool", Args: json.RawMessage("{}"), SessionID: "s", DeadlineMS: 1000})
	if err != nil {
		return err
	}
	m, err := r.get(id, answerTime)
	if err != nil || m.Error != nil {
		return err
	}
	var res remote.CallResult
	if err := json.Unmarshal(m.Result, &res); err != nil || res.OK {
		return errors.Join(fmt.Errorf("got the result %.200s, want an error, or ok: false", m.Result), err)
	}
	return nil
}

// guards asks the plugin about a call and a message. It may decide as it likes, and answers with
// an error at a point that it does not guard.
func (r *runner) guards() error {
	for _, point := range append(plugin.GuardPoints(), "x_no_such_point") {
		params := remote.GuardParams{Point: point, SessionID: "s", DeadlineMS: answerTime.Milliseconds()}
		if point == plugin.GuardTool {
			params.Call = &remote.GuardedCall{CallID: "c", Name: "no_such_tool", Kind: "read", Origin: "loop", Principal: "agent:test", Args: json.RawMessage("{}")}
		} else {
			params.Prompt = "hello"
		}
		if !slices.Contains(r.d.Permissions.Guards, point) {
			if err := r.refuses("guard", params, 0); err != nil {
				return fmt.Errorf("point %s: %w", point, err)
			}
			continue
		}
		raw, err := r.ask("guard", params, answerTime)
		if err == nil {
			_, err = remote.VerdictOf(raw)
		}
		if err != nil {
			return fmt.Errorf("point %s: %w", point, err)
		}
	}
	return nil
}

func (r *runner) large() error {
	return r.refuses("x.no.such.method", object{"text": strings.Repeat("x", 4<<20)}, -32601)
}

// exitTime is how long the program has to exit by itself.
const exitTime = 3 * time.Second

func (r *runner) exits() error {
	limit := time.NewTimer(exitTime)
	defer limit.Stop()
	for {
		select {
		case _, open := <-r.lines:
			if open {
				continue
			}
		case <-limit.C:
			return fmt.Errorf("it runs on for more than %v", exitTime)
		}
		break
	}
	r.end()
	return nil
}

func (r *runner) shutdown() error {
	if _, err := r.ask("shutdown", object{}, answerTime); err != nil {
		return err
	}
	if err := r.p.Stdin.Close(); err != nil {
		return err
	}
	return r.exits()
}

func (r *runner) endOfInput() error {
	if err := r.p.Stdin.Close(); err != nil {
		return err
	}
	return r.exits()
}
