package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/sessions"
	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/members"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Bounds of a task.
const (
	maxTask     = 256 << 10 // bytes of its text
	maxTaskTime = 30 * time.Minute
	maxTaskText = 16 << 10 // bytes of the agent's text in the structured result; the content has all of it
	maxTaskLine = 200      // bytes of a line of progress
	taskCheck   = 2 * time.Second

	// New sessions of one principal: so many at once, and then one in so much time.
	taskBurst     = 20
	taskEach      = 15 * time.Second
	maxTaskRaters = 1024
)

// The causes for which a task is cancelled.
var (
	errTaskTime    = fmt.Errorf("it took longer than %v", maxTaskTime)
	errTaskRevoked = errors.New("the client may no longer give tasks to agents")
)

// taskTool is the tool by which MCP clients give tasks to agents. Its own call changes nothing: the
// calls of the agent go through the dispatcher, one by one.
type taskTool struct {
	core  *core
	chats *sessions.Service

	mu    sync.Mutex
	rates map[string]*rate.Limiter // of new sessions, by principal
}

func newTaskTool(c *core, s *sessions.Service) *taskTool {
	return &taskTool{core: c, chats: s, rates: map[string]*rate.Limiter{}}
}

const taskSchema = `{"type":"object","properties":{` +
	`"prompt":{"type":"string","minLength":1,"maxLength":262144,"description":"The task, with everything that the agent needs to know"},` +
	`"session":{"type":"string","description":"session_id of an earlier task, to go on in its conversation"},` +
	`"folder":{"type":"string","description":"Absolute path of the folder to work in; by default the one that yaya runs in. Only folders that the user of yaya has opened. A session keeps its folder."}},` +
	`"required":["prompt"],"additionalProperties":false}`

const taskOutput = `{"type":"object","properties":{` +
	`"session_id":{"type":"string","description":"Goes on with the conversation"},` +
	`"turn_id":{"type":"string"},` +
	`"text":{"type":"string","description":"The agent's last message, cut after 16 KiB"},` +
	`"steps":{"type":"integer","description":"Calls of the model"},` +
	`"usage":{"type":"object","description":"Tokens"},` +
	`"cost_usd":{"type":"number","description":"As far as the prices of the models are known"}},` +
	`"required":["session_id","turn_id","text","steps","usage","cost_usd"]}`

// Definition implements [tool.Tool].
func (*taskTool) Definition() tool.Definition {
	return tool.Definition{
		Name: tool.RunTool, Identity: tool.Identity{Tool: tool.RunTool}, Title: "Give a task to an agent", Kind: tool.KindNetwork, Timeout: tool.OwnTimeout, Validate: true,
		Description: "Gives a task to an agent of yaya, which works on its own with yaya's tools, in a folder if it has one, and returns its last message. It reports the agent's tool calls as progress. Calls that need approval wait for the user of yaya. A task may take minutes; cancelling the call cancels it.",
		InputSchema: json.RawMessage(taskSchema), OutputSchema: json.RawMessage(taskOutput),
		Annotations: json.RawMessage(`{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"openWorldHint":true}`),
	}
}

// ObeysContext implements [tool.Obedient].
func (*taskTool) ObeysContext() {}

// ApprovalBrief implements [tool.ApprovalBriefer].
func (*taskTool) ApprovalBrief(call tool.Call) string {
	var a taskArgs
	if json.Unmarshal(call.Args, &a) != nil {
		return "give a task to an agent"
	}
	return "give a task to an agent: " + a.Prompt
}

type taskArgs struct {
	Prompt  string `json:"prompt"`
	Session string `json:"session"`
	Folder  string `json:"folder"`
}

// Invoke implements [tool.Tool].
func (t *taskTool) Invoke(ctx context.Context, call tool.Call) (tool.Result, error) {
	var a taskArgs
	if err := members.Decode(call.Args, &a); err != nil {
		return tool.Fail(tool.ErrValidation, "invalid arguments for %s: %v", tool.RunTool, err), nil
	}
	switch {
	case strings.TrimSpace(a.Prompt) == "" || len(a.Prompt) > maxTask:
		return tool.Fail(tool.ErrValidation, "prompt must have between 1 and %d bytes", maxTask), nil
	case a.Session != "" && a.Folder != "":
		return tool.Fail(tool.ErrValidation, "a session keeps its folder: leave out folder, or leave out session to begin another one"), nil
	}
	through, ok := call.Native.Peer.(interface{ Profile() string })
	if !ok {
		return tool.Result{}, errors.New("the profile of the client is unknown")
	}
	who := sessions.Client{Principal: call.Caller.Principal, Profile: through.Profile()}
	release, err := t.core.tasks.take(call)
	if err != nil {
		return tool.Fail(tool.ErrRejected, "%v", err), nil
	}
	defer release()
	id := a.Session
	if id == "" {
		var res tool.Result
		if id, res, err = t.session(who, a.Folder); id == "" {
			return res, err
		}
	} else if err := t.chats.Begun(id, who); err != nil {
		// Before the session is busy with this call: its client would be refused meanwhile, and the
		// progress of its agent, and the questions about it, would come here.
		return t.result(id, loop.Outcome{}, err)
	}
	work, end, ok := t.core.tasks.begin(id, call)
	if !ok {
		return tool.Fail(tool.ErrRejected, "%v", busyTask(id)), nil
	}
	defer end()
	out, err := t.work(ctx, work, id, a.Prompt, who)
	return t.result(id, out, err)
}

