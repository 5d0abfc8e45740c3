package main

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// hangup handles SIGHUP: it ends a command, and makes a daemon reload its files. A daemon whose
// terminal was closed ends too, unless it was started with nohup.
type hangup struct {
	reload   atomic.Pointer[chan struct{}] // nil while the signal ends the command
	terminal bool                          // the process had a terminal when it started
}

type hangupKey struct{}

// withHangup returns a context that SIGHUP cancels, unless [hangups] takes the signal over. The
// returned function stops watching for the signal and waits for the watcher to end.
func withHangup(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	h := &hangup{terminal: !signal.Ignored(syscall.SIGHUP) && hasTerminal()}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range signals {
			to := h.reload.Load()
			if to == nil || (h.terminal && !hasTerminal()) {
				signal.Stop(signals) // a second signal ends the program at once
				cancel()
				continue
			}
			select {
			case *to <- struct{}{}:
			default: // a signal is pending already and covers this one
			}
		}
	}()
	return context.WithValue(ctx, hangupKey{}, h), func() {
		signal.Stop(signals)
		close(signals)
		<-done
		cancel()
	}
}

// hasTerminal reports whether the process has a controlling terminal.
func hasTerminal() bool {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0) //nolint:forbidigo // the terminal
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

// hangups sends SIGHUP to the channel from now on, instead of ending the command.
func hangups(ctx context.Context) <-chan struct{} {
	to := make(chan struct{}, 1)
	if h, ok := ctx.Value(hangupKey{}).(*hangup); ok {
		h.reload.Store(&to)
	}
	return to
}
