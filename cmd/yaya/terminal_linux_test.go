package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// typeAhead, as the last argument, types y before yaya has started.
const typeAhead = "(type ahead)"

// terminal runs yaya on a pseudo-terminal, types an answer whenever it is asked,
// and returns all that the terminal showed.
func (b *box) terminal(answers []string, args ...string) string {
	b.t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		b.t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		b.t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	if args[len(args)-1] == typeAhead {
		args = args[:len(args)-1]
		if _, err := master.WriteString("y\n"); err != nil {
			b.t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(b.t.Context(), b.bin, b.args(args...)...)
	cmd.Env = append(b.environ(), "TERM=dumb") // the text is what counts here
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	_ = slave.Close()
	stop := time.AfterFunc(eventually.Limit, func() { _ = cmd.Process.Kill() })
	defer stop.Stop()
	var out strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := master.Read(buf)
		out.Write(buf[:n])
		if (strings.HasSuffix(out.String(), "say why not: ") || strings.HasSuffix(out.String(), "answer again: ")) && len(answers) > 0 {
			time.Sleep(armingDelay + 100*time.Millisecond) // what comes sooner does not count
			if _, err := master.WriteString(answers[0] + "\n"); err != nil {
				b.t.Fatal(err)
			}
			answers = answers[1:]
		}
		if errors.Is(err, syscall.EIO) || errors.Is(err, io.EOF) { // the other end is closed
			break
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		b.t.Fatalf("yaya ends with %v, want no error: %s", err, out.String())
	}
	if len(answers) > 0 {
		b.t.Errorf("it did not ask:\n%s", out.String())
	}
	return out.String()
}

// USE-12: yaya run renders the answer on a terminal, and shows what an edit changes. Without
// colours, on a terminal that cannot write over a line, and in a pipe, the text stays plain.
func TestRunOnTheTerminal(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.must("config", "set", "plugin.strategy_coder.auto_verify", "false")
	b.script(`[{"match":"^edit","steps":[{"tool_calls":[{"name":"edit","args":{"path":"a.txt","old_text":"two","new_text":"2"}}]},
		{"text":"## Done\n\nIt is **2** now:\n\n| file | lines |\n|---|---:|\n| ` + "`a.txt`" + ` | 2 |\n\n\u001b]0;owned\u0007","delay_ms":1}]}]`)
	ws := b.workspace()
	const plain = "## Done\n\nIt is **2** now:\n\n| file | lines |\n|---|---:|\n| `a.txt` | 2 |"
	for _, c := range []struct {
		name, env string
		has, no   []string
	}{
		{"colours", "TERM=xterm-256color", []string{"\x1b[1m\x1b[35mDone\x1b[0m", "It is \x1b[1m2\x1b[0m now:", "\x1b[31m-two\x1b[0m", "\x1b[32m+2\x1b[0m", "\x1b[32m✓\x1b[0m", `\u{1b}]0;owned\u{7}`}, []string{"##", "\x1b]0;"}},
		{"no colours", "NO_COLOR=1", []string{"\x1b[1mDone\x1b[0m", "│ -two", "│ +2"}, []string{"##", "\x1b]0;", "\x1b[3"}},
		{"dumb", "TERM=dumb", strings.Split(plain, "\n"), []string{"\x1b"}},
	} {
		if err := os.WriteFile(filepath.Join(ws, "a.txt"), []byte("one\ntwo\n"), 0o600); err != nil { // again
			t.Fatal(err)
		}
		p := b.ptyWith([]string{c.env}, "run", "--strategy", "coder", "--workspace", ws, "edit it")
		p.wait("say why not")
		time.Sleep(armingDelay + 100*time.Millisecond) // what comes sooner does not count
		p.keys("y\n")
		p.end()
		p.closed()
		out := p.out.String()
		for _, want := range c.has {
			if !strings.Contains(out, want) {
				t.Errorf("%s: the terminal lacks %q:\n%q", c.name, want, out)
			}
		}
		for _, bad := range c.no {
			if strings.Contains(out, bad) {
				t.Errorf("%s: the terminal got %q:\n%q", c.name, bad, out)
			}
		}
	}
	if out := b.must("run", "--strategy", "coder", "--workspace", ws, "edit it"); !strings.Contains(out, plain) || strings.Contains(out, "\x1b") {
		t.Errorf("the pipe got %q, want %q in it, and no escape character", out, plain)
	}
}

// Y-141, Y-142, Y-143, TW-08: on a terminal a person is asked, is shown all of it
// and nothing else, and answers identical asks once.
func TestAsksOnTheTerminal(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	out := b.terminal([]string{"y"}, "run", "--session", "s1", "/tool agent {\"goal\":\"say \u202e hi\"}")
	if !strings.Contains(out, "\n  goal: say \\u202e hi\r\n") || strings.Contains(out, "\u202e") || !strings.Contains(out, "sub-agent finished") {
		t.Errorf(`the terminal shows %q; want the goal with \u202e escaped, and "sub-agent finished"`, out)
	}
	// Input that is not JSON is never put to anybody, and not shown as it is.
	out = b.terminal(nil, "run", "--session", "s1", "/tool agent {\"goal\":\"\x1b[2J\"}")
	if strings.Contains(out, "May agent run") || strings.Contains(out, "\x1b") {
		t.Errorf("the terminal shows %q, want no question and no escape character", out)
	}
	twice := "/tool agent {\"goal\":\"again\"}\n/tool agent {\"goal\":\"again\"}"
	out = b.terminal([]string{"use your own words"}, "run", "--session", "s1", twice)
	if !strings.Contains(out, "May agent run, 2 times?") || strings.Count(out, "✗ rejected: use your own words") != 2 {
		t.Errorf("the terminal shows %q; want one question for 2 calls, and 2 rejections", out)
	}
	out = b.terminal([]string{"s"}, "run", "--session", "s1", "/tool agent {\"goal\":\"once\"}")
	if !strings.Contains(out, "sub-agent finished") {
		t.Errorf(`the terminal shows %q, want "sub-agent finished" in it`, out)
	}
	// A line that was typed ahead is not an answer.
	out = b.terminal([]string{"n"}, "run", "--session", "s1", "/tool agent {\"goal\":\"ahead\"}", typeAhead)
	if !strings.Contains(out, "before the question appeared") || !strings.Contains(out, "✗ rejected") {
		t.Errorf("the terminal shows %q; want the early line ignored, and a rejection", out)
	}
	if out := b.terminal([]string{""}, "run", "--session", "s1", "/tool agent {\"goal\":\"no\"}"); !strings.Contains(out, "✗ rejected") {
		t.Errorf("silence is consent: %q", out)
	}
}
