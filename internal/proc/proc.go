package proc

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	markerEnv  = "YAYA_CHILD"
	stderrTail = 8 << 10 // bytes of standard error kept (MCP upstream limits)
)

// Grace periods of [Process.Stop], from the MCP stdio shutdown sequence: close
// standard input, then SIGTERM (on Windows Ctrl-Break), then SIGKILL. Their sum stays below the 5 s
// within which the whole tree must be gone.
const (
	graceStdin = 1500 * time.Millisecond
	graceTerm  = 1500 * time.Millisecond
	graceEnd   = time.Second // of a sandbox, whose first process kills what is in it
)

// ErrClosed is returned by Start after the manager was closed.
var ErrClosed = errors.New("the process manager is closed")

// Spec describes the program to run. No shell is involved, and Env is the whole
// environment.
type Spec struct {
	Path string // resolved through the PATH of Env, never relative to Dir
	Args []string
	// Line replaces Args on Windows, for programs that read their command line by other rules
	// than most, as cmd.exe does. Optional.
	Line string
	Env  []string
	Dir  string // "" is the manager's own directory
	// Stderr also gets what the child writes to standard error, on one goroutine; it
	// must not block. If it has a method End, that is called when nothing more comes.
	// Optional.
	Stderr io.Writer
	// Held gives the program the descriptor 3, from which it has to read a line before
	// it does anything, and to close it then: [Process.Release] writes it. At the end
	// of the owner or of Stop there is none to be read.
	Held bool
	// NoTerminal starts the program without the terminal of this process, which it could open
	// otherwise. Windows has none.
	NoTerminal bool
	// Sandbox changes how the program is started, and gets notified of its start and
	// its end. Optional.
	Sandbox Sandbox
}

// Sandbox is the sandbox of one process, which internal/sandbox builds from a
// policy.
type Sandbox interface {
	// Wrap changes a command that is about to be started; its Path is absolute.
	Wrap(cmd *exec.Cmd) error
	// Started waits until the program runs; pid is that of the process that was
	// started. An error ends it.
	Started(pid int) error
	// Keeps reports, after Wrap, whether the started process ends everything below it, and
	// then itself, when its owner dies or asks for it.
	Keeps() bool
	// End tells a process that keeps to do so.
	End()
	// Ended is called after the end of the process and its descendants, or after a
	// failed start. It may be called more than once.
	Ended()
}

// none is the absence of a sandbox.
type none struct{}

func (none) Wrap(*exec.Cmd) error { return nil }
func (none) Started(int) error    { return nil }
func (none) Keeps() bool          { return false }
func (none) End()                 {}
func (none) Ended()               {}

// Manager starts processes and ends them. The zero value works, without a
// guard; its methods are safe for concurrent use.
type Manager struct {
	// Guard starts the helper that kills remaining processes when this process dies.
	// The program must call [GuardMain] first thing in main.
	Guard bool
	// Escaped is called, on a goroutine of this package, with the number of processes
	// that were killed after they had lost the first process of their sandbox.
	// Optional.
	Escaped func(killed int)

	mu     sync.Mutex
	guard  *guardHandle
	procs  map[*Process]struct{}
	adopts bool
	closed bool
}

// Adopt makes this process the parent of its descendants' orphans (Linux 5.4),
// until the manager is closed: from then on [Descends] is certain, and no
// descendant escapes the end of its tree. Start calls it, too.
func (m *Manager) Adopt() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed && !m.adopts {
		m.adopts = orphanage.adopt(m.Escaped)
	}
}

// Process is one running child.
type Process struct {
	// Stdin and Stdout are the owner's ends of the child's pipes. They support
	// deadlines. Stop closes them.
	Stdin  *os.File
	Stdout *os.File

	manager *Manager
	cmd     *exec.Cmd
	tree    tree
	gate    *os.File // of a held process
	sandbox Sandbox
	started chan struct{} // closed when the sandbox has been told that it is
	marker  string
	since   uint64 // when it was started, in ticks
	tail    *tail
	done    chan struct{}
	exit    error // why it ended; set before done is closed

	stopOnce sync.Once
}

