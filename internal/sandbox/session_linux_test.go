package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func init() {
	// typed takes a terminal over, of whose session it is, and could read what is typed.
	attempts["typed"] = func(string) error {
		signal.Ignore(syscall.SIGTTOU)
		f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := f.WriteString("\x1b[2J"); err != nil {
			return err
		}
		return unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCSPGRP, unix.Getpgrp())
	}
	// attended is a yaya with a terminal that runs that in a sandbox, or without one.
	attempts["attended"] = func(arg string) error {
		words := strings.Fields(arg)
		self, err := os.Executable()
		if err != nil {
			return err
		}
		cmd := exec.Command(self)
		cmd.Env = []string{attemptEnv + "=typed"}
		cmd.Dir = filepath.Dir(words[2]) + "/ws"
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		out, err := os.Create(cmd.Dir + "/out")
		if err != nil {
			return err
		}
		cmd.Stdout, cmd.Stderr = out, out
		if words[0] != None {
			pol, err := Profile(words[1])
			if err != nil {
				return err
			}
			pol.Home = words[2]
			pol.Tmp = cmd.Dir // which is removed with the place
			if pol.Write, err = OpenNamed("", cmd.Dir); err != nil {
				return err
			}
			r, err := (&Box{Backend: words[0], Own: words[3:]}).Enter(pol)
			if err != nil {
				return err
			}
			if err := r.Wrap(cmd); err != nil {
				return err
			}
			if err := cmd.Start(); err != nil {
				return err
			}
			if err := r.Started(cmd.Process.Pid); err != nil {
				return err
			}
			return cmd.Wait()
		}
		return cmd.Run()
	}
}

// Where yaya runs in a terminal, its servers and the commands of agents are not of that
// terminal's session: they would write to it, and take it over to read what is typed.
func TestTerminalOfYaya(t *testing.T) {
	self := testBinary(t)
	run := func(t *testing.T, backend, profile string) int {
		t.Helper()
		p := newPlace(t)
		terminal, err := os.OpenFile(p.terminal(), os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer terminal.Close()
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), attemptEnv+"=attended "+strings.Join([]string{backend, profile, p.home, p.own}, " "))
		cmd.Stdin = terminal
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		said, err := cmd.CombinedOutput()
		if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
			t.Fatalf("got %v, want no error, or an exit code", err)
		}
		out, err := os.ReadFile(p.ws + "/out")
		t.Logf("%s%s %v", said, out, err)
		if err != nil {
			t.Fatal("it did not start")
		}
		if strings.TrimSpace(string(said)) != "exit status 41" && cmd.ProcessState.ExitCode() != didIt {
			t.Fatal("it did not run")
		}
		return cmd.ProcessState.ExitCode()
	}
	if run(t, None, "check") != didIt {
		t.Skip("it cannot be done without a sandbox either")
	}
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		for _, profile := range []string{"check", "server", "guarded"} {
			t.Run(backend+"/"+profile, func(t *testing.T) {
				needs(t, backend)
				if code := run(t, backend, profile); code != prevented {
					t.Errorf("code %d, want %d", code, prevented)
				}
			})
		}
	}
}
