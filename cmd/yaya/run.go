package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/yaya-ai/yaya/cmd/yaya/chat"
	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/screen"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/folder"
)

// runOptions are the flags of yaya run.
type runOptions struct {
	session, workspace, approve, provider, model, strategy string
	asJSON                                                 bool
	plan                                                   bool
	untrusted                                              bool // the user was asked and did not trust the folder
	mcpConfig                                              []string
}

func runCommand(g *daemon.Flags) *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "run PROMPT",
		Short: "Give an agent one task and watch it work",
		Long: `Give an agent one task and watch it work. The answer goes to standard output, the
agent's steps go to standard error. Without PROMPT, or with "-", yaya reads the task from
standard input.

The agent needs a model: add one with yaya provider add. Until then, the built-in echo
model answers, which repeats your task. The agent can call the tools of your MCP servers,
and works in the current folder, where it can only read and search until you trust the
folder (yaya trust).

If yaya serve runs, it does the task with its servers. Otherwise, or with --mcp-config or
--config, yaya starts the servers for this task and stops them afterward.

Some calls need your approval. --approve sets who is asked:

  ask     you, on the terminal; without a terminal, the same as rules
  rules   nobody: calls that approval.rules allow run, others are rejected
  never   nobody: every call that needs approval is rejected

With --plan, the agent only reads until you approve its plan, which it hands in with the
tool propose_plan. A session that plans goes on planning until then.

yaya keeps the conversation. To continue it, pass the --session that yaya prints.

The exit code is 0 if the agent answered, even if some of its calls failed or were
rejected; standard error says how many were rejected. It is 1 if the turn failed or was
canceled, 2 for wrong usage, and 130 if you interrupted it with Ctrl-C.`,
		Example: `  yaya run "what is in this folder?"
  yaya run --approve rules "run the tests and explain the failures"
  git diff | yaya run --session review "-"
  yaya run --session review "now suggest a commit message"
  yaya run '/tool repo_tree {}'   # the echo model calls a tool if you write it like this`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			prompt, err := readPrompt(args, c.InOrStdin())
			if err != nil {
				return &usageError{c.CommandPath(), err}
			}
			switch o.approve {
			case "ask", "rules", "never":
			default:
				return &usageError{c.CommandPath(), fmt.Errorf("--approve must be ask, rules or never, not %q", o.approve)}
			}
			if o.provider != "" && o.model != "" {
				return &usageError{c.CommandPath(), errors.New("--provider and --model exclude each other: --model can name a provider, too")}
			}
			if o.session != "" {
				if err := event.CheckSession(o.session); err != nil {
					return &usageError{c.CommandPath(), fmt.Errorf("--session: %w", err)}
				}
			}
			err = runPrompt(c.Context(), g, o, prompt, c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr())
			return signalled(c.Context(), err)
		},
	}
	f := c.Flags()
	f.StringVar(&o.session, "session", "", "`id` of the session to continue (default a new one)")
	f.StringVar(&o.workspace, "workspace", "", "`folder` that the agent works in (default the current one)")
	f.StringVar(&o.approve, "approve", "ask", "`mode` of approval: ask, rules or never")
	f.StringVar(&o.provider, "provider", "", "`id` of the provider to use for this run (default the active one)")
	f.StringVar(&o.model, "model", "", "`model` of the session from now on: the id of a provider, or ID/MODEL (default the active one)")
	f.StringVar(&o.strategy, "strategy", "", "`id` of the strategy to use (default the setting strategy: react; yaya chat uses coder)")
	f.BoolVar(&o.plan, "plan", false, "let the agent only read and plan until you approve its plan")
	f.BoolVar(&o.asJSON, "json", false, "print each event as a line of JSON instead")
	f.StringArrayVar(&o.mcpConfig, "mcp-config", nil, "`file` of MCP servers instead of yaya's own; repeatable")
	return c
}

func readPrompt(args []string, in io.Reader) (string, error) {
	prompt := strings.Join(args, " ")
	if prompt == "" || prompt == "-" {
		if f, ok := in.(*os.File); ok && prompt == "" && term.IsTerminal(int(f.Fd())) { //nolint:gosec // a descriptor fits
			return "", errors.New("no task given (usage: yaya run PROMPT)")
		}
		data, err := io.ReadAll(io.LimitReader(in, daemon.MaxPrompt+1)) //nolint:forbidigo // bounded by the reader
		if err != nil {
			return "", err
		}
		prompt = strings.TrimSpace(string(data))
	}
	switch {
	case prompt == "":
		return "", errors.New("the task is empty")
	case len(prompt) > daemon.MaxPrompt:
		return "", fmt.Errorf("the task is longer than %d bytes", daemon.MaxPrompt)
	}
	return prompt, nil
}

// mode returns how to answer the run's approvals.
func (o runOptions) mode(tty bool) string {
	if o.approve == "ask" && (!tty || o.asJSON) {
		return "rules"
	}
	return o.approve
}

