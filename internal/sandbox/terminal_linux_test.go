package sandbox

import (
	"bufio"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A program that shares the terminal hears of an interrupt as the others in the
// foreground do, and of what is sent to its sandbox; nothing between them dies of it.
func TestTerminalSignals(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		for _, c := range []struct {
			name   string
			group  bool
			signal unix.Signal
			want   int
		}{
			{"interrupt of the foreground", true, unix.SIGINT, 6},
			{"quit of the foreground", true, unix.SIGQUIT, 7},
			{"termination of the sandbox", false, unix.SIGTERM, 5},
		} {
			t.Run(backend+"/"+c.name, func(t *testing.T) {
				b := needs(t, backend)
				pol := profile(t, "check")
				pol.Terminal = true
				run, err := b.Enter(pol)
				if err != nil {
					t.Fatal(err)
				}
				defer run.Ended()
				cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `trap "exit 5" TERM; trap "exit 6" INT; trap "exit 7" QUIT; echo ready; while :; do sleep 0.05; done`)
				cmd.Dir, cmd.Env = "/", []string{"PATH=" + os.Getenv("PATH")}
				cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // stands for the foreground of a terminal
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := run.Wrap(cmd); err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				err = run.Started(cmd.Process.Pid)
				if err == nil {
					_, err = bufio.NewReader(out).ReadString('\n')
				}
				if err != nil {
					_, _ = cmd.Process.Kill(), cmd.Wait()
					t.Fatal(err)
				}
				to := cmd.Process.Pid
				if c.group {
					to = -to
				}
				if err := unix.Kill(to, c.signal); err != nil {
					t.Errorf("Kill(%d, %v) = %v, want no error", to, c.signal, err)
				}
				_ = cmd.Wait() // the code says it
				if got := cmd.ProcessState.ExitCode(); got != c.want {
					t.Errorf("exit code %d, want %d of the program's trap", got, c.want)
				}
			})
		}
	}
}
