package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// runOptions are the flags of yaya run.
type runOptions struct {
	session, workspace, approve, provider, strategy string
	asJSON                                          bool
	untrusted                                       bool // the user was asked, and does not trust the folder
	mcpConfig                                       []string
}

func runCommand(g *globals) *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "run PROMPT",
		Short: "Give an agent one task, and watch it",
		Long: `Give an agent one task, and watch it. The answer goes to standard output, what
the agent does to standard error. Without PROMPT, or with "-", the task is read
from standard input.

The agent has the tools of your MCP servers. Calls that need approval are put to
you on the terminal; --approve says otherwise:

  ask     ask on the terminal (the default there); without one, as rules
  rules   nobody is asked: what approval.rules allow runs, the rest is rejected
  never   nothing that needs approval runs, whatever the rules say

The conversation is kept: --session goes on with it.`,
		Example: `  yaya run "what tools do you have?"
  yaya run '/tool read_artifact {"id":"x"}'   # the built-in echo model calls tools this way
  git diff | yaya run - --session review`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			prompt, err := readPrompt(args, c.InOrStdin())
			if err != nil {
				return &usageError{c.CommandPath(), err}
			}
			switch o.approve {
			case "ask", "rules", "never":
			default:
				return &usageError{c.CommandPath(), fmt.Errorf("--approve is ask, rules or never, not %q", o.approve)}
			}
			return runPrompt(c.Context(), g, o, prompt, c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&o.session, "session", "", "id of the session to go on with (default a new one)")
	f.StringVar(&o.workspace, "workspace", "", "folder that the agent works in (default the current one)")
	f.StringVar(&o.approve, "approve", "ask", "ask, rules or never")
	f.StringVar(&o.provider, "provider", "", "id of the provider to use (default the active one)")
	f.StringVar(&o.strategy, "strategy", "", "id of the strategy to use (default react)")
	f.BoolVar(&o.asJSON, "json", false, "print every event as a line of JSON instead")
	f.StringArrayVar(&o.mcpConfig, "mcp-config", nil, "file with MCP servers, instead of yaya's own (repeatable)")
	return c
}

// maxPrompt bounds a prompt, in bytes.
const maxPrompt = 1 << 20

func readPrompt(args []string, in io.Reader) (string, error) {
	prompt := strings.Join(args, " ")
	if prompt == "" || prompt == "-" {
		if f, ok := in.(*os.File); ok && prompt == "" && term.IsTerminal(int(f.Fd())) { //nolint:gosec // a descriptor fits
			return "", errors.New("there is no task: yaya run PROMPT")
		}
		data, err := io.ReadAll(io.LimitReader(in, maxPrompt+1)) //nolint:forbidigo // bounded by the reader
		if err != nil {
			return "", err
		}
		prompt = strings.TrimSpace(string(data))
	}
	switch {
	case prompt == "":
		return "", errors.New("the task is empty")
	case len(prompt) > maxPrompt:
		return "", fmt.Errorf("the task has more than %d bytes", maxPrompt)
	}
	return prompt, nil
}

// refuse answers every ask with no, so that nothing waits for people who are not
// there.
type refuse struct{ why string }

func (r refuse) Approve(context.Context, tool.Call, tool.Definition, string) error {
	return &tool.RejectedError{Feedback: r.why}
}

func runPrompt(ctx context.Context, g *globals, o runOptions, prompt string, in io.Reader, out, errOut io.Writer) error {
	p, err := g.paths()
	if err != nil {
		return err
	}
	tty := false
	if f, ok := in.(*os.File); ok {
		tty = term.IsTerminal(int(f.Fd())) //nolint:gosec // a descriptor fits
	}
	change := func(c *appConfig) {
		c.workspace = o.workspace
		if o.approve != "ask" || !tty || o.asJSON {
			c.approver = func(*approval.Runtime) tool.Approver {
				return refuse{"it needs approval and nobody is there to ask; yaya run on a terminal asks, approval.rules can allow it"}
			}
		}
	}
	log := zerolog.Nop()
	if g.verbose {
		log = g.newLog(errOut)
	}
	if o.untrusted, err = trustFirst(ctx, g, o, tty, in, errOut); err != nil {
		return err
	}
	return withApp(ctx, g, p, o.mcpConfig, log, true, func(a *app) error {
		if o.approve == "never" {
			a.kernel.Dispatch.AddHook(readOnly{})
		}
		if o.workspace != "" { // the current folder need not be one: then tools say why
			if err := a.guard.Check(o.workspace); err != nil {
				return err
			}
		}
		if err := o.apply(a); err != nil {
			return err
		}
		if n := len(a.host.Status()); n > 0 {
			if !o.asJSON && !settled(a.host.Status()) {
				fmt.Fprintf(errOut, "starting %d MCP servers …\n", n)
			}
			a.waitSettled(ctx)
			for _, st := range a.host.Status() {
				if !st.State.Usable() && !o.asJSON {
					fmt.Fprintf(errOut, "%s is not there: %s\n", printable(st.ID, 40), printable(st.Reason+st.LastError, 300))
				}
			}
		}
		return a.converse(ctx, o, prompt, in, out, errOut)
	}, change)
}

// apply chooses provider and strategy for this run.
func (o runOptions) apply(a *app) error {
	if o.provider != "" {
		if a.kernel.Settings.Providers().GetInstance(o.provider) == nil {
			return fmt.Errorf("there is no provider %q: yaya provider list shows those that there are", o.provider)
		}
		if err := a.kernel.Settings.Override("provider", o.provider); err != nil {
			return err
		}
	}
	if o.strategy != "" {
		return a.kernel.Settings.Override("strategy", o.strategy)
	}
	return nil
}

