package chat

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/yaya-ai/yaya/internal/screen"
)

// command is a line that begins with a slash.
type command struct {
	name, args, what string
	run              func(m *model, arg string) action
	// complete returns how to find the choices for an argument that begins with arg. It is called
	// with the model, and what it returns is called without: it must not use m. Optional.
	complete func(m *model, arg string) finder
}

// action is the effect of a key or a command: a request, whose error is shown.
type action func() error

// commands returns all commands; help lists them and is one of them.
func commands() []command {
	return []command{
		{"new", "[FOLDER]", "start a session", func(m *model, arg string) action { return m.begin(arg) }, nil},
		{"sessions", "", "choose a session (Ctrl+O)", func(m *model, _ string) action { return m.choose() }, nil},
		{"open", "ID", "open a session", func(m *model, arg string) action { return m.open(arg) }, sessions},
		{"fork", "", "fork the session and continue in the fork", func(m *model, _ string) action { return m.fork() }, nil},
		{"title", "TEXT", "set the title of the session", func(m *model, arg string) action { return m.rename(arg) }, nil},
		{"retry", "", "run the last turn again", func(m *model, _ string) action { return m.retry() }, nil},
		{"undo", "", "undo the last change of files", func(m *model, _ string) action { return m.undo() }, nil},
		{"compact", "[WHAT TO KEEP]", "summarize the earlier conversation for the model (Esc stops)", func(m *model, arg string) action { return m.compact(arg) }, nil},
		{"model", "[MODEL]", "show the models, or choose one for the session", func(m *model, arg string) action { return m.choice(arg) }, choices},
		{"plan", "[off]", "let the agent only read and plan until you approve its plan", func(m *model, arg string) action { return m.mode("plan", planMode, arg) }, nil},
		{"edits", "[off]", "let the agent change files without a question", func(m *model, arg string) action { return m.mode("edits", editMode, arg) }, nil},
		{"trust", "[yes|no]", "show what the folder brings; trust it, or restrict it again", func(m *model, arg string) action { return m.trust(arg) }, words("yes", "no")},
		{"tools", "", "list the tools of the agent, and which ask first", func(m *model, _ string) action { return m.tools() }, nil},
		{"mcp", "", "list the MCP servers, with their state", func(m *model, _ string) action { return m.servers() }, nil},
		{"skills", "", "list the skills", func(m *model, _ string) action { return m.skills() }, nil},
		{"agents", "", "list the sub-agents that files describe", func(m *model, _ string) action { return m.agents() }, nil},
		{"cost", "", "tell the tokens and the cost, and their limits", func(m *model, _ string) action { return m.costs() }, nil},
		{"stop", "", "stop the turn (Esc)", func(m *model, _ string) action { return m.cancel() }, nil},
		{"queue", "TEXT", "queue a message for after the turn (Enter)", func(m *model, arg string) action { return m.say(arg, "queue") }, nil},
		{"steer", "TEXT", "send a message to the running turn (Ctrl+S)", func(m *model, arg string) action { return m.say(arg, "steer") }, nil},
		{"approve", "", "approve the call (Alt+Y)", func(m *model, _ string) action { return m.decide("approve", "") }, nil},
		{"session", "", "approve it, and later the same call, or any edit, too (Alt+S)", func(m *model, _ string) action { return m.decide(forSession, "") }, nil},
		{"reject", "[WHY]", "reject the call (Alt+N)", func(m *model, arg string) action { return m.decide("deny", arg) }, nil},
		{"forget", "", "do not send the output of your commands with the next message", func(m *model, _ string) action { m.forget(); return nil }, nil},
		{"details", "", "show the arguments and results of tools (Ctrl+T)", func(m *model, _ string) action { m.details = !m.details; m.redraw(); return nil }, nil},
		{"help", "", "this", func(m *model, _ string) action { m.say0(help(m.room())); return nil }, nil},
		{"quit", "", "leave (Ctrl+D, or Ctrl+C twice); the session continues", func(m *model, _ string) action { m.quit = true; return nil }, nil},
	}
}

