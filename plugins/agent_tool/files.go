package agent_tool //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/agentfile"
	"github.com/yaya-ai/yaya/internal/agentskill"
	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/members"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Bounds of the note on sub-agents.
const (
	maxNote        = 8 << 10 // bytes
	maxNoteSummary = 300     // characters of a description
	maxBroken      = 20      // files that the health check names
)

// noteAgents is the name of the note.
const noteAgents = "sub-agents"

// Files are those that describe sub-agents. The zero value has none.
type Files struct {
	// Open opens the folder that a session works in, if it is trusted; otherwise it is nil.
	Open func(session string) (in *agentskill.Folder, done func())
	// Look is Open for the note on them, which a request of a model has; nil means Open.
	Look func(session string) (in *agentskill.Folder, done func())
	// User is the folder of the user's files.
	User string
	// Restricted says why the file of the session's folder that describes a sub-agent is not read, with
	// the remedy; "" if the folder is trusted, or has no such file. It may be nil.
	Restricted func(session, name string) string
	// Known are the tools that the list of a file can name. Without it, no name is checked.
	Known func() *tool.Snapshot
}

func (f Files) look(session string) agentfile.Set { return f.in(f.Open, session) }

// noted is look for the note.
func (f Files) noted(session string) agentfile.Set {
	if f.Look == nil {
		return f.look(session)
	}
	return f.in(f.Look, session)
}

func (f Files) in(open func(session string) (*agentskill.Folder, func()), session string) agentfile.Set {
	if open == nil {
		return agentfile.Look(nil, f.User)
	}
	in, done := open(session)
	defer done()
	return agentfile.Look(in, f.User)
}

// unknown is an error if the list of a file names tools that do not exist. A server's tool, with two
// underscores in its name, is not checked: its server may be stopped or not connected.
func (f Files) unknown(of agentfile.File) error {
	if f.Known == nil {
		return nil
	}
	all := f.Known()
	for _, name := range of.Tools {
		if _, ok := all.Lookup(name); ok || strings.Contains(name, "__") {
			continue
		}
		if _, ok := all.Withheld(name); ok {
			continue
		}
		var own []string
		for e := range all.All() {
			own = append(own, e.Def.Name)
		}
		return fmt.Errorf("tools has %q, and no tool has this name%s", name, members.Meant(name, own))
	}
	return nil
}

// usable moves the files that no call can use as they are to the broken ones.
func (p *Plugin) usable(c plugin.Context, all agentfile.Set) agentfile.Set {
	out := agentfile.Set{Broken: slices.Clone(all.Broken)}
	for _, f := range all.Files {
		err := p.files.unknown(f)
		if err == nil {
			err = mayUse(c, f.Model)
		}
		if err != nil {
			out.Broken = append(out.Broken, agentfile.Broken{Name: f.Name, Path: f.Path, Project: f.Project, Reason: err.Error()})
			continue
		}
		out.Files = append(out.Files, f)
	}
	return out
}

// find returns the file of a sub-agent. The error names those that can be used.
func (t agentTool) find(session, name string) (agentfile.File, error) {
	all := t.p.files.look(session)
	f, err := all.Find(name)
	if err == nil {
		return f, nil // which a call that names another model may be able to use
	}
	if t.p.files.Restricted != nil {
		if why := t.p.files.Restricted(session, name); why != "" {
			return f, fmt.Errorf("no sub-agent %.70q: %s", name, why)
		}
	}
	_, err = t.p.usable(t.c, all).Find(name)
	return f, err
}

// HealthCheck implements [plugin.HealthChecker]: it names the files that cannot be used, of the user and
// of the folder that yaya works in.
func (p *Plugin) HealthCheck(_ context.Context, c plugin.Context) plugin.HealthReport {
	return health(p.usable(c, p.files.look("")))
}

// Folder is HealthCheck for the files of one folder.
func (p *Plugin) Folder(in *agentskill.Folder) plugin.HealthReport {
	c := p.context.Load()
	if c == nil {
		return health(agentfile.Set{})
	}
	return health(p.usable(*c, agentfile.Look(in, "")))
}