func runPrompt(ctx context.Context, g *daemon.Flags, o runOptions, prompt string, in io.Reader, out, errOut io.Writer) error {
	p, err := g.Paths()
	if err != nil {
		return err
	}
	tty := false
	if f, ok := in.(*os.File); ok {
		tty = term.IsTerminal(int(f.Fd())) //nolint:gosec // a descriptor fits
	}
	if o.untrusted, err = trustFirst(ctx, g, o, tty, in, errOut); err != nil {
		return err
	}
	req, err := o.request(prompt, tty)
	if err != nil {
		return err
	}
	follow := func(b *daemon.Backend) error {
		sh := &show{b: b, out: out, err: errOut, asJSON: o.asJSON, in: in, live: liveOf(out), colours: coloursOf(errOut)}
		return sh.run(ctx, o, req)
	}
	if len(o.mcpConfig) == 0 && g.ConfigFile == "" {
		if done, err := daemon.WithDaemon(ctx, p, follow); done {
			return err
		}
	}
	log := zerolog.Nop()
	if g.Verbose {
		log = g.NewLog(errOut)
	}
	return daemon.WithoutDaemon(ctx, g, daemon.AppOptions{MCPConfig: o.mcpConfig, Workspace: o.workspace, Agents: true, Log: log}, func(a *daemon.App) error {
		mux := http.NewServeMux()
		mux.Handle("/api/", a.API())
		mux.Handle("/cli/", a.CLI(ctx))
		client, end := serveHere(daemon.AsOwner(mux))
		defer end()
		return follow(&daemon.Backend{Client: client.HTTP})
	})
}

// request is the run's request to yaya.
func (o runOptions) request(prompt string, tty bool) (daemon.RunRequest, error) {
	w := daemon.RunRequest{
		Session: o.session, Named: o.session != "", Workspace: o.workspace, Prompt: prompt, Provider: o.provider, Model: o.model, Strategy: o.strategy,
		Approve: o.mode(tty), Declined: o.untrusted, Plan: o.plan,
	}
	if w.Session == "" {
		w.Session = "run_" + strings.ToLower(rand.Text()[:12])
	} else if err := event.CheckClientSession(w.Session); err != nil {
		return w, err
	}
	var err error
	if w.Workspace != "" {
		if w.Workspace, err = filepath.Abs(w.Workspace); err != nil {
			return w, err
		}
	}
	if w.Folder, err = os.Getwd(); err != nil {
		return w, fmt.Errorf("the current folder: %w", err)
	}
	return w, nil
}

// show runs a turn and prints the session's events, as text for a person or as JSON for a
// program.
type show struct {
	b        *daemon.Backend
	out, err io.Writer
	asJSON   bool
	in       io.Reader
	lines    chan string // terminal input; the first question creates it
	text     bool        // the last output was text of the answer
	streamed bool        // some text of this model call was printed
	refused  int         // calls that needed approval while nobody could be asked
	insisted int         // those of them that no rule can allow
	never    int         // calls that needed approval with --approve never
	outside  int         // calls that an untrusted folder does not allow
	pieces   pieces
	live     *screen.Live   // renders the answer on a terminal; nil elsewhere
	colours  screen.Palette // of err
}

// cancelPatience bounds the wait for the end of a cancelled turn.
const cancelPatience = 10 * time.Second

// run starts the turn and shows it until it ends. When ctx ends, run cancels the turn.
func (s *show) run(ctx context.Context, o runOptions, w daemon.RunRequest) error {
	body, err := json.Marshal(w)
	if err != nil {
		return err
	}
	// The connection outlives ctx, to receive the end of the turn.
	conn, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	cancelled := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(cancelled)
		defer hangUp() // this cancels the turn, too
		within, done := context.WithTimeout(conn, cancelPatience)
		defer done()
		if s.b.API(within, http.MethodPost, "/cli/sessions/"+url.PathEscape(w.Session)+"/cancel", nil, nil) == nil {
			<-within.Done()
		}
	})
	defer func() {
		hangUp()
		if !stop() {
			<-cancelled
		}
	}()
	req, err := http.NewRequestWithContext(conn, http.MethodPost, "http://yaya/cli/run", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.b.Client.Do(req)
	if err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return s.b.Refusal(ctx, resp)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, daemon.MaxAnswer)
	for lines.Scan() {
		var line daemon.RunEvent
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return fmt.Errorf("yaya's answer is malformed: %w", err)
		}
		if line.End != nil {
			return s.end(o, w, *line.End)
		}
		if err := s.line(ctx, line); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return worded.Error(err, "the turn was cancelled")
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("the turn was cancelled: %w", err)
	}
	return errors.New("yaya stopped, and the turn with it")
}

