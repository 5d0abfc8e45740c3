//go:build unix

package proc

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// openerEnv turns the program into the parent of a user's program.
const openerEnv = "YAYA_PROCESS_OPENER"

// users are the processes that [StartForUser] has started.
var users = struct {
	mu   sync.Mutex
	pids map[int]bool
}{pids: map[int]bool{}}

func forUser(pid int) bool {
	users.mu.Lock()
	defer users.mu.Unlock()
	return users.pids[pid]
}

// StartForUser starts a program that belongs to its user from then on, such as a
// browser: it does not end with this process, and [Descends] does not count it, nor
// its descendants. The program must call [GuardMain] first thing in main.
//
// A small process of ours stands between, and adopts the orphans of that program:
// they would come to this process otherwise, where nobody could tell them from those
// of tools. It ends when nothing of the program is left, or when this process does.
func StartForUser(argv ...string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start %s: %w", argv[0], err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start %s: %w", argv[0], err)
	}
	cmd := exec.CommandContext(context.Background(), self, append([]string{path}, argv[1:]...)...) //nolint:gosec // our own binary
	cmd.Env = append(os.Environ(), openerEnv+"=1")
	cmd.Stdin = r
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	users.mu.Lock() // nobody asks before it is known
	err = cmd.Start()
	if err == nil {
		users.pids[cmd.Process.Pid] = true
	}
	users.mu.Unlock()
	_ = r.Close()
	if err != nil {
		_ = w.Close()
		return fmt.Errorf("start %s: %w", argv[0], err)
	}
	go func() { // it ends with the program, or with us
		_ = cmd.Wait()
		users.mu.Lock()
		delete(users.pids, cmd.Process.Pid)
		users.mu.Unlock()
		_ = w.Close()
	}()
	return nil
}

// opener starts the program of its arguments and stays until it has no child left, or
// until its own parent has gone, which ends its input.
func opener(in io.Reader) error {
	if err := becomeSubreaper(); err != nil {
		return err
	}
	env := os.Environ()
	for i, kv := range env {
		if strings.HasPrefix(kv, openerEnv+"=") {
			env = append(env[:i:i], env[i+1:]...)
			break
		}
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0) //nolint:forbidigo // the device
	if err != nil {
		return err
	}
	if _, err := syscall.ForkExec(os.Args[1], os.Args[1:], &syscall.ProcAttr{Env: env, Files: []uintptr{null.Fd(), null.Fd(), null.Fd()}}); err != nil { //nolint:gosec // what StartForUser was given
		return err
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = io.Copy(io.Discard, in)
	}()
	none := make(chan struct{})
	go func() {
		defer close(none)
		for {
			if _, err := syscall.Wait4(-1, nil, 0, nil); err != nil && err != syscall.EINTR { //nolint:errorlint // an errno
				return
			}
		}
	}()
	select {
	case <-left:
	case <-none:
	}
	return nil
}
