// Command yaya is an MCP gateway: it connects MCP servers, and is one itself.
//
// Package main has one file for each command: its flags, what it prints, and its exit code.
// Package daemon builds the parts that a command works with.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/keychain"
	"github.com/yaya-ai/yaya/internal/memlimit"
	"github.com/yaya-ai/yaya/internal/proc"

	"github.com/yaya-ai/yaya/feature"
)

func main() { os.Exit(run()) }

// Exit codes. The last two follow env(1) and shells, for a program that could not be run.
const (
	exitOK        = 0
	exitError     = 1
	exitUsage     = 2
	exitCannotRun = 126
	exitNotFound  = 127
)

func run() int {
	if err := proc.SealDescriptors(); err != nil {
		fmt.Fprintln(os.Stderr, "yaya:", err)
		return exitError
	}
	if proc.GuardMain() {
		return exitOK
	}
	if code, mine := keychain.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); mine {
		return code
	}
	memlimit.Headroom()
	memlimit.Set() // the basis for detecting overload
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	ctx, unhang := withHangup(ctx)
	defer unhang()

	g := new(daemon.Flags)
	err := rootOf(g).ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if status, quiet := errors.AsType[*exitStatus](err); quiet && status.code != exitOK {
		return status.code
	} else if !quiet {
		// Errors can contain text from servers and files.
		fmt.Fprintln(os.Stderr, "yaya:", feature.Clean(g.Secrets.ConcealString(err.Error()), 16<<10))
	}
	if u, ok := errors.AsType[*usageError](err); ok {
		fmt.Fprintf(os.Stderr, "Run '%s --help' for usage.\n", u.command)
		return exitUsage
	}
	if n, ok := errors.AsType[*notRun](err); ok {
		return n.code()
	}
	if e, ok := errors.AsType[*endedBySignal](err); ok {
		return e.code
	}
	if hint := hiddenHere(g, err); hint != "" {
		fmt.Fprintln(os.Stderr, hint)
	}
	return exitError
}

// usageError is a mistake on the command line.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// notRun is the error for a program that could not be started.
type notRun struct{ error }

func (e *notRun) Unwrap() error { return e.error }

func (e *notRun) code() int {
	if errors.Is(e.error, exec.ErrNotFound) || errors.Is(e.error, fs.ErrNotExist) {
		return exitNotFound
	}
	return exitCannotRun
}

// endedBySignal is the error of a command that a signal has ended before it was done.
type endedBySignal struct {
	error
	code int // 128 and the number of the signal, as of programs that signals end
}

func (e *endedBySignal) Unwrap() error { return e.error }

// signalled gives the error of a command the exit code of the signal that has ended its context, if one
// has.
func signalled(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || cause == nil {
		return err
	}
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		if cause.Error() == s.String()+" signal received" { // as signal.NotifyContext writes it
			return &endedBySignal{err, 128 + int(s)}
		}
	}
	return err
}

// exitStatus makes the command fail without printing a message, with exitError where it has no
// code.
type exitStatus struct{ code int }

func (*exitStatus) Error() string { return "failed" }