func health(set agentfile.Set) plugin.HealthReport {
	var details []plugin.HealthCheck
	for _, b := range set.Broken {
		details = append(details, plugin.HealthCheck{Name: fmt.Sprintf("%+q", b.Path), Status: plugin.Degraded, Message: b.Reason})
	}
	if len(details) == 0 {
		return plugin.HealthReport{Status: plugin.Healthy, Summary: fmt.Sprintf("files of sub-agents: %d", len(set.Files))}
	}
	summary := fmt.Sprintf("files of sub-agents: %d; broken: %d", len(set.Files), len(details))
	return plugin.HealthReport{Status: plugin.Degraded, Summary: summary, Details: details[:min(len(details), maxBroken)]}
}

// Note tells a model which sub-agents files describe; its text is empty without files. Those that cannot
// be used are left out: a call of one fails.
func (p *Plugin) Note(session string) event.TurnNote {
	note := event.TurnNote{Name: noteAgents}
	c := p.context.Load()
	if c == nil {
		return note
	}
	all := p.usable(*c, p.files.noted(session)).Files
	if len(all) == 0 {
		return note
	}
	var b strings.Builder
	b.WriteString("For the argument agent of the tool agent, with what files say about them:")
	for i, f := range all {
		line := fmt.Sprintf("\n- %s: %q", f.Name, cut.Line(f.Description, maxNoteSummary))
		if b.Len()+len(line) > maxNote {
			fmt.Fprintf(&b, "\n… %d more", len(all)-i)
			break
		}
		b.WriteString(line)
	}
	note.Text = b.String()
	return note
}

// chosen is the sub-agent of a call.
type chosen struct {
	file  *agentfile.File // nil without one
	tools []string        // that it gets at most; nil means all
	model string          // "" for that of its session
}

// errNotPrepared is returned for a call that was not prepared: nobody can have seen the file.
var errNotPrepared = errors.New("the call was not prepared")

// of returns the sub-agent of a call.
func of(call tool.Call, a args) (chosen, error) {
	if call.Prepared != nil {
		if c, ok := call.Prepared.Run.(chosen); ok {
			return c, nil
		}
	}
	if a.Agent != "" {
		return chosen{}, errNotPrepared
	}
	return chosen{tools: a.Tools, model: a.Model}, nil
}

// Prepare implements [tool.Preparer]: it reads the file of the sub-agent, and shows which it is. A call
// that starts none fails here, before anybody is asked about it.
func (t agentTool) Prepare(_ context.Context, call tool.Call) (*tool.Prepared, error) {
	var a args
	if err := json.Unmarshal(call.Args, &a); err != nil {
		return nil, &tool.Failure{Kind: tool.ErrValidation, Err: err}
	}
	if why := unfit(t.c, call, a); why != nil {
		return nil, why
	}
	if a.Agent == "" {
		return &tool.Prepared{Shown: call.Args, Run: chosen{tools: a.Tools, model: a.Model}}, nil
	}
	f, err := t.find(call.SessionID, a.Agent)
	if err != nil {
		return nil, &tool.Failure{Kind: tool.ErrNotFound, Err: err}
	}
	a.Model = cmp.Or(a.Model, f.Model)
	err = t.p.files.unknown(f)
	if err == nil && a.Model == f.Model {
		err = mayUse(t.c, f.Model)
	}
	if err != nil {
		return nil, &tool.Failure{Kind: tool.ErrValidation, Err: fmt.Errorf("the sub-agent %q cannot be used: %s: %w", f.Name, f.Path, err)}
	}
	c := chosen{file: &f, tools: f.Tools, model: a.Model}
	switch {
	case f.Tools == nil:
		c.tools = a.Tools
	case a.Tools != nil:
		c.tools = slices.DeleteFunc(slices.Clone(f.Tools), func(n string) bool { return !slices.Contains(a.Tools, n) })
	}
	var shown bytes.Buffer
	enc := json.NewEncoder(&shown)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(struct {
		args
		Tools  []string `json:"tools,omitzero"`
		File   string   `json:"file"`
		Digest string   `json:"file_sha256"`
	}{a, c.tools, f.Path, f.Digest}); err != nil {
		return nil, err
	}
	return &tool.Prepared{Shown: bytes.TrimSpace(shown.Bytes()), Run: c}, nil
}

// instructed returns a goal with the instructions of the file. They are part of the message, and not
// of the system prompt: the service has the conversation up to there in its cache.
func (c chosen) instructed(goal string) string {
	if c.file == nil {
		return goal
	}
	return fmt.Sprintf("You are the sub-agent %s. These are your instructions, from %q:\n\n%s\n\nThis is your task:\n\n%s", c.file.Name, c.file.Path, c.file.Prompt, goal)
}
