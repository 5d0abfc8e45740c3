package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"golang.org/x/sys/unix"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// pty is a program on a pseudo-terminal, with its output.
type pty struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd
	ended  chan error
	read   chan struct{} // closed behind the last output

	mu     sync.Mutex
	out    strings.Builder
	screen *vt.Emulator
}

// pty starts yaya on a pseudo-terminal of 100 × 30.
func (b *box) pty(args ...string) *pty {
	b.t.Helper()
	return b.ptyWith(nil, args...)
}

// ptyWith is pty with more of an environment.
func (b *box) ptyWith(env []string, args ...string) *pty {
	b.t.Helper()
	return b.ptyOf(env, append([]string{b.bin}, b.args(args...)...)...)
}

// ptyOf is pty for any command.
func (b *box) ptyOf(env []string, args ...string) *pty {
	b.t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		b.t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 100}); err != nil {
		b.t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	p := &pty{t: b.t, master: master, ended: make(chan error, 1), read: make(chan struct{}), screen: vt.NewEmulator(100, 30)}
	p.cmd = exec.CommandContext(b.t.Context(), args[0], args[1:]...)
	p.cmd.Env = append(append(b.environ(), "TERM=xterm-256color"), env...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = slave, slave, slave
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	_ = slave.Close()
	go func() {
		defer close(p.read)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			p.mu.Lock()
			p.out.Write(buf[:n])
			_, _ = p.screen.Write(buf[:n])
			p.mu.Unlock()
			if errors.Is(err, syscall.EIO) || errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
				return
			}
		}
	}()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = io.Copy(master, p.screen) // what a terminal answers to questions about it
	}()
	go func() { p.ended <- p.cmd.Wait() }()
	b.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = master.Close()
		<-p.read
		// Not with the emulator's own Close, which sets what its Read looks at.
		if answers, ok := p.screen.InputPipe().(io.Closer); !ok || answers.Close() != nil {
			b.t.Error("the answers of the terminal cannot be ended")
		}
		<-answered
	})
	return p
}

// wait waits until a text stands on the screen.
func (p *pty) wait(text string) {
	p.t.Helper()
	for deadline := time.Now().Add(eventually.Limit); ; time.Sleep(10 * time.Millisecond) {
		p.mu.Lock()
		now := p.screen.String()
		p.mu.Unlock()
		if strings.Contains(now, text) {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("it does not say %q; the screen is\n%s", text, now)
		}
	}
}

func (p *pty) keys(keys string) {
	p.t.Helper()
	if _, err := p.master.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
	time.Sleep(30 * time.Millisecond) // a person's: keys that come as one are a paste
}

// say types a line and sends it.
func (p *pty) say(line string) {
	p.keys(line)
	p.keys("\r")
}

// closed waits for the last output of a program that has ended.
func (p *pty) closed() {
	p.t.Helper()
	select {
	case <-p.read:
	case <-time.After(eventually.Limit):
		p.t.Fatal("the terminal stays open")
	}
}

// end waits until the program has ended.
func (p *pty) end() {
	p.t.Helper()
	select {
	case err := <-p.ended:
		if err != nil {
			p.t.Errorf("it ended with %v", err)
		}
	case <-time.After(eventually.Limit):
		p.t.Fatal("it does not end")
	}
}

