package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// A hidden prompt ends with Ctrl-C, Ctrl-D and SIGTERM at the first time, changes nothing, and
// leaves a terminal that shows what is typed: the next line used to become the secret.
func TestHiddenPromptsEnd(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for name, cancel := range map[string]func(*pty){
		"Ctrl-C":             func(p *pty) { p.keys("\x03") },
		"Ctrl-D":             func(p *pty) { p.keys("\x04") },
		"Ctrl-C behind text": func(p *pty) { p.keys("abc"); p.keys("\x03") },
		"SIGTERM":            func(p *pty) { _ = p.cmd.Process.Signal(syscall.SIGTERM) },
	} {
		for command, args := range map[string][]string{
			"secret set":   {"secret", "set", "prompted"},
			"provider add": {"provider", "add", "prompted", "--model", "m", "--api-key-stdin"},
		} {
			t.Run(command+", "+name, func(t *testing.T) {
				p := b.pty(args...)
				p.wait("(hidden)")
				cancel(p)
				select {
				case err := <-p.ended:
					if exitCode(err) != exitError {
						t.Errorf("got %v, want exit code %d", err, exitError)
					}
				case <-time.After(eventually.Limit):
					t.Fatal("the prompt does not end")
				}
				if mode, err := unix.IoctlGetTermios(int(p.master.Fd()), unix.TCGETS); err != nil || mode.Lflag&unix.ECHO == 0 {
					t.Errorf("got a terminal of mode %+v, %v; want one that echoes", mode, err)
				}
			})
		}
	}
	if out := b.must("secret", "list") + b.must("provider", "list"); strings.Contains(out, "prompted") {
		t.Errorf("got %s, want nothing that canceled prompts have set", out)
	}
	p := b.pty("secret", "set", "prompted")
	p.wait("(hidden)")
	p.say("a value that is long enough")
	p.end()
	if out := b.must("secret", "list"); !strings.Contains(out, "prompted") {
		t.Errorf("got %s, want the secret that was typed", out)
	}
}