// session begins a session for a client; without one, res and err say why.
func (t *taskTool) session(who sessions.Client, folder string) (id string, res tool.Result, err error) {
	dir, err := t.folder(who.Principal, folder)
	if err != nil {
		return "", tool.Fail(tool.ErrRejected, "%v", err), nil
	}
	if !t.limiter(who.Principal).Allow() {
		return "", tool.Fail(tool.ErrRejected, "too many new sessions, one each %v: go on in one that is there (session), or try again later", taskEach), nil
	}
	id, err = t.chats.Begin(dir, who)
	return id, tool.Result{}, err
}

// folder returns the folder that a client's agent works in. Agents read there unasked, so it has
// to be one that its user has opened, whoever the client is: its model asks, and not a person.
func (t *taskTool) folder(principal, dir string) (string, error) {
	st := t.core.st
	if dir == "" {
		at, err := st.opened(principal, clientsOfMCP, st.workspace)
		if err != nil {
			return session.Nowhere, nil //nolint:nilerr // it converses, without files
		}
		return at, nil
	}
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("folder %q is not an absolute path", Printable(dir, 100))
	}
	return st.opened(principal, clientsOfMCP, dir)
}

const clientsOfMCP = "MCP clients"

// limiter returns what limits the new sessions of a principal.
func (t *taskTool) limiter(principal string) *rate.Limiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.rates[principal]
	if l == nil {
		if len(t.rates) >= maxTaskRaters {
			for p, other := range t.rates {
				if other.Tokens() >= taskBurst { // as a new one
					delete(t.rates, p)
				}
			}
		}
		l = rate.NewLimiter(rate.Every(taskEach), taskBurst)
		t.rates[principal] = l
	}
	return l
}

func busyTask(id string) error {
	return fmt.Errorf("the agent of session %s works on something else: wait until it has ended, or leave out session to begin another one", id)
}

// work has the agent work on a task, and reports what it does.
func (t *taskTool) work(ctx context.Context, x *task, id, prompt string, who sessions.Client) (loop.Outcome, error) {
	ctx, timeout := context.WithTimeoutCause(ctx, maxTaskTime, errTaskTime)
	defer timeout()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tell := func(string) {}
	settled := func() {} // once it returns, no more lines come
	if x.call.Progress != nil {
		n := 0.0
		tell = func(line string) {
			n++
			x.call.Progress(tool.Progress{Progress: n, Message: Printable(line, maxTaskLine)})
		}
		calls, err := bus.On(t.core.kernel.Bus, bus.SubscribeOptions{Name: "mcp-task", Filter: func(ev event.Event) bool { return event.Root(ev.SessionID) == id }}, event.ToolCallStart,
			func(_ context.Context, _ event.Event, c event.ToolCall) error {
				t.core.tasks.say(id, c.Name+" "+string(c.Args))
				return nil
			})
		if err != nil {
			return loop.Outcome{}, err
		}
		settled = func() { calls.Drain(ctx) }
		defer calls.Close()
	}
	type ended struct {
		out loop.Outcome
		err error
	}
	done := make(chan ended, 1) // the loop below waits for it
	go func() {
		out, err := t.chats.Run(ctx, id, prompt, who, func(dir string) error {
			if dir == session.Nowhere {
				return nil
			}
			_, err := t.core.st.opened(who.Principal, clientsOfMCP, dir)
			return err
		})
		done <- ended{out, err}
	}()
	tick := time.NewTicker(taskCheck)
	defer tick.Stop()
	for {
		select {
		case line := <-x.lines:
			tell(line)
		case <-tick.C: // the task may outlive the client's request
			if !x.call.Caller.May(string(auth.SessionsWrite)) {
				cancel(errTaskRevoked)
			}
		case e := <-done:
			settled()
			for len(x.lines) > 0 { // nobody else takes them
				tell(<-x.lines)
			}
			return e.out, e.err
		}
	}
}

// result returns what a client learns of the end of a task.
func (t *taskTool) result(id string, out loop.Outcome, err error) (tool.Result, error) {
	switch {
	case errors.Is(err, sessions.ErrNotBegun):
		return tool.Fail(tool.ErrRejected, "session %q does not exist, or you have not begun it: leave out session to begin one", Printable(id, 100)), nil
	case errors.Is(err, loop.ErrBusy):
		return tool.Fail(tool.ErrRejected, "%v", busyTask(id)), nil
	case err != nil:
		return tool.Fail(tool.ErrTool, "the task was not begun in session %s: %v", id, err), nil
	case out.Err != nil:
		kind := tool.ErrTool
		switch {
		case errors.Is(out.Err, errTaskTime):
			kind = tool.ErrTimeout
		case out.Kind == "cancelled":
			kind = tool.ErrCancelled
		}
		return tool.Fail(kind, "the agent did not finish: %v; session %s has what it did, and goes on with another call", out.Err, id), nil
	}
	text := out.Text
	if len(text) > maxTaskText {
		text = cut.Bytes(text, maxTaskText) + "\n[cut: the content has more]"
	}
	structured, err := json.Marshal(struct {
		Session string      `json:"session_id"`
		Turn    string      `json:"turn_id"`
		Text    string      `json:"text"`
		Steps   int         `json:"steps"`
		Usage   event.Usage `json:"usage"`
		Cost    float64     `json:"cost_usd"`
	}{id, out.TurnID, text, out.Steps, out.Usage, out.CostUSD})
	if err != nil {
		return tool.Result{}, err
	}
	about := fmt.Sprintf("session_id %s, %s", id, worded.Count(out.Steps, "step", "steps"))
	if out.CostUSD > 0 {
		about += fmt.Sprintf(", $%.4f", out.CostUSD)
	}
	res := tool.OK("the agent has finished", tool.Text(cmp.Or(out.Text, "(the agent said nothing)")), tool.Text(about))
	res.Structured = structured
	return res, nil
}
