package chat

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/proc"
)

// USE-12: a command of the user's runs in their shell and in the folder; its output is bounded and
// does nothing to the terminal, and its end takes what it has started with it.
func TestExecute(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are those of a Unix shell")
	}
	t.Setenv("SHELL", "/bin/sh")
	procs := new(proc.Manager)
	defer procs.Close(context.Background())
	dir := t.TempDir()
	for name, c := range map[string]struct{ command, output, status string }{
		"both streams in order": {"echo one; echo two >&2; echo three", "one\ntwo\nthree", "exit status 0"},
		"the folder":            {"basename \"$PWD\"", filepath.Base(dir), "exit status 0"},
		"a failure":             {"echo no >&2; exit 3", "no", "exit status 3"},
		"no input":              {"cat; echo end", "end", "exit status 0"},
		"quotes and lines":      {"x='a  b'\necho \"$x\" && (exit 1) || echo else", "a  b\nelse", "exit status 0"},
		"controls":              {`printf '\033]0;owned\007\033[31mred\033[0m\000\302\233 50%%\r100%%\n'`, "100%", "exit status 0"},
		"controls in between":   {`printf 'a\000b\033[2Jc\rx\000y\n'`, "x\uFFFDy", "exit status 0"},
		"a signal":              {"kill -9 $$", "", "ended with SIGKILL"},
		"what it leaves":        {"sleep 1000 & echo started", "started", "exit status 0"},
	} {
		t.Run(name, func(t *testing.T) {
			o := execute(t.Context(), procs, dir, c.command)
			if o.output != c.output || !strings.Contains(o.status, c.status) || o.bad != (c.status != "exit status 0") {
				t.Errorf("%q ended with %q and %q, bad %v; want %q and %q", c.command, o.output, o.status, o.bad, c.output, c.status)
			}
		})
	}
	o := execute(t.Context(), procs, dir, "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done")
	if len(o.output) > maxOutput+100 || !strings.HasPrefix(o.output, "line 0\n") || !strings.HasSuffix(o.output, "\nline 19999") || !strings.Contains(o.output, " bytes omitted …]") {
		t.Errorf("a long output has %d bytes, %.20q to %q, want its two ends and what is left out", len(o.output), o.output, o.output[max(0, len(o.output)-20):])
	}
	if o := execute(t.Context(), procs, filepath.Join(dir, "gone"), "true"); !o.bad || !strings.Contains(o.status, "folder") {
		t.Errorf("in no folder: %+v, want a failure that names the folder", o)
	}

	// A stop ends what the command has started, too.
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan outcome, 1)
	pids := filepath.Join(dir, "pids")
	go func() {
		ended <- execute(ctx, procs, dir, "trap '' TERM; sleep 1000 & echo $$ $! > pids.new; mv pids.new pids; wait; sleep 1000")
	}()
	var shell, child int
	eventually.True(t, "the command has started", func() bool {
		raw, err := os.ReadFile(pids)
		_, serr := fmt.Sscan(string(raw), &shell, &child)
		return err == nil && serr == nil
	})
	cancel()
	if o := <-ended; !o.bad || o.status != "stopped by the user" {
		t.Errorf("a stopped command = %+v, want one stopped by the user", o)
	}
	for _, pid := range []int{shell, child} {
		eventually.True(t, fmt.Sprintf("the process %d is gone", pid), func() bool { return proc.Gone(pid) })
	}
}

