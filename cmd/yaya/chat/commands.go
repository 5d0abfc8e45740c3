package chat

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/screen"
)

// command is a line that begins with a slash.
type command struct {
	name, args, what string
	run              func(m *model, arg string) action
}

// action is the effect of a key or a command: a request, whose error is shown.
type action func() error

// commands returns all commands; help lists them and is one of them.
func commands() []command {
	return []command{
		{"new", "[FOLDER]", "start a session", func(m *model, arg string) action { return m.begin(arg) }},
		{"sessions", "", "choose a session (Ctrl+O)", func(m *model, _ string) action { return m.choose() }},
		{"open", "ID", "open a session", func(m *model, arg string) action { return m.open(arg) }},
		{"fork", "", "fork the session and continue in the fork", func(m *model, _ string) action { return m.fork() }},
		{"title", "TEXT", "set the title of the session", func(m *model, arg string) action { return m.rename(arg) }},
		{"retry", "", "run the last turn again", func(m *model, _ string) action { return m.retry() }},
		{"undo", "", "undo the last change of files", func(m *model, _ string) action { return m.undo() }},
		{"model", "[MODEL]", "show the models, or choose one for the session", func(m *model, arg string) action { return m.choice(arg) }},
		{"stop", "", "stop the turn (Esc)", func(m *model, _ string) action { return m.cancel() }},
		{"queue", "TEXT", "queue a message for after the turn (Enter)", func(m *model, arg string) action { return m.say(arg, "queue") }},
		{"steer", "TEXT", "send a message to the running turn (Ctrl+S)", func(m *model, arg string) action { return m.say(arg, "steer") }},
		{"approve", "", "approve the call (Alt+Y)", func(m *model, _ string) action { return m.decide("approve", "") }},
		{"session", "", "approve it for the whole session (Alt+S)", func(m *model, _ string) action { return m.decide("approve_for_session", "") }},
		{"reject", "[WHY]", "reject the call (Alt+N)", func(m *model, arg string) action { return m.decide("deny", arg) }},
		{"details", "", "show the arguments and results of tools (Ctrl+T)", func(m *model, _ string) action { m.details = !m.details; m.redraw(); return nil }},
		{"help", "", "this", func(m *model, _ string) action { m.say0(help()); return nil }},
		{"quit", "", "leave (Ctrl+C); the session continues", func(m *model, _ string) action { m.quit = true; return nil }},
	}
}

func help() string {
	var b strings.Builder
	b.WriteString("Enter sends, Ctrl+J adds a line, PgUp and PgDn scroll.\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "/%-18s %s\n", c.name+" "+c.args, c.what)
	}
	return strings.TrimRight(b.String(), "\n")
}

// parse returns the action for a line: a command, or a message.
func (m *model) parse(line string) (action, error) {
	name, isCommand := strings.CutPrefix(line, "/")
	name, arg, _ := strings.Cut(name, " ")
	// The built-in model takes lines that begin with /tool.
	if !isCommand || name == "tool" || strings.Contains(name, "/") {
		return m.say(line, ""), nil
	}
	table := commands()
	i := slices.IndexFunc(table, func(c command) bool { return c.name == name })
	if i < 0 {
		return nil, fmt.Errorf("unknown command /%s (see: /help)", screen.Clean(name, 40))
	}
	if arg = strings.TrimSpace(arg); arg == "" && table[i].args != "" && table[i].args[0] != '[' {
		return nil, errors.New("/" + name + " " + table[i].args)
	}
	return table[i].run(m, arg), nil
}
