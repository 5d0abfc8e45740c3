package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// maxWait bounds how long shell_output waits.
const maxWait = 10 * time.Minute

// registerJobTools registers the tools for commands in the background. They count as reading: they
// reach nothing but commands that this session was allowed to start.
func (p *Plugin) registerJobTools(c plugin.Context) error {
	out, err := tool.New(tool.Definition{
		Name: "shell_output", Title: "Output of a command", Kind: tool.KindRead, ForAgents: true, Timeout: tool.OwnTimeout,
		Description: "Returns what a command in the background has written since the last look, and whether it still runs. It can wait for output, or for the end.",
	}, p.output)
	if err != nil {
		return err
	}
	stop, err := tool.New(tool.Definition{
		Name: "shell_stop", Title: "Stop a command", Kind: tool.KindRead, ForAgents: true, Timeout: tool.OwnTimeout,
		Description: "Ends a command in the background with everything that it has started: by SIGTERM, and by SIGKILL if that does not help. Returns the rest of its output.",
	}, p.stopJob)
	if err != nil {
		return err
	}
	return errors.Join(c.RegisterTool(obedient{out}), c.RegisterTool(obedient{stop}))
}

type outputArgs struct {
	ID    string `json:"id" jsonschema:"of the command, from the result of shell"`
	Wait  int    `json:"wait_seconds,omitempty" jsonschema:"how long to wait for new output, if there is none; 0 by default, 600 at most"`
	ToEnd bool   `json:"until_end,omitempty" jsonschema:"wait for the end of the command instead"`
}

type stopArgs struct {
	ID string `json:"id" jsonschema:"of the command, from the result of shell"`
}

// jobState is the structured part of a result.
type jobState struct {
	ID       string `json:"id"`
	Running  bool   `json:"running"`
	ExitCode *int   `json:"exit_code,omitempty"`
}

func (p *Plugin) output(ctx context.Context, call tool.Call, a outputArgs) (tool.Result, error) {
	j, err := p.jobs.find(call.SessionID, a.ID)
	if err != nil {
		return tool.Fail(tool.ErrNotFound, "%v", err), nil
	}
	if err := j.wait(ctx, time.Duration(min(max(a.Wait, 0), int(maxWait/time.Second)))*time.Second, a.ToEnd); err != nil {
		return tool.Result{}, err
	}
	return p.told(j)
}

func (p *Plugin) stopJob(ctx context.Context, call tool.Call, a stopArgs) (tool.Result, error) {
	j, err := p.jobs.find(call.SessionID, a.ID)
	if err != nil {
		return tool.Fail(tool.ErrNotFound, "%v", err), nil
	}
	j.mu.Lock()
	j.stopped = j.stopped || j.end == nil
	j.mu.Unlock()
	j.halt()
	select {
	case <-j.done:
	case <-ctx.Done(): // it ends all the same
		return tool.Result{}, context.Cause(ctx)
	}
	return p.told(j)
}

// wait waits until there is something to read; with toEnd, until the job is over.
func (j *job) wait(ctx context.Context, limit time.Duration, toEnd bool) error {
	if limit == 0 {
		return nil
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		j.mu.Lock()
		news, enough := j.news, j.end != nil || (!toEnd && len(j.out.data) > 0)
		j.mu.Unlock()
		if enough {
			return nil
		}
		select {
		case <-news:
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// told returns what is new of a job. With its end, the job is forgotten.
func (p *Plugin) told(j *job) (tool.Result, error) {
	text, end := j.read()
	state := jobState{ID: j.id, Running: end == nil}
	brief := fmt.Sprintf("has run for %v", time.Since(j.began).Round(time.Second))
	if end != nil {
		j.mu.Lock()
		brief = j.how()
		j.mu.Unlock()
		if !end.timedOut && end.code >= 0 {
			state.ExitCode = &end.code
		}
		for _, n := range end.notes {
			text = onLines(text, n)
		}
		p.jobs.drop(j)
	}
	res := tool.OK(j.id+": "+brief, tool.Text(onLines(text, "["+brief+"]")))
	var err error
	res.Structured, err = json.Marshal(state)
	return res, err
}
