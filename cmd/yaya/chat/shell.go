package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/screen"
	"github.com/yaya-ai/yaya/internal/worded"
)

// Limits of the user's commands.
const (
	maxOutput = 32 << 10 // bytes that are kept of one, half from the beginning and half from the end
	maxRan    = 8        // whose output waits for the next message
	maxShown  = 30       // lines of an output, unless the details are shown
	maxTold   = 2000     // characters of a command that the model gets
)

// outcome is how a command of the user's ended.
type outcome struct {
	command, folder string
	output          string // safe, but for its lines and tabs
	status          string
	bad             bool
}

// told returns the text about a command for the model.
func (o outcome) told() string {
	return fmt.Sprintf("The user ran %q in the folder %q (%s). Its output:\n%s", cut.Text(o.command, maxTold), o.folder, o.status, o.output)
}

// picture begins a picture in Markdown, which is a message.
var picture = lazyregexp.New(`^!\[[^\]\n]*\]\(`)

// shell runs a command of the user's: with their rights, without a sandbox, in the folder of the
// session. Only a ! that the user has typed does that: a pasted text may be anybody's.
func (m *model) shell(line, command string) (action, error) {
	if command == "" {
		return nil, errors.New("!COMMAND runs a command in your shell, as you; its output goes with your next message")
	}
	if !m.bang {
		return nil, errors.New("a pasted ! runs nothing: type the ! yourself to run the command, or send the text with Ctrl+S")
	}
	id, folder, procs := m.id, m.workspace, m.procs
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("the folder of this session, %s, is not on this machine: no command runs in it", screen.Clean(folder, 300))
	}
	return m.run("running "+command, line, false, func(ctx context.Context) func(*model) {
		o := execute(ctx, procs, folder, command)
		return func(m *model) {
			m.ran[id] = append(m.ran[id], o)
			m.ran[id] = m.ran[id][max(0, len(m.ran[id])-maxRan):]
			if id == m.id {
				m.t.add(block{kind: fromShell, text: o.output, tool: call{name: o.command, brief: o.status, bad: o.bad}})
			}
		}
	}), nil
}

// forget drops the output of commands, so that the next message goes without it.
func (m *model) forget() {
	n := len(m.ran[m.id])
	if n == 0 {
		m.complain(errors.New("no output of a command waits for the next message"))
		return
	}
	delete(m.ran, m.id)
	m.say1("forgot the output of " + worded.Count(n, "command", "commands"))
}

// execute runs a command in the user's shell until it ends or ctx does. Then everything that it has
// started ends, too.
func execute(ctx context.Context, procs *proc.Manager, folder, command string) outcome {
	o := outcome{command: command, folder: folder, bad: true}
	out := &captured{ends: cut.Ends{Most: maxOutput}}
	spec := shellOf(command)
	spec.Env, spec.Dir, spec.Stderr, spec.NoTerminal = os.Environ(), folder, out, true
	p, err := procs.Start(spec)
	if err != nil {
		o.status = err.Error()
		return o
	}
	_ = p.Stdin.Close() // the terminal is the chat's
	var read sync.WaitGroup
	read.Go(func() { _, _ = io.Copy(out, p.Stdout) })
	stopped := false
	select {
	case <-p.Done():
	case <-ctx.Done():
		stopped = true
	}
	if stopped {
		p.Stop(context.WithoutCancel(ctx))
	}
	// Nobody holds the other end any longer; a process that escaped must not keep the chat waiting.
	_ = p.Stdout.SetReadDeadline(time.Now().Add(time.Second))
	read.Wait()
	p.Stop(ctx)
	o.output = readable(out.String())
	switch code := p.ExitCode(); {
	case stopped:
		o.status = "stopped by the user"
	case code >= 0:
		o.status, o.bad = fmt.Sprintf("exit status %d", code), code != 0
	default:
		o.status = p.Err().Error()
	}
	return o
}

// captured keeps the beginning and the end of what is written. It is safe for concurrent use.
type captured struct {
	mu   sync.Mutex
	ends cut.Ends
}

// Write implements [io.Writer].
func (c *captured) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ends.Write(b)
}

// String returns what is kept, and says how much is not.
func (c *captured) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ends.String()
}

// readable is the output of a program as a terminal would leave it: without styles and other controls,
// and of a line that was written over, the last form.
func readable(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		l = strings.TrimRight(ansi.Strip(l), "\r") // a sequence that does not end takes no further line with it
		l = l[strings.LastIndexByte(l, '\r')+1:]
		lines[i] = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) && r != '\t' {
				return '\uFFFD'
			}
			return r
		}, l)
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// shellBlock renders a command of the user's with its output and its end.
func (m *model) shellBlock(b block) []string {
	out := screen.Lines(b.tool.name, m.room())
	for i := range out {
		out[i] = screen.Paint(screen.Bold, out[i])
	}
	var lines []string
	if b.text != "" {
		lines = screen.Lines(b.text, m.room()-2)
	}
	if n := len(lines) - maxShown; n > 0 && !m.details {
		lines = append([]string{fmt.Sprintf("… %d lines (Ctrl+T shows all)", n)}, lines[n:]...)
	}
	for _, l := range lines {
		out = append(out, screen.Paint(screen.Faint, "│ ")+l)
	}
	style := ""
	if b.tool.bad {
		style = m.palette.Bad
	}
	out = append(out, screen.Paint(screen.Faint, "└ ")+screen.Paint(style, ansi.Truncate(screen.Clean(b.tool.brief, maxResult), m.room()-2, "…")))
	return m.beside("!", m.palette.Accent, out)
}
