package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/sandbox"
)

// notSent marks an error as [feature.ErrNotSent], once.
func notSent(err error) error {
	if errors.Is(err, feature.ErrNotSent) {
		return err
	}
	return fmt.Errorf("%w: %w", feature.ErrNotSent, err)
}

var errNotReading = fmt.Errorf("%w: the server does not read its input", feature.ErrNotSent)

// stdio is a transport over a child's standard streams: one message per line.
type stdio struct {
	*mux
	p   *proc.Process
	run *sandbox.Run // nil without
	w   *lineWriter

	// ready says that the handshake is over: from then on, the last lines of standard error
	// explain the end of the process, not the first ones.
	ready      atomic.Bool
	cancel     context.CancelFunc // ends the reader, which may wait for memory
	readerDone chan struct{}
	lost       chan struct{} // closed when either direction has failed
	once       sync.Once
}

// lose ends the connection: nothing more is sent, and pending requests fail with the reason.
func (t *stdio) lose(err error) {
	t.fail(err)
	t.once.Do(func() { close(t.lost) })
}

// startChild starts the server's process for a session, in its sandbox.
func (p *Provider) startChild(s *session) (*stdio, error) {
	p.boxes.RLock()
	defer p.boxes.RUnlock()
	srv := p.cfg.Server
	spec := proc.Spec{Path: srv.Command, Args: srv.Args, Env: p.cfg.Environ(), Dir: srv.Dir, Stderr: p.stderr()}
	var run *sandbox.Run
	if p.cfg.Sandbox != nil {
		var err error
		if run, err = p.cfg.Sandbox(p.denied); err != nil {
			p.born(nil, outcome(nil, err))
			return nil, err
		}
	}
	switch {
	case run == nil:
	case run.Enforced.Backend == sandbox.None:
		run.Ended() // nothing is enforced: it is an ordinary process
	default:
		spec.Sandbox = run
	}
	st, err := startStdio(p.cfg.Procs, spec, &p.stats.dropped, s, s.room())
	if err != nil {
		p.born(nil, outcome(run, nil))
		return nil, err
	}
	st.run = run
	p.born(st, outcome(run, nil))
	return st, nil
}

// pid returns the process id of the server itself, even if another process supervises it.
func (t *stdio) pid() int {
	if t.run != nil {
		if pid := t.run.PID(); pid != 0 {
			return pid
		}
	}
	return t.p.PID()
}

func startStdio(procs *proc.Manager, spec proc.Spec, dropped *atomic.Uint64, in incoming, at room) (*stdio, error) {
	p, err := procs.Start(spec)
	if err != nil {
		return nil, err
	}
	t := &stdio{p: p, w: newLineWriter(p.Stdin), readerDone: make(chan struct{}), lost: make(chan struct{})}
	t.mux = newMux(dropped, in, func(msg []byte) { _ = t.w.write(msg) })
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	go t.read(ctx, at)
	return t, nil
}

func (t *stdio) read(ctx context.Context, at room) {
	defer close(t.readerDone)
	in := newLines(t.p.Stdout, at)
	in.line, in.late, in.lost, in.enough = t.dispatch, t.late, t.mux.lost, t.enough
	err := func() (err error) {
		defer func() {
			if v := recover(); v != nil {
				err = t.in.panicked(v)
			}
		}()
		return in.read(ctx)
	}()
	if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
		// The end of its output is the end of the server; the exit status is known once the
		// process is gone.
		select {
		case <-t.p.Done():
		case <-time.After(500 * time.Millisecond):
		}
		t.p.Kill()
		err = fmt.Errorf("the server process %w", t.p.Err())
		err = t.explained(err)
	} else {
		t.p.Kill()
	}
	t.lose(err)
}

// stderr returns the last output of the server on standard error, without secrets.
func (t *stdio) stderr() string { return t.in.concealed(t.p.Stderr()) }

// explained adds the server's own words about it to an error.
func (t *stdio) explained(err error) error {
	if !t.ready.Load() {
		if line := headline(t.stderr()); line != "" {
			return fmt.Errorf("%w; it said: %s", err, line)
		}
	} else if line := lastLine(t.stderr()); line != "" {
		return fmt.Errorf("%w; it last said: %s", err, line)
	}
	return err
}

// Times for a start that downloads its program: the delay before it is reported, since a cached
// program starts sooner, and the interval between two checks of its output.
const (
	installAfter = 2 * time.Second
	installLook  = time.Second
)

// installing reports the output of the server's command while it starts. The returned function
// ends the reports, and waits for the reporter to end.
func (t *stdio) installing(command string, tell func(line string)) (end func()) {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		look := time.NewTimer(installAfter)
		defer look.Stop()
		for {
			select {
			case <-stop:
				return
			case <-look.C:
				tell(cmp.Or(lastLine(t.stderr()), command+" has printed nothing so far"))
				look.Reset(installLook)
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
	}
}

// endsWithin bounds how long a process that no longer takes input may take to end, including
// the time until yaya notices, which is not immediate on a busy machine. After that, a process
// that keeps running without reading is lost.
const endsWithin = 2 * time.Second

func (t *stdio) roundTrip(ctx context.Context, req *request) (reply, error) {
	p, err := t.add(req)
	if err != nil {
		return reply{}, notSent(err)
	}
	defer t.drop(req.id, p)
	if req.kept, err = t.w.writeFrom(req.body, req.buf); err != nil {
		if errors.Is(err, errNotReading) {
			return reply{}, err
		}
		// The reader is about to learn the exit status, which says more.
		select {
		case <-t.lost:
		case <-time.After(endsWithin):
			t.lose(err)
		}
		if errors.Is(err, feature.ErrNotSent) {
			err = notSent(t.failed())
		}
		return reply{}, err
	}
	return wait(ctx, p, req)
}

// wait collects the notes of a request and its answer.
func wait(ctx context.Context, p *pending, req *request) (reply, error) {
	p.watch.Attach(ctx, p)
	for {
		select {
		case n := <-p.notes:
			p.heavy.Add(-int64(len(n.params)))
			req.took(n)
		case a := <-p.done:
			if errors.Is(a.err, errEnded) {
				return reply{}, ctx.Err()
			}
			for len(p.notes) > 0 {
				req.took(<-p.notes)
			}
			if a.parked != nil {
				return a.parked.reply(ctx, req)
			}
			return a.reply, a.err
		}
	}
}

func (t *stdio) send(_ context.Context, msg []byte) error { return t.w.write(msg) }

func (t *stdio) copies() bool { return true }

func (t *stdio) done() <-chan struct{} { return t.lost }

func (t *stdio) close(ctx context.Context) {
	t.w.close()
	t.cancel()
	t.p.Stop(ctx)
	<-t.readerDone
}