func (s *show) end(o runOptions, w daemon.RunRequest, end daemon.RunOutcome) error {
	s.newline()
	for _, r := range []struct {
		n   int
		why string
	}{{s.refused, daemon.NobodyAsked}, {s.insisted, daemon.NoRuleAsked}, {s.never, daemon.NeverAsked}, {s.outside, daemon.NotTrusted}} {
		if r.n > 0 {
			fmt.Fprintf(s.err, "%s refused: %s\n", worded.Count(r.n, "call was", "calls were"), r.why)
		}
	}
	if end.Error != "" && end.Kind == "" {
		return errors.New(end.Error)
	}
	if !s.asJSON && o.session == "" {
		fmt.Fprintf(s.err, "\n(to continue: yaya run --session %s …)\n", w.Session)
	}
	switch {
	case end.Error == "":
		return nil
	case end.Kind == "cancelled" && end.Error == context.Canceled.Error():
		return errors.New("the turn was cancelled")
	case end.Kind == "cancelled":
		return fmt.Errorf("the turn was cancelled: %s", end.Error)
	}
	return fmt.Errorf("the turn failed: %s", end.Error)
}

func (s *show) line(ctx context.Context, line daemon.RunEvent) error {
	if s.asJSON {
		if line.Event == nil {
			return nil
		}
		s.count(line.Event)
		return printLine(s.out, line.Event)
	}
	if line.Note != "" {
		s.newline()
		fmt.Fprintln(s.err, daemon.Printable(line.Note, 1000))
	}
	if line.Event == nil {
		return nil
	}
	var ev event.Event
	if err := json.Unmarshal(line.Event, &ev); err != nil {
		return nil //nolint:nilerr // a kind of event that this version does not know
	}
	s.render(ctx, ev)
	return nil
}

// count counts an event's calls that were refused because nobody was asked, or because the
// folder is not trusted.
func (s *show) count(raw json.RawMessage) {
	var ev event.Event
	if json.Unmarshal(raw, &ev) != nil {
		return // a kind of event that this version does not know
	}
	s.refusal(ev)
}

func (s *show) refusal(ev event.Event) {
	reason := ""
	switch p := ev.Payload.(type) {
	case event.ToolError:
		reason = p.Brief + string(p.Detail) // the longer message
	case event.ToolResult:
		if !p.OK {
			reason = brief(p)
		}
	}
	switch {
	case strings.Contains(reason, folder.Untrusted): // its message quotes one of the others as the reason
		s.outside++
	case strings.Contains(reason, daemon.NoRule):
		s.insisted++
	case strings.Contains(reason, daemon.NeverAsked):
		s.never++
	case strings.Contains(reason, daemon.NobodyThere):
		s.refused++
	}
}

func (s *show) render(ctx context.Context, ev event.Event) {
	s.refusal(ev)
	switch p := ev.Payload.(type) {
	case event.Delta:
		s.write(p.Content)
		s.streamed = true
	case event.AssistantMessage:
		if !s.streamed {
			s.write(p.Content)
		}
		s.newline()
	case event.DecideResponse:
		if p.Next == event.NextLLM {
			s.streamed = false
		}
	case event.ToolCall:
		s.newline()
		fmt.Fprintf(s.err, "→ %s %s\n", daemon.Printable(p.Name, 80), daemon.Printable(argumentLine(p.Args), 300))
		s.change(p)
		s.pieces.begin(p.ID, p.Name)
	case event.ToolResult:
		s.newline()
		s.pieces.end(s.err, p.ID)
		mark := screen.Paint(s.colours.Good, "✓")
		if !p.OK {
			mark = screen.Paint(s.colours.Bad, "✗")
		}
		fmt.Fprintf(s.err, "%s %s\n", mark, daemon.Printable(daemon.OneLine(brief(p)), 200))
	case event.ToolError:
		s.newline()
		s.pieces.end(s.err, p.ID)
		fmt.Fprintf(s.err, "%s %s\n", screen.Paint(s.colours.Bad, "✗"), daemon.Printable(daemon.OneLine(neverRan(p)), 500))
	case event.ToolProgress:
		if p.Message != "" {
			s.newline()
			if s.pieces.add(s.err, p.ID, p.Message) {
				return
			}
			fmt.Fprintf(s.err, "  %s\n", daemon.Printable(daemon.OneLine(p.Message), 200))
		}
	case event.Notice:
		s.newline()
		fmt.Fprintf(s.err, "  (%s)\n", daemon.Printable(daemon.OneLine(p.Text), 1000))
	case event.LLMRetry:
		s.newline()
		fmt.Fprintf(s.err, "  (the model did not answer: %s; asked again after %s)\n", daemon.Printable(daemon.OneLine(p.Error), 200), chat.Waits(p.WaitS))
	case event.LLMFallback:
		s.newline()
		fmt.Fprintf(s.err, "  (%s/%s cannot answer: %s; %s/%s answers instead)\n", daemon.Printable(p.Failed.Provider, 64), daemon.Printable(p.Failed.Model, 100), daemon.Printable(daemon.OneLine(p.Error), 200), daemon.Printable(p.Next.Provider, 64), daemon.Printable(p.Next.Model, 100))
	case event.ApprovalRequest:
		s.newline()
		s.question(ctx, p)
	case event.ApprovalCancelled:
		fmt.Fprintf(s.err, "  (%s)\n", daemon.Printable(chat.Withdrawn(p.Reason), 200))
	}
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
