package main

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/yaya-ai/yaya/daemon"
)

// hangup handles SIGHUP: it ends a command, unless that was started with nohup, and makes a
// daemon reload its files. A daemon whose terminal was closed ends too.
type hangup struct {
	reload   atomic.Pointer[chan struct{}] // nil while the signal ends the command
	ignored  bool                          // when the process started: by nohup, or by a restart
	terminal bool                          // its end ends a daemon; set before reload
	end      context.CancelFunc
}

type hangupKey struct{}

// withHangup returns a context that SIGHUP cancels, unless [hangups] takes the signal over. The
// returned function stops watching for the signal and waits for the watcher to end.
func withHangup(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	h := &hangup{ignored: signal.Ignored(syscall.SIGHUP), end: cancel}
	h.terminal = !h.ignored && hasTerminal()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range signals {
			to := h.reload.Load()
			if to == nil && h.ignored {
				continue
			}
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

// hangups sends SIGHUP to the channel from now on, instead of ending the command. Terminal says
// that the end of the terminal ends it still.
func hangups(ctx context.Context, in *daemon.Inherited) (reload <-chan struct{}, terminal bool) {
	to := make(chan struct{}, 1)
	h, ok := ctx.Value(hangupKey{}).(*hangup)
	if !ok {
		return to, false
	}
	if in.Restarted() {
		h.terminal = in.Terminal()
	}
	h.reload.Store(&to)
	if in.Terminal() && !hasTerminal() { // it was closed during the restart
		h.end()
	}
	return to, h.terminal
}
