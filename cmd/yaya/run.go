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

	"github.com/yaya-ai/yaya/kernel/event"
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

The agent has the tools of your MCP servers. If yaya runs, the task is done there,
with the servers that it has; else, or with --mcp-config or --config, everything is
started for this task. Calls that need approval are put to you on the terminal;
--approve says otherwise:

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
	f.StringArrayVar(&o.mcpConfig, "mcp-config", nil, "`file` of MCP servers instead of yaya's own; repeatable")
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

// mode is how asks of the run are answered.
func (o runOptions) mode(tty bool) string {
	if o.approve == "ask" && (!tty || o.asJSON) {
		return "rules"
	}
	return o.approve
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
	if o.untrusted, err = trustFirst(ctx, g, o, tty, in, errOut); err != nil {
		return err
	}
	wish, err := o.wish(prompt, tty)
	if err != nil {
		return err
	}
	follow := func(b *backend) error {
		sh := &show{b: b, out: out, err: errOut, asJSON: o.asJSON, in: in}
		return sh.run(ctx, o, wish)
	}
	if len(o.mcpConfig) == 0 && g.configFile == "" {
		if done, err := beside(ctx, p, follow); done {
			return err
		}
	}
	log := zerolog.Nop()
	if g.verbose {
		log = g.newLog(errOut)
	}
	return withApp(ctx, g, p, o.mcpConfig, log, true, func(a *app) error {
		mux := http.NewServeMux()
		mux.Handle("/api/", a.api())
		mux.Handle("/cli/", a.cli(ctx, nil))
		client, end := serveHere(asOwner(mux))
		defer end()
		return follow(&backend{client: client.HTTP})
	}, func(c *appConfig) { c.workspace = o.workspace })
}

// wish is what the run asks yaya for.
func (o runOptions) wish(prompt string, tty bool) (runWish, error) {
	w := runWish{
		Session: o.session, Workspace: o.workspace, Prompt: prompt, Provider: o.provider, Strategy: o.strategy,
		Approve: o.mode(tty), Declined: o.untrusted,
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

// show runs a turn, and writes a session's events for a person, or as JSON for a program.
type show struct {
	b        *backend
	out, err io.Writer
	asJSON   bool
	in       io.Reader
	lines    chan string // what is typed; made by the first question
	text     bool        // the last thing written was the answer's text
	streamed bool        // some of this model call's text was
	refused  int         // calls that needed approval, with nobody to ask
	insisted int         // the same, of which no rule allows any
	pieces   pieces
}

// cancelPatience is how long the end of a cancelled turn may take.
const cancelPatience = 10 * time.Second

// run starts the turn and shows it until it ends. When ctx ends, the turn is cancelled.
func (s *show) run(ctx context.Context, o runOptions, w runWish) error {
	body, err := json.Marshal(w)
	if err != nil {
		return err
	}
	// The connection outlives ctx, so that the end of the turn is seen.
	conn, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	cancelled := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(cancelled)
		defer hangUp() // which cancels the turn, too
		within, done := context.WithTimeout(conn, cancelPatience)
		defer done()
		if s.b.api(within, http.MethodPost, "/cli/sessions/"+url.PathEscape(w.Session)+"/cancel", nil, nil) == nil {
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
	resp, err := s.b.client.Do(req)
	if err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return s.b.refusal(ctx, resp)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		var line runLine
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
	if err := cmp.Or(ctx.Err(), lines.Err()); err != nil {
		return fmt.Errorf("the turn was cancelled: %w", err)
	}
	return errors.New("yaya has ended, and the turn with it")
}

func (s *show) end(o runOptions, w runWish, end runEnd) error {
	s.newline()
	for _, r := range []struct {
		n   int
		why string
	}{{s.refused, nobodyAsked}, {s.insisted, noRuleAsked}} {
		if r.n > 0 {
			fmt.Fprintf(s.err, "%s refused: %s\n", map[bool]string{true: "1 call was", false: fmt.Sprintf("%d calls were", r.n)}[r.n == 1], r.why)
		}
	}
	if end.Error != "" && end.Kind == "" {
		return errors.New(end.Error)
	}
	if !s.asJSON && o.session == "" {
		fmt.Fprintf(s.err, "\n(go on with: yaya run --session %s …)\n", w.Session)
	}
	if end.Error != "" {
		return fmt.Errorf("the turn %s: %s", map[bool]string{true: "was cancelled", false: "failed"}[end.Kind == "cancelled"], end.Error)
	}
	return nil
}

func (s *show) line(ctx context.Context, line runLine) error {
	if s.asJSON {
		if line.Event == nil {
			return nil
		}
		s.count(line.Event)
		return printLine(s.out, line.Event)
	}
	if line.Note != "" {
		s.newline()
		fmt.Fprintln(s.err, printable(line.Note, 1000))
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

// count counts the calls of an event that were refused because nobody was asked.
func (s *show) count(raw json.RawMessage) {
	var ev event.Event
	if json.Unmarshal(raw, &ev) != nil {
		return // a kind of event that this version does not know
	}
	s.refusal(ev)
}

func (s *show) refusal(ev event.Event) {
	said := ""
	switch p := ev.Payload.(type) {
	case event.ToolError:
		said = p.Brief
	case event.ToolResult:
		if !p.OK {
			said = brief(p)
		}
	}
	switch {
	case strings.Contains(said, noRule):
		s.insisted++
	case strings.Contains(said, nobodyThere):
		s.refused++
	}
}

func (s *show) render(ctx context.Context, ev event.Event) {
	s.refusal(ev)
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
		fmt.Fprintf(s.err, "→ %s %s\n", printable(p.Name, 80), printable(argumentLine(p.Args), 300))
		s.pieces.begin(p.ID, p.Name)
	case event.ToolResult:
		s.newline()
		s.pieces.end(s.err, p.ID)
		mark := "✓"
		if !p.OK {
			mark = "✗"
		}
		fmt.Fprintf(s.err, "%s %s\n", mark, printable(oneLine(brief(p)), 200))
	case event.ToolError:
		s.newline()
		s.pieces.end(s.err, p.ID)
		fmt.Fprintf(s.err, "✗ %s\n", printable(oneLine(p.Brief), 200))
	case event.ToolProgress:
		if p.Message != "" {
			s.newline()
			if s.pieces.add(s.err, p.ID, p.Message) {
				return
			}
			fmt.Fprintf(s.err, "  %s\n", printable(oneLine(p.Message), 200))
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