// USE-12: the output of a command is shown, and goes with the next message alone. A message that cannot
// be sent leaves it for another.
func TestShellOnTheScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, o := mentioning(t)
		ran := func(o outcome) {
			x.p.Send(returned{nil, func(m *model) {
				m.ran[m.id] = append(m.ran[m.id], o)
				m.t.add(block{kind: fromShell, text: o.output, tool: call{name: o.command, brief: o.status, bad: o.bad}})
			}})
			x.settle()
		}
		ran(outcome{command: "make test", folder: "/w", output: "ok  \u202e a\nFAIL b", status: "exit status 2", bad: true})
		var many []string
		for i := range 40 {
			many = append(many, fmt.Sprint("line ", i))
		}
		golden(t, "80x24-shell", x.text())
		x.keys("why @docs:doc://gone", enter)
		if got := o.take(); got != "" {
			t.Errorf("sent %s, want nothing", got)
		}
		x.keys("\x15", "why?", enter)
		want := "attach The user ran \"make test\" in the folder \"/w\" (exit status 2). Its output:\nok  \u202e a\nFAIL b\n" +
			`queue [{"text":"why?","type":"text"},{"name":"command.txt","ref":"attachments/att_2.txt","type":"file"}]`
		if got := o.take(); got != want {
			t.Errorf("sent %s\nwant %s", got, want)
		}
		x.keys("and?", enter)
		if got := o.take(); got != `queue [{"text":"and?","type":"text"}]` {
			t.Errorf("sent %s, want no output again", got)
		}
		ran(outcome{command: "env", output: "PASSWORD=x", status: "exit status 0"})
		x.keys("/forget", enter, "and now?", enter)
		if got := o.take(); got != `queue [{"text":"and now?","type":"text"}]` {
			t.Errorf("sent %s, want no output that was forgotten", got)
		}
		x.keys("/forget", enter)
		if want := "no output of a command waits"; !strings.Contains(x.m.note, want) {
			t.Errorf("forgetting again says %q, want %q", x.m.note, want)
		}
		ran(outcome{command: "seq 40", output: strings.Join(many, "\n"), status: "exit status 0"})
		if got := x.text(); !strings.Contains(got, "line 39") || strings.Contains(got, "line 9\n") {
			t.Errorf("a long output is shown as\n%s", got)
		}
		x.keys("!", enter)
		if !strings.Contains(x.m.note, "!COMMAND runs a command in your shell") || x.m.input.Value() != "!" {
			t.Errorf("! alone says %q over the input %q", x.m.note, x.m.input.Value())
		}
	})
}

// A pasted text runs no command: only a ! that the user has typed, or an entry of theirs, does.
func TestPastedCommands(t *testing.T) {
	for name, c := range map[string]struct {
		keys  []string
		shell bool // the input is a command
		note  string
	}{
		"typed":                         {[]string{"!", "ls"}, true, ""},
		"pasted":                        {[]string{"\x1b[200~!touch x\nmore\x1b[201~", enter}, false, "a pasted ! runs nothing"},
		"pasted behind a typed !":       {[]string{"!", "\x1b[200~ls\x1b[201~"}, true, ""},
		"a typed ! taken away":          {[]string{"!", "\x7f", "\x1b[200~!ls\x1b[201~", enter}, false, "a pasted ! runs nothing"},
		"pasted, and edited":            {[]string{"\x1b[200~!ls\x1b[201~", " ", "-l", enter}, false, "a pasted ! runs nothing"},
		"cut, and brought back":         {[]string{"\x1b[200~!ls\x1b[201~", "\x15", "\x19", enter}, false, "a pasted ! runs nothing"},
		"an earlier message comes back": {[]string{"\x1b[200~!ls\x1b[201~", "\x13", "\x1b[A"}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, _ := mentioning(t)
				x.keys(c.keys...)
				if x.m.bang != c.shell || !strings.Contains(x.m.note, c.note) || x.m.errand != nil {
					t.Errorf("the input %q is a command: %v, want %v; it says %q; it runs: %v", x.m.input.Value(), x.m.bang, c.shell, x.m.note, x.m.errand != nil)
				}
				if got := strings.Contains(x.text(), "\n$ "); got != c.shell {
					t.Errorf("the screen shows a command: %v, want %v\n%s", got, c.shell, x.text())
				}
			})
		})
	}
}

// A picture in Markdown is a message; a folder that is not on this machine has no commands.
func TestNoCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, o := mentioning(t)
		x.keys("!", "[shot](https://x/y.png) why?", enter)
		if got := o.take(); got != `queue [{"text":"![shot](https://x/y.png) why?","type":"text"}]` {
			t.Errorf("sent %s, want the message", got)
		}
		x.m.workspace = filepath.Join(t.TempDir(), "gone")
		x.keys("!", "touch made", enter)
		if !strings.Contains(x.m.note, "is not on this machine") || x.m.errand != nil || x.m.input.Value() != "!touch made" {
			t.Errorf("in a folder that is gone: %q, want a refusal; the input has %q", x.m.note, x.m.input.Value())
		}
	})
}

// An escape sequence that does not end hides no further line.
func TestOpenSequence(t *testing.T) {
	if got, want := readable("\x1b]0;title\nshown\x1b[31m\nred"), "\nshown\nred"; got != want {
		t.Errorf("readable = %q, want %q", got, want)
	}
}