// yaya chat from end to end, on a pseudo-terminal: text as it is written, questions,
// reasons, queueing, steering, stopping, sessions; what is hostile stays text (UI-07,
// UI-10).
func TestChatOnTheTerminal(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.must("config", "set", "plugin.strategy_coder.auto_verify", "false")
	b.script(fmt.Sprintf(`[
		{"match":"^ask","steps":[{"tool_calls":[{"name":"shell","args":{"command":"echo from-the-shell \u202e"}}]},{"text":"asked"}]},
		{"match":"^edit","steps":[{"tool_calls":[{"name":"edit","args":{"path":"a.txt","old_text":"two","new_text":"2"}}]},{"text":"edited"}]},
		{"match":"^no","steps":[{"tool_calls":[{"name":"shell","args":{"command":"echo no"}}]}]},
		{"match":"^evil","steps":[{"text":"\u001b]0;owned\u0007\u001b[2J\u001b[31mred \u202ertl \u009bc1 end-of-evil"}]},
		{"match":"^slow","steps":[{"text":"%s","delay_ms":80}]}]`, strings.Repeat("word ", 200)))
	b.serve()
	ws := b.workspace()
	p := b.pty("chat", "--workspace", ws)
	p.wait("idle")
	p.say("hello there")
	p.wait("hello there")
	p.wait("echo: hello there")

	// A question; a key that comes too soon is not an answer.
	p.say("ask me")
	p.wait("may shell run?")
	p.keys("\x1by")
	p.wait("before the question appeared")
	time.Sleep(600 * time.Millisecond)
	p.keys("\x1by")
	p.wait("approved shell")
	p.wait("asked")
	p.keys("\x14") // Ctrl+T
	p.wait("from-the-shell")

	// No, and why.
	p.say("no thanks")
	p.wait("may shell run?")
	time.Sleep(600 * time.Millisecond)
	p.keys("not today")
	p.keys("\x1bn")
	p.wait("rejected shell: not today")

	// /undo takes back the change of a call.
	p.say("edit it")
	p.wait("may edit run?")
	time.Sleep(600 * time.Millisecond)
	p.keys("\x1by")
	p.wait("edited")
	p.say("/undo")
	p.wait("undone: a.txt (0 more can be undone)")
	if raw, err := os.ReadFile(filepath.Join(ws, "a.txt")); err != nil || string(raw) != "one\ntwo\n" {
		t.Errorf("the file is %q, %v; want it as it was", raw, err)
	}
	p.say("/undo")
	p.wait("nothing to undo")

	// Text of somebody else's does nothing to the terminal.
	p.say("evil")
	p.wait("end-of-evil")
	p.mu.Lock()
	raw := p.out.String()
	p.mu.Unlock()
	for _, bad := range []string{"\x1b]0;owned", "\x1b[31mred", "\u202e", "\u009b"} {
		if strings.Contains(raw, bad) {
			t.Errorf("the terminal got %q", bad)
		}
	}
	p.wait(`\u{1b}]0;owned`) // what it is

	// While it works: one waits, one joins, and Esc ends it.
	p.say("slow please")
	p.wait("is working")
	p.say("a later one")
	p.wait("1 queued")
	p.keys("steer it")
	p.keys("\x13") // Ctrl+S
	p.wait("steer it")
	p.keys("\x1b")
	p.wait("the turn was cancelled")
	p.wait("echo: a later one")

	// Commands: an unknown one is reported, a known one does what it says.
	p.say("/nothing")
	p.wait("unknown command /nothing")
	for range "/nothing" {
		p.keys("\x7f")
	}
	p.say("/title A good title")
	p.wait("A good title")
	p.say("/new")
	p.wait("sess_") // it has no title yet
	p.say("in another one")
	p.wait("echo: in another one")
	p.keys("\x0f") // Ctrl+O
	p.wait("Esc goes back")
	p.wait("A good title")
	p.keys("\x1b[B")
	p.keys("\r")
	p.wait("echo: a later one") // what was said there
	p.say("/help")
	p.wait("/steer TEXT")
	p.keys("\x03")
	p.keys("\x03")
	p.end()
}

