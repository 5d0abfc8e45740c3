//go:build unix

package chat

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"
)

// stop stops the process group as Ctrl+Z does, with the terminal as it was, and returns when the
// shell continues it. SIGSTOP is used because [watchStops] takes SIGTSTP. The system does not keep
// it from a group that nobody could continue, that of the session's leader, so stop does.
func stop(p *tea.Program) error {
	if sid, err := unix.Getsid(0); err != nil || sid == unix.Getpgrp() {
		return errors.Join(errors.New("there is no shell to go back to; leave with Ctrl+D"), err)
	}
	if err := p.ReleaseTerminal(); err != nil {
		return err
	}
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	err := syscall.Kill(0, syscall.SIGSTOP)
	if err == nil {
		<-continued
	}
	return errors.Join(err, p.RestoreTerminal())
}

// watchStops sends [suspended] when another program asks this one to stop: it would leave the
// terminal in raw mode. The returned function ends that.
func watchStops(send func(tea.Msg)) (end func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTSTP)
	var done sync.WaitGroup
	done.Go(func() {
		for range signals {
			send(suspended{})
		}
	})
	return func() {
		signal.Stop(signals)
		close(signals)
		done.Wait()
	}
}