// readOnly denies what would need approval.
type readOnly struct{}

func (readOnly) PreToolCall(ctx context.Context, call tool.Call, def tool.Definition) (tool.Verdict, error) {
	v, err := tool.DefaultPolicy{}.Decide(ctx, call, def)
	if err == nil && v.Decision == tool.Ask {
		return tool.Verdict{Decision: tool.Deny, Reason: "it needs approval, and --approve never was given"}, nil
	}
	return tool.Verdict{}, err
}

// converse submits the prompt and shows what comes of it until the turn ends.
func (a *app) converse(ctx context.Context, o runOptions, prompt string, in io.Reader, out, errOut io.Writer) error {
	id := o.session
	if id == "" {
		id = "run_" + strings.ToLower(rand.Text()[:12])
	} else if err := event.CheckClientSession(id); err != nil {
		return err
	}
	if _, err := a.kernel.Sessions.Open(id, o.workspace); err != nil {
		if errors.Is(err, journal.ErrLocked) {
			err = fmt.Errorf("%w: wait for it, or use another --session", err)
		}
		return err
	}
	if o.untrusted {
		a.gate.Decline(id)
	}
	sh := &show{a: a, out: out, err: errOut, asJSON: o.asJSON, in: in, ended: make(chan struct{})}
	conn, err := a.kernel.Sessions.Attach(id, session.AttachOptions{Adapter: "cli", Send: sh.item})
	if err != nil {
		return err
	}
	beating := make(chan struct{})
	defer func() {
		_ = a.kernel.Sessions.Detach(id, conn.ID()) // it may have ended by itself
		<-conn.Done()
		<-beating
	}()
	go func() {
		defer close(beating)
		beat := time.NewTicker(20 * time.Second)
		defer beat.Stop()
		for {
			select {
			case <-beat.C:
				_ = a.kernel.Sessions.Heartbeat(id, conn.ID()) // gone is gone
			case <-conn.Done():
				return
			}
		}
	}()
	res, err := a.kernel.Loop.Run(ctx, loop.Prompt{SessionID: id, Text: prompt})
	if err != nil {
		return err
	}
	select { // the last of it
	case <-sh.ended:
	case <-conn.Done():
	case <-time.After(5 * time.Second):
	}
	if !o.asJSON && o.session == "" {
		fmt.Fprintf(errOut, "\n(go on with: yaya run --session %s …)\n", id)
	}
	if res.Err != nil {
		return fmt.Errorf("the turn %s: %w", map[bool]string{true: "was cancelled", false: "failed"}[res.Kind == "cancelled"], res.Err)
	}
	return nil
}

// show writes a session's events for a person, or as JSON for a program.
type show struct {
	a        *app
	out, err io.Writer
	asJSON   bool
	in       io.Reader
	lines    chan string // what is typed; made by the first question
	text     bool        // the last thing written was the answer's text
	streamed bool        // some of this model call's text was
	ended    chan struct{}
}

func (s *show) item(ctx context.Context, it session.Item) error {
	if it.Resync != nil || it.Snapshot != nil {
		return nil
	}
	ev := it.Event
	if s.asJSON {
		raw, err := json.Marshal(ev)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(s.out, "%s\n", raw); err != nil {
			return err
		}
	} else {
		s.render(ctx, ev)
	}
	switch ev.Payload.(type) {
	case event.TurnCompleted, event.TurnFailed, event.TurnCancelled:
		close(s.ended)
	}
	return nil
}

func (s *show) render(ctx context.Context, ev event.Event) {
	switch p := ev.Payload.(type) {
	case event.Delta:
		fmt.Fprint(s.out, multiline(p.Content))
		s.text, s.streamed = true, true
	case event.AssistantMessage:
		if !s.streamed {
			fmt.Fprint(s.out, multiline(p.Content))
			s.text = true
		}
		s.newline()
	case event.DecideResponse:
		if p.Next == event.NextLLM {
			s.streamed = false
		}
	case event.ToolCall:
		s.newline()
		fmt.Fprintf(s.err, "→ %s %s\n", printable(p.Name, 80), printable(string(p.Args), 300))
	case event.ToolResult:
		s.newline()
		mark := "✓"
		if !p.OK {
			mark = "✗"
		}
		fmt.Fprintf(s.err, "%s %s\n", mark, printable(brief(p), 200))
	case event.ToolError:
		s.newline()
		fmt.Fprintf(s.err, "✗ %s\n", printable(p.Brief, 200))
	case event.ToolProgress:
		if p.Message != "" {
			s.newline()
			fmt.Fprintf(s.err, "  %s\n", printable(p.Message, 200))
		}
	case event.ApprovalRequest:
		s.newline()
		s.question(ctx, p)
	case event.ApprovalCancelled:
		fmt.Fprintf(s.err, "  (withdrawn: %s)\n", printable(p.Reason, 40))
	}
}

func (s *show) newline() {
	if s.text {
		fmt.Fprintln(s.out)
	}
	s.text = false
}

func brief(r event.ToolResult) string {
	var env struct {
		Brief string `json:"brief"`
	}
	if json.Unmarshal(r.Envelope, &env) == nil && env.Brief != "" {
		return env.Brief
	}
	if r.Error != "" {
		return r.Error
	}
	return "done"
}