// The terminal is as it was whenever the chat is not at the front: after Ctrl+Z, SIGTSTP and
// SIGTERM. A shell with job control runs it.
func TestChatLeavesTheTerminal(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.serve()
	const script = `set -m; say() { echo "$1 <$(stty -g)>"; }
say before; "$@"; say first; read x; fg >/dev/null; say second; read x; fg >/dev/null; say after`
	p := b.ptyOf(nil, append([]string{"sh", "-c", script, "sh", b.bin}, b.args("chat", "--workspace", b.workspace())...)...)
	send := func(sig syscall.Signal) {
		t.Helper()
		group, err := unix.IoctlGetInt(int(p.master.Fd()), unix.TIOCGPGRP)
		if err != nil || group == p.cmd.Process.Pid {
			t.Fatalf("the group at the front is %d, %v, want that of yaya", group, err)
		}
		if err := syscall.Kill(-group, sig); err != nil {
			t.Fatal(err)
		}
	}
	p.wait("idle")
	p.keys("\x1a")
	p.wait("first <")
	p.keys("\r")
	p.wait("idle")
	p.say("still here")
	p.wait("echo: still here")
	send(syscall.SIGTSTP)
	p.wait("second <")
	p.keys("\r")
	p.wait("echo: still here")
	send(syscall.SIGTERM)
	p.wait("after <")
	p.end()
	p.closed()
	modes := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?:before|first|second|after) <([0-9a-f:]+)>`).FindAllStringSubmatch(p.out.String(), -1) {
		modes[m[1]] = true
	}
	if len(modes) != 1 {
		t.Errorf("the modes of the terminal are %v, want the same each time", modes)
	}
	out := p.out.String()
	for what, c := range map[string]struct{ on, off string }{
		"the other screen":         {"\x1b[?1049h", "\x1b[?1049l"},
		"a hidden cursor":          {"\x1b[?25l", "\x1b[?25h"},
		"marks around pasted text": {"\x1b[?2004h", "\x1b[?2004l"},
	} {
		if on, off := strings.LastIndex(out, c.on), strings.LastIndex(out, c.off); on < 0 || on > off {
			t.Errorf("the terminal keeps %s: on at %d, off at %d", what, on, off)
		}
	}
}

// Without a daemon, everything runs in this process, and ends with it.
func TestChatAlone(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	ws := b.workspace()
	p := b.ptyWith([]string{"NO_COLOR=1"}, "chat", "--workspace", ws)
	p.wait("idle")
	p.wait("no model is configured")
	if out, err := b.run("session", "undo", "sess_x"); err == nil || !strings.Contains(out, "with yaya serve, any number of them share it") {
		t.Errorf("beside a chat that runs alone, a change of a session = %v, %s; want the remedy", err, out)
	}
	p.keys("\x1a") // Ctrl+Z, with no shell that could continue it
	p.wait("there is no shell to go back to")
	p.say("hello alone")
	p.wait("echo: hello alone")
	p.keys("\x03")
	p.keys("\x03")
	p.wait("to continue: yaya chat --session sess_")
	p.end()
	p.closed()
	// The last session of the folder goes on, with a first message.
	again := b.pty("chat", "--workspace", ws, "--continue", "hello again")
	again.wait("echo: hello alone")
	again.wait("echo: hello again")
	again.keys("\x03")
	again.keys("\x03")
	again.end()
	// A chat that is left without a word leaves no session, and the next one continues the last with a turn.
	without := b.pty("chat", "--workspace", ws)
	without.wait("idle")
	without.keys("\x04")
	without.end()
	if n := strings.Count(b.must("session", "list"), "sess_"); n != 1 {
		t.Errorf("there are %d sessions, want the one in which something was said", n)
	}
	last := b.pty("chat", "--workspace", ws, "-c")
	last.wait("echo: hello again")
	last.keys("\x04")
	last.end()
	if colour := regexp.MustCompile(`\x1b\[([0-9]+;)*[34][0-7](;[0-9]+)*m`).FindString(p.out.String()); colour != "" {
		t.Errorf("NO_COLOR: the terminal got %q", colour)
	}
	// A terminal that cannot move its cursor is refused.
	p = b.ptyWith([]string{"TERM=dumb"}, "chat")
	p.wait("TERM is dumb; use yaya run")
	select {
	case err := <-p.ended:
		if err == nil {
			t.Error("the chat on a dumb terminal ended without an error")
		}
	case <-time.After(eventually.Limit):
		t.Error("the chat on a dumb terminal goes on")
	}
	p = b.ptyWith([]string{"TERM="}, "chat")
	p.wait("TERM is empty; use yaya run")
	// The full screen does not go into a pipe.
	p = b.ptyOf(nil, append([]string{"sh", "-c", `"$0" "$@" | cat`, b.bin}, b.args("chat")...)...)
	p.wait("its output is not one; use yaya run")
	if left, err := filepath.Glob(filepath.Join(b.dir, "d", "yaya.sock")); err != nil || len(left) > 0 {
		t.Errorf("got %v, %v, want len(left) at most 0", left, err)
	}
	// It says so where there is no terminal.
	if out, err := b.run("chat"); err == nil || !strings.Contains(out, "needs a terminal") {
		t.Errorf(`got %v %s, want an error, "needs a terminal" in it`, err, out)
	}
}

// yaya serve opens the page on a terminal with a desktop, unless it is told not to.
func TestServeOpensThePage(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	bin := filepath.Join(b.dir, "bin")
	opened := filepath.Join(b.dir, "opened")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	writeProgram(t, filepath.Join(bin, "xdg-open"), "#!/bin/sh\necho \"$#:$1\" >> "+opened+"\n")
	b.env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "DISPLAY=:99"}
	run := func(args ...string) {
		t.Helper()
		p := b.pty(append([]string{"serve", "--listen", b.addr}, args...)...)
		p.wait("page          http://" + b.addr + "/")
		p.wait("MCP endpoint  http://" + b.addr + "/mcp")
		p.keys("\x03")
		p.end()
	}
	run("--no-open")
	if _, err := os.Stat(opened); err == nil {
		t.Error("it was opened in spite of --no-open")
	}
	run()
	for deadline := time.Now().Add(eventually.Limit); ; time.Sleep(10 * time.Millisecond) {
		if got, err := os.ReadFile(opened); err == nil && string(got) == "1:http://"+b.addr+"/#/start\n" {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("opened: %q, %v", got, err)
		}
	}
}