// Start runs spec. The process lives until it ends by itself, Stop is called,
// or the manager is closed; no context bounds it.
func (m *Manager) Start(spec Spec) (*Process, error) {
	if spec.Sandbox == nil {
		spec.Sandbox = none{}
	}
	p, err := m.start(spec)
	if err != nil {
		spec.Sandbox.Ended()
		return nil, err
	}
	err = spec.Sandbox.Started(p.PID()) // others start meanwhile
	close(p.started)
	if err != nil {
		p.Kill()
		if why := strings.TrimSpace(p.tail.String()); why != "" { // such as bubblewrap's reason
			err = fmt.Errorf("%w: %s", err, why)
		}
		return nil, err
	}
	return p, nil
}

func (m *Manager) start(spec Spec) (*Process, error) {
	if err := sealed(); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Path, err)
	}
	m.Adopt()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	if m.Guard && m.guard == nil {
		g, err := startGuard()
		if err != nil {
			return nil, err
		}
		m.guard = g
	}
	path, err := LookPath(spec.Path, spec.Env)
	if err != nil {
		return nil, err
	}
	p := &Process{manager: m, marker: rand.Text(), since: ticks(), tail: &tail{also: spec.Stderr}, sandbox: spec.Sandbox, started: make(chan struct{}), done: make(chan struct{})}
	cmd, err := command(path, spec)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Path, err)
	}
	cmd.Env = append(append([]string{}, spec.Env...), markerEnv+"="+p.marker)
	cmd.Dir = spec.Dir
	if spec.Sandbox != (none{}) && !filepath.IsAbs(cmd.Path) { // as exec has it, below Dir
		if cmd.Path, err = filepath.Abs(filepath.Join(spec.Dir, path)); err != nil {
			return nil, err
		}
	}
	cmd.SysProcAttr = sysProcAttr(spec)
	p.cmd = cmd

	ends, err := newPipes(spec.Held)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Path, err)
	}
	p.gate = ends.gate
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = ends.theirs[0], ends.theirs[1], ends.theirs[2], slices.Clone(ends.theirs[3:])
	if err = spec.Sandbox.Wrap(cmd); err != nil {
		closeAll(ends.theirs)
		closeAll(ends.ours)
		return nil, err
	}
	err = p.tree.start(cmd)
	closeAll(ends.theirs)
	if err != nil {
		closeAll(ends.ours)
		// The system reports the same error for a missing program and a missing folder.
		if info, derr := os.Stat(cmp.Or(spec.Dir, ".")); derr != nil {
			err = fmt.Errorf("its folder: %w", derr)
		} else if !info.IsDir() {
			err = fmt.Errorf("its folder: %s is not a folder", spec.Dir)
		}
		return nil, fmt.Errorf("start %s: %w", spec.Path, err)
	}
	p.Stdin, p.Stdout = ends.stdin, ends.stdout
	if err := m.guard.tell(fmt.Sprintf("%c%d %s", guarded(p), cmd.Process.Pid, p.marker)); err != nil {
		// Without the guard the child could outlive us.
		p.tree.kill(cmd.Process.Pid)
		_ = cmd.Wait()
		closeAll(ends.ours)
		m.guard.close()
		m.guard = nil
		return nil, err
	}
	if m.procs == nil {
		m.procs = make(map[*Process]struct{})
	}
	m.procs[p] = struct{}{}
	living.mu.Lock()
	living.procs[p] = struct{}{}
	living.mu.Unlock()
	go p.wait(ends.stderr)
	return p, nil
}

// notFoundError reports that a command is in none of the folders; it is an
// [exec.ErrNotFound].
type notFoundError struct {
	name    string
	folders []string
}

func (e *notFoundError) Error() string {
	const remedy = "install it, or give its full path"
	switch n := len(e.folders); n {
	case 0:
		return fmt.Sprintf("command %q was not found: PATH names no folder; give its full path", e.name)
	case 1, 2, 3:
		return fmt.Sprintf("command %q was not found in PATH (%s); %s", e.name, strings.Join(e.folders, ", "), remedy)
	default:
		return fmt.Sprintf("command %q was not found in PATH (%d folders, %s to %s); %s", e.name, n, e.folders[0], e.folders[n-1], remedy)
	}
}

