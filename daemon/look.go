package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// look is a check that may hang: the disk, or a lock that somebody holds who waits for the disk.
// done is closed when it has ended; then out is there.
type look struct {
	done chan struct{}
	out  any
}

// within returns what f returns, or false when it has not ended within bound, when ctx ends, or
// when yaya stops. Those who ask under one name share one run of f: a goroutine that hangs in a
// system call cannot be ended, so there is at most one for each name, which [disk.close] waits for.
func within[T any](ctx context.Context, d *disk, name string, bound time.Duration, f func() T) (out T, ok bool) {
	d.mu.Lock()
	l := d.looks[name]
	if l == nil {
		l = &look{done: make(chan struct{})}
		if !d.work.Go(func() {
			l.out = f()
			d.mu.Lock()
			delete(d.looks, name)
			d.mu.Unlock()
			close(l.done)
		}) {
			d.mu.Unlock()
			return out, false
		}
		if d.looks == nil {
			d.looks = map[string]*look{}
		}
		d.looks[name] = l
	}
	d.mu.Unlock()
	late := time.NewTimer(bound)
	defer late.Stop()
	select {
	case <-l.done:
		out, ok = l.out.(T)
		return out, ok
	case <-late.C:
	case <-ctx.Done():
	}
	return out, false
}

// check is a check that may hang.
func (d *disk) check(ctx context.Context, name string, bound time.Duration, f func() plugin.HealthCheck) plugin.HealthCheck {
	if c, ok := within(ctx, d, name, bound, f); ok {
		return c
	}
	return plugin.HealthCheck{Name: name, Status: plugin.Failing, Message: noAnswer(name, bound)}
}

// rows are those of doctor that a check makes which may hang; they are of the part.
func (d *disk) rows(ctx context.Context, part, name string, bound time.Duration, f func() []plugin.Diagnosis) []plugin.Diagnosis {
	if rows, ok := within(ctx, d, name, bound, f); ok {
		return rows
	}
	return []plugin.Diagnosis{{Plugin: part, HealthReport: plugin.HealthReport{Status: plugin.Failing, Summary: noAnswer(name, bound)}}}
}

func noAnswer(name string, bound time.Duration) string {
	return fmt.Sprintf("the check %s did not end within %v: does a disk not answer?", name, bound)
}

// free returns the free space for the metrics, -1 for what is not known.
func (d *disk) free() journal.Space {
	s, ok := within(context.Background(), d, "free space", probeTimeout, func() journal.Space {
		s, err := d.fs.Free()
		if err != nil {
			return journal.Space{Bytes: -1, Files: -1}
		}
		return s
	})
	if !ok {
		return journal.Space{Bytes: -1, Files: -1}
	}
	return s
}

// answerTimeout is how long a command waits for the first answer of a data directory: a disk
// that sleeps needs some seconds.
const answerTimeout = 15 * time.Second

// Answers returns an error if the data directory of p does not answer: commands that would read it
// say so, and do not hang.
func (p Paths) Answers(ctx context.Context) error {
	return answers(ctx, p.Data, func(dir string) error {
		f, err := os.Open(dir) //nolint:forbidigo,gosec // the root of all other access
		if err != nil {
			return err
		}
		_, err = f.Readdirnames(1)
		return errors.Join(err, f.Close())
	})
}

// answers runs look, which may hang in the system. Nothing ends such a call: its goroutine ends
// with the process, which the error ends.
func answers(ctx context.Context, dir string, look func(dir string) error) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = look(dir) // that there is an answer counts; the command meets the error itself
	}()
	late := time.NewTimer(answerTimeout)
	defer late.Stop()
	select {
	case <-done:
		return nil
	case <-late.C:
		return fmt.Errorf("the data directory %s does not answer within %v: its disk hangs, or the file system there waits for a network or a program; look at mount and dmesg", dir, answerTimeout)
	case <-ctx.Done():
		return fmt.Errorf("data directory %s: %w", dir, ctx.Err())
	}
}
