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

// stdio is a transport over a child's standard streams: one message a line.
type stdio struct {
	*mux
	p   *proc.Process
	run *sandbox.Run // nil without
	w   *lineWriter

	// ready says that the handshake is over: how it ends from then on stands in what
	// it said last, not first.
	ready      atomic.Bool
	ctx        context.Context // of the reader, which may wait for memory
	cancel     context.CancelFunc
	readerDone chan struct{}
	lost       chan struct{} // closed when either direction has failed
	once       sync.Once
}

// lose ends the connection: nothing more is sent, and whoever waits learns why.
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
		run.Ended() // nothing is enforced: it is a process like others
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

// pid returns the id of the server itself, also where another process keeps it.
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
	t.ctx, t.cancel = context.WithCancel(context.Background())
	go t.read(at)
	return t, nil
}

func (t *stdio) read(at room) {
	defer close(t.readerDone)
	in := newLines(t.p.Stdout, at, t.ctx)
	in.line, in.late, in.lost, in.enough = t.dispatch, t.late, t.mux.lost, t.enough
	err := func() (err error) {
		defer t.in.recovered(&err)
		return in.read()
	}()
	if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
		// The end of its output is the end of the server; how it ended is known
		// when it is gone.
		select {
		case <-t.p.Done():
		case <-time.After(500 * time.Millisecond):
		}
		t.p.Kill()
		err = fmt.Errorf("the server process %w", t.p.Err())
		err = t.said(err)
	} else {
		t.p.Kill()
	}
	t.lose(err)
}

// stderr returns what the server last wrote to standard error, without secrets.
func (t *stdio) stderr() string { return t.in.concealed(t.p.Stderr()) }

// said adds to an error what the server has said about it.
func (t *stdio) said(err error) error {
	if !t.ready.Load() {
		if line := headline(t.stderr()); line != "" {
			return fmt.Errorf("%w; it said: %s", err, line)
		}
	} else if line := lastLine(t.stderr()); line != "" {
		return fmt.Errorf("%w; it last said: %s", err, line)
	}
	return err
}

// Times of the state of a start that fetches: until it is told of, since what is
// fetched already starts sooner, and between two looks at what it says.
const (
	installAfter = 2 * time.Second
	installLook  = time.Second
)

// installing tells what the server's command says while it starts. The returned
// function ends that, and waits for it.
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
				tell(cmp.Or(lastLine(t.stderr()), command+" has said nothing so far"))
				look.Reset(installLook)
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
	}
}

func (t *stdio) roundTrip(ctx context.Context, req *request) (reply, error) {
	p, err := t.add(req)
	if err != nil {
		return reply{}, notSent(err)
	}
	defer t.drop(req.id, p)
	if err := t.w.write(req.body); err != nil {
		if errors.Is(err, errNotReading) {
			return reply{}, err
		}
		// The reader is about to learn how the process ended, which says more.
		select {
		case <-t.lost:
		case <-time.After(200 * time.Millisecond):
			t.lose(err)
		}
		if errors.Is(err, feature.ErrNotSent) {
			err = notSent(t.failed())
		}
		return reply{}, err
	}
	return wait(ctx, p, req)
}

// wait collects the notes and the answer of a request.
func wait(ctx context.Context, p *pending, req *request) (reply, error) {
	for {
		select {
		case n := <-p.notes:
			p.heavy.Add(-int64(len(n.params)))
			req.took(n)
		case a := <-p.done:
			for len(p.notes) > 0 {
				req.took(<-p.notes)
			}
			if a.parked != nil {
				return a.parked.reply(ctx, req)
			}
			return a.reply, a.err
		case <-ctx.Done():
			return reply{}, ctx.Err()
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