func (e *notFoundError) Is(target error) bool { return target == exec.ErrNotFound }

// wait owns the child until it is gone with everything that it started.
func (p *Process) wait(stderr *os.File) {
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = p.tail.ReadFrom(stderr)
	}()
	err := p.cmd.Wait()
	pid := p.cmd.Process.Pid
	p.tree.kill(pid)
	clean := p.endTree()
	// All processes that held the other end of stderr are dead; one that escaped both
	// searches must not block us.
	select {
	case <-drained:
	case <-time.After(time.Second):
		_ = stderr.SetReadDeadline(time.Now())
		<-drained
	}
	_ = stderr.Close()
	if p.gate != nil {
		_ = p.gate.Close()
	}
	living.mu.Lock()
	delete(living.procs, p)
	living.mu.Unlock()
	<-p.started // a short program may be faster
	p.sandbox.Ended()
	p.exit = exitError(p.cmd, err, p.sandboxed())
	if !clean {
		p.exit = fmt.Errorf("%w; processes that it left do not end though they were killed", p.exit)
	}
	p.manager.mu.Lock()
	delete(p.manager.procs, p)
	_ = p.manager.guard.tell(fmt.Sprintf("-%d", pid))
	p.manager.mu.Unlock()
	close(p.done)
}

// Release lets a held program continue. Between Start and Release it has read
// nothing, so the caller can check its program and folder by its id.
func (p *Process) Release() error {
	_, err := p.gate.WriteString("\n")
	cerr := p.gate.Close()
	if errors.Is(cerr, os.ErrClosed) { // a short program has ended by then, and wait closed it
		cerr = nil
	}
	return errors.Join(err, cerr)
}

// PID returns the process id, which is also the id of its group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child and everything it started is gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the child ended. It is valid once Done is closed.
func (p *Process) Err() error { return p.exit }

// ExitCode returns the child's exit code, -1 if a signal ended it. It is valid once
// Done is closed.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Stderr returns the last 8 KiB that the child wrote to standard error.
func (p *Process) Stderr() string { return p.tail.String() }

// Stop ends the child: standard input is closed, then SIGTERM goes to the
// group (Ctrl-Break on Windows), then SIGKILL. It returns when the whole tree is gone, at most about
// 4 s later; ctx only shortens the patience. It may be called more than once
// and from several goroutines.
func (p *Process) Stop(ctx context.Context) {
	p.stopOnce.Do(func() {
		defer func() { _ = p.Stdout.Close() }()
		_ = p.Stdin.Close()
		if p.waitFor(ctx, graceStdin) {
			return
		}
		p.tree.ask(p.PID())
		if p.waitFor(ctx, graceTerm) {
			return
		}
		if p.sandbox.Keeps() { // its first process knows best which processes remain
			p.sandbox.End()
			if p.waitFor(context.WithoutCancel(ctx), graceEnd) {
				return
			}
		}
		p.tree.kill(p.PID())
	})
	<-p.done
}

// Kill ends the whole tree at once.
func (p *Process) Kill() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p.Stop(ctx)
}

func (p *Process) waitFor(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.done:
		return true
	case <-ctx.Done():
	case <-t.C:
	}
	return false
}

// Close stops every process and the guard, in parallel, and waits for them.
func (m *Manager) Close(ctx context.Context) {
	m.mu.Lock()
	m.closed = true
	all := make([]*Process, 0, len(m.procs))
	for p := range m.procs {
		all = append(all, p)
	}
	m.mu.Unlock()
	var wg sync.WaitGroup
	for _, p := range all {
		wg.Go(func() { p.Stop(ctx) })
	}
	wg.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.guard.close()
	m.guard = nil
	if m.adopts {
		m.adopts = false
		orphanage.release()
	}
}
