package chat

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// command is a line that begins with a slash.
type command struct {
	name, args, what string
	run              func(m *model, arg string) action
}

// action is what a key or a command leads to: a request, whose error is shown.
type action func() error

var commands []command

func init() { //nolint:gochecknoinits // help lists the table that it stands in
	commands = []command{
		{"new", "[FOLDER]", "begin a session", func(m *model, arg string) action { return m.begin(arg) }},
		{"sessions", "", "choose a session (Ctrl+O)", func(m *model, _ string) action { return m.choose() }},
		{"open", "ID", "go to a session", func(m *model, arg string) action { return m.open(arg) }},
		{"fork", "", "go on from here in a session of its own", func(m *model, _ string) action { return m.fork() }},
		{"title", "TEXT", "give the session a title", func(m *model, arg string) action { return m.rename(arg) }},
		{"retry", "", "run the last turn again", func(m *model, _ string) action { return m.retry() }},
		{"stop", "", "end the turn (Esc)", func(m *model, _ string) action { return m.cancel() }},
		{"queue", "TEXT", "say something when the turn has ended (Enter)", func(m *model, arg string) action { return m.say(arg, "queue") }},
		{"steer", "TEXT", "say something to the running turn (Ctrl+S)", func(m *model, arg string) action { return m.say(arg, "steer") }},
		{"approve", "", "let it run (Alt+Y)", func(m *model, _ string) action { return m.decide("approve", "") }},
		{"session", "", "let it run, for the whole session (Alt+S)", func(m *model, _ string) action { return m.decide("approve_for_session", "") }},
		{"reject", "[WHY]", "do not let it run (Alt+N)", func(m *model, arg string) action { return m.decide("deny", arg) }},
		{"details", "", "show what tools were given and have said (Ctrl+T)", func(m *model, _ string) action { m.details = !m.details; m.laid = nil; return nil }},
		{"help", "", "this", func(m *model, _ string) action { m.say0(help()); return nil }},
		{"quit", "", "leave (Ctrl+C); the session goes on", func(m *model, _ string) action { m.quit = true; return nil }},
	}
}

func help() string {
	var b strings.Builder
	b.WriteString("Enter sends, Ctrl+J breaks the line, PgUp and PgDn scroll.\n")
	for _, c := range commands {
		fmt.Fprintf(&b, "/%-18s %s\n", c.name+" "+c.args, c.what)
	}
	return strings.TrimRight(b.String(), "\n")
}

// parse returns what a line asks for: a command, or a message.
func (m *model) parse(line string) (action, error) {
	name, isCommand := strings.CutPrefix(line, "/")
	name, arg, _ := strings.Cut(name, " ")
	// The model that is built in is spoken to with /tool.
	if !isCommand || name == "tool" || strings.Contains(name, "/") {
		return m.say(line, ""), nil
	}
	i := slices.IndexFunc(commands, func(c command) bool { return c.name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no command /%s: /help lists them", clean(name, 40))
	}
	if arg = strings.TrimSpace(arg); arg == "" && commands[i].args != "" && commands[i].args[0] != '[' {
		return nil, errors.New("/" + name + " " + commands[i].args)
	}
	return commands[i].run(m, arg), nil
}
