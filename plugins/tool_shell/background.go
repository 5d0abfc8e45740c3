package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// A command in the background is a job. It outlives the call that starts it, so it has a record of
// unapproved changes and a proxy of its own; the call's open folder is needed only for the start.
// One goroutine attends to it until its whole process tree is gone. Undo covers what it changes
// until its call returns: a step that stays open would keep a person from undoing anything while a
// server runs.

// Bounds of commands in the background.
const (
	maxBackground = 24 * time.Hour // of a time limit
	firstLook     = time.Second    // that the call waits for the end
)

// job is a command in the background.
type job struct {
	id      string
	session string
	text    string
	began   time.Time
	halted  chan struct{} // closed to end it
	halt    func()
	done    chan struct{} // closed when it has ended, with all that it has started

	// Guarded by the mutex of its jobs.
	running bool // it has a process
	gone    bool // nobody reads it from now on

	mu      sync.Mutex
	out     unread
	news    chan struct{} // closed when there is more output, or the end
	end     *ran          // nil while it runs
	stopped bool          // by shell_stop
	denials func() []string
	told    string // denials that were told
}

// goOn starts a command that goes on after its call. If the command ends at once, its result is
// that of any other.
func (p *Plugin) goOn(ctx context.Context, call tool.Call, c *command) (tool.Result, error) {
	j, err := p.jobs.reserve(call.SessionID, c.text)
	if err != nil {
		res := tool.Fail(tool.ErrRejected, "%v", err)
		res.NotRun = true
		return res, nil
	}
	kept := p.watchFiles(ctx, call, c.setting)
	err = p.launch(ctx, call, c, j)
	if err == nil {
		err = j.look(ctx)
	}
	same, note := kept(ctx)
	if err != nil {
		p.jobs.drop(j)
		return ended(nil, err)
	}
	text, end := j.read()
	if note != "" {
		text = onLines(text, note)
	}
	if end != nil {
		p.jobs.drop(j)
		r := *end
		r.output, r.same = text, same
		return r.result(), nil
	}
	res := tool.OK("runs in the background as "+j.id, tool.Text(onLines(text, fmt.Sprintf("[runs in the background as %s: shell_output reads what is new, shell_stop ends it]", j.id))))
	if res.Structured, err = json.Marshal(jobState{ID: j.id, Running: true}); err != nil {
		return tool.Result{}, err
	}
	return res, nil
}

// look waits a moment for the end of a job. A call that is cancelled meanwhile has no result that
// could name the job.
func (j *job) look(ctx context.Context) error {
	moment := time.NewTimer(firstLook)
	defer moment.Stop()
	select {
	case <-j.done:
		return nil
	case <-moment.C:
		return nil
	case <-ctx.Done():
		j.halt()
		<-j.done
		return context.Cause(ctx)
	}
}

// launch starts the process of a job, and who attends to it. If it fails, the job is over.
func (p *Plugin) launch(ctx context.Context, call tool.Call, c *command, j *job) (err error) {
	over := func() error { return nil }
	defer func() {
		if err != nil {
			err = errors.Join(err, over())
			close(j.done)
			p.jobs.ended(j)
		}
	}()
	if call.Origin == tool.OriginLoop && !call.Prepared.Approved {
		if over, err = p.Unreviewed(tool.Change{SessionID: call.SessionID, Tool: call.Name, Any: true}); err != nil {
			over = func() error { return nil }
			return &tool.Failure{Kind: tool.ErrRejected, Err: fmt.Errorf("denied: the command runs unasked only if the possible change of the workspace can be recorded, and recording failed: %w", err)}
		}
	}
	call.Progress = nil
	watch := p.newReach(context.WithoutCancel(ctx), call, c.text, c.at.cwd, nil)
	watch.quiet = true
	child, err := p.start(ctx, c.setting, c.text, watch, c.unchanged)
	if err != nil {
		watch.end()
		return err
	}
	j.mu.Lock()
	j.out.masked = p.c.Secrets().Stream()
	if profile := c.box.profile; profile != "" {
		j.denials = func() []string { return watch.notes(profile) }
	}
	j.mu.Unlock()
	p.jobs.started(j)
	var limit *clock
	if c.limit > 0 {
		limit = newClock(c.limit, j.halt)
	}
	go p.attend(j, c, child, watch, limit, over) //nolint:gosec // a job outlives its call
	return nil
}

// attend reads what a job writes, and ends it when it is halted. When it returns, nothing is left
// of the job but its output.
func (p *Plugin) attend(j *job, c *command, child *proc.Process, watch *reach, limit *clock, over func() error) {
	_ = child.Stdin.Close() // nothing is typed into it
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(j, child.Stdout) // the reader ends with the tree
	}()
	select {
	case <-j.halted:
		child.Stop(context.Background())
	case <-child.Done():
	}
	<-read
	_ = child.Stdout.Close() // all of it has been read
	<-child.Done()
	r := &ran{command: c.text, limit: c.limit, timedOut: limit != nil && limit.stop(), code: child.ExitCode()}
	watch.end()
	j.mu.Lock()
	j.out.add(j.out.masked.End())
	r.output = strings.ToValidUTF8(string(j.out.recent), "\uFFFD")
	j.mu.Unlock()
	p.remark(r, c.setting, watch, p.seen.look(c.box.roots).planted(c.git))
	if err := over(); err != nil {
		p.c.Log().Error().Err(err).Str("session", j.session).Msg("the end of a command that may have changed the workspace could not be recorded")
	}
	j.mu.Lock()
	j.end, j.denials = r, nil // its notes have them
	close(j.news)
	j.mu.Unlock()
	close(j.done)
	p.jobs.ended(j)
}

// Write adds output.
func (j *job) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if text := j.out.masked.Next(string(b)); text != "" {
		j.out.add(text)
		close(j.news)
		j.news = make(chan struct{})
	}
	return len(b), nil
}

// read returns what is new, and how the job has ended, if it has.
func (j *job) read() (text string, end *ran) {
	j.mu.Lock()
	defer j.mu.Unlock()
	text, end = j.out.take(j.end != nil), j.end
	if j.denials != nil {
		if now := strings.Join(j.denials(), "]\n["); now != j.told {
			j.told = now
			text = onLines(text, "["+now+"]")
		}
	}
	return text, end
}

// onLines adds a line to a text.
func onLines(text, line string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + line
}

// newJob returns a job that has not begun.
func newJob(session, text string) *job {
	j := &job{id: "bg_" + strings.ToLower(rand.Text()[:8]), session: session, text: text, began: time.Now(), halted: make(chan struct{}), done: make(chan struct{}), news: make(chan struct{})}
	j.halt = sync.OnceFunc(func() { close(j.halted) })
	return j
}