// keys are paragraphs: they are wrapped for the terminal.
const keys = `Enter sends; Alt+Enter, Ctrl+J or a backslash before Enter adds a line. PgUp and PgDn scroll.
Up and Down go through what you sent before, and Ctrl+R finds what contains the input.
@SERVER:URI adds a resource of an MCP server to the message, and /SERVER:PROMPT NAME=VALUE sends a prompt of one.
!COMMAND runs a command in your shell; its output goes with the next message.
Tab completes commands, their arguments, @files, servers, resources and prompts.
Esc, or Ctrl+C once, stops the command or the turn.
The other keys are those of a shell: Ctrl+A, E, K, U, W, Y, Alt+B, F, D. Ctrl+Z suspends.`

// words completes an argument that is one of a few words.
func words(all ...string) func(*model, string) finder {
	return func(_ *model, arg string) finder {
		return func() (out []choice, err error) {
			for _, w := range all {
				if strings.HasPrefix(w, arg) {
					out = append(out, choice{text: w})
				}
			}
			return out, nil
		}
	}
}

// choices finds the models whose name begins with arg.
func choices(m *model, arg string) finder {
	ctx, api := m.ctx, m.api
	return func() (out []choice, err error) {
		all, err := api.Models(ctx)
		for _, c := range append(all, Choice{ID: activeModel}) {
			if strings.HasPrefix(c.ID, arg) {
				out = append(out, choice{c.ID, c.Model})
			}
		}
		return out, err
	}
}

// sessions finds the sessions whose id begins with arg, or whose title contains it.
func sessions(m *model, arg string) finder {
	ctx, api := m.ctx, m.api
	return func() (out []choice, err error) {
		all, _, err := api.Sessions(ctx, "")
		for _, s := range all {
			if strings.HasPrefix(s.ID, arg) || strings.Contains(strings.ToLower(s.Title), strings.ToLower(arg)) {
				out = append(out, choice{s.ID, s.Title})
			}
		}
		return out, err
	}
}

// help lists the keys and the commands, for lines of a width.
func help(width int) string {
	const column = 25
	var b strings.Builder
	b.WriteString(keys + "\n")
	for _, c := range commands() {
		what := strings.ReplaceAll(ansi.Wrap(c.what, max(width-column, 20), ""), "\n", "\n"+strings.Repeat(" ", column))
		fmt.Fprintf(&b, "/%-*s %s\n", column-2, c.name+" "+c.args, what)
	}
	return strings.TrimRight(b.String(), "\n")
}

// unknownCommand is the error of a line that begins with a slash and is nothing that the chat knows.
type unknownCommand struct{ name string }

func (e *unknownCommand) Error() string {
	return "unknown command /" + screen.Clean(e.name, 40) + " (see: /help; Up brings the line back)"
}

// isPath reports whether a word behind a slash is a path of this machine, which a message may begin with: one
// that is there, or that lies below a folder of the root. Other words are mistyped
// commands.
func isPath(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	_, err := os.Lstat("/" + first)
	return first != "" && err == nil
}

// parse returns the action for a line: a command of the user's shell or of the chat, a prompt, or a
// message.
func (m *model) parse(line string) (action, error) {
	if command, ok := strings.CutPrefix(line, "!"); ok && !picture().MatchString(line) {
		return m.shell(line, strings.TrimSpace(command))
	}
	name, isCommand := strings.CutPrefix(line, "/")
	if server, prompt, ok := strings.Cut(name, ":"); ok && isCommand && !strings.ContainsAny(server, "/ \n") {
		end := strings.IndexFunc(prompt+" ", unicode.IsSpace)
		return m.prompt(line, server, prompt[:end], prompt[end:])
	}
	end := strings.IndexFunc(name+" ", unicode.IsSpace)
	name, arg := name[:end], name[end:]
	// The built-in model takes lines that begin with /tool.
	if first, _ := utf8.DecodeRuneInString(name); !isCommand || name == "tool" || name != "" && !unicode.IsLetter(first) { // as // of a program
		return m.say(line, ""), nil
	}
	table := commands()
	i := slices.IndexFunc(table, func(c command) bool { return c.name == name })
	switch {
	case i < 0 && isPath(name):
		return m.say(line, ""), nil
	case i < 0:
		return nil, &unknownCommand{name}
	}
	if arg = strings.TrimSpace(arg); arg == "" && table[i].args != "" && table[i].args[0] != '[' {
		return nil, errors.New("/" + name + " " + table[i].args)
	}
	return table[i].run(m, arg), nil
}
