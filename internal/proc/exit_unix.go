//go:build unix

package proc

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// exitError reports how a child ended. The first process of a sandbox exits with 128
// and the number of the signal that ended the program.
func exitError(cmd *exec.Cmd, err error, sandboxed bool) error {
	if err == nil {
		return errors.New("exited with status 0")
	}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
		if ws.Signaled() {
			return bySignal(ws.Signal())
		}
		if sig := ws.ExitStatus() - 128; sandboxed && sig > 0 && sig < 32 {
			return bySignal(syscall.Signal(sig))
		}
		return fmt.Errorf("exited with status %d", ws.ExitStatus())
	}
	return err
}

// bySignal is the end by a signal, with its name: the text of SIGKILL is "killed".
func bySignal(sig syscall.Signal) error {
	return fmt.Errorf("ended with %s", cmp.Or(unix.SignalName(sig), fmt.Sprintf("signal %d", int(sig))))
}
