// Package hooks runs the commands that users and projects attach to events: hooks.toml of the
// configuration folder, .yaya/hooks.toml of trusted folders, and, if a setting says so, the
// hooks in .claude/settings.json of both.
//
// A hook makes things stricter, and nothing else: what a rule denies stays denied, what needs
// approval is asked about, and a folder that is not trusted has no hooks. A hook that guards
// (pre_tool, prompt) and crashes, hangs or answers garbage denies, and so does a file of hooks
// that cannot be read. Denials are put into the audit with the name of the hook.
//
// [Hooks] implements [tool.Hook] and [tool.After]. Without hooks, a call that is not of an agent
// costs two atomic loads and a look at the clock. Hooks of one event run one after the other on
// the goroutine of their caller; those that only observe run on one goroutine of [Hooks], which
// drops what it cannot keep up with, and which [Hooks.Close] ends. Files are read again by the
// first who asks after a second: while nothing happens, nothing is read.
package hooks

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/hookconf"
	"github.com/yaya-ai/yaya/internal/workspace"
)

const (
	freshFor    = time.Second // what was read
	maxQueue    = 64
	maxSessions = 1024    // whose start is remembered
	maxInput    = 4 << 20 // bytes of what a hook gets
)

// Program is a command to run.
type Program struct {
	Session, Folder, Command string
	Env                      []string
	Input                    []byte
	Limit                    time.Duration
}

// Ended holds the output of a program.
type Ended struct {
	Output, Stderr string
	Code           int
}

// Denial is a decision for the audit.
type Denial struct {
	Hook, File, Event, Session, Tool, Principal, Reason string
}

// Config assembles [Hooks]. Run and Open are required.
type Config struct {
	// User and UserClaude are the user's files, yaya's own and that of Claude Code.
	User, UserClaude string
	// Claude reports whether files of Claude Code count; nil means that they do not.
	Claude func() bool
	// More returns hooks of other places, such as installed packages, which run after the
	// user's. It is asked often, and must not be slow. Optional.
	More func() Found
	// Open opens the folder that a session works in, if it is trusted; otherwise the folder
	// is nil. The session "" is yaya itself.
	Open func(session string) (w *workspace.Workspace, done func())
	// Folder returns the folder that the hooks of a session run in.
	Folder func(session string) (string, error)
	// Run runs a program in a sandbox, and ends it at its limit.
	Run func(ctx context.Context, p Program) (Ended, error)
	// Audit puts a denial into the audit. Optional.
	Audit func(Denial) error
	Log   zerolog.Logger
}

// Hooks are all hooks. Methods are safe for concurrent use.
type Hooks struct {
	cfg      Config
	user     atomic.Pointer[Found] // of the user; nil without any
	standing atomic.Pointer[Found] // of the user and of the folder that yaya works in; nil without any

	epoch   time.Time
	stale   atomic.Int64 // when the two above have to be read again, since epoch
	changes atomic.Int64 // how often they were said to have changed
	reading sync.Mutex   // held while they are
	files   *Found       // of the user's files, as they are in force; reading guards it

	stop context.CancelFunc
	jobs chan job
	work sync.WaitGroup

	mu      sync.Mutex
	broken  error             // why the user's files cannot be read
	started map[string]string // what the start of a session has added for the model
}

// job is a run of hooks that only observe.
type job struct {
	event   hookconf.Event
	session string
	body    body
}

// Start reads the files. ctx ends hooks that only observe.
func Start(ctx context.Context, cfg Config) *Hooks {
	if cfg.Claude == nil {
		cfg.Claude = func() bool { return false }
	}
	h := &Hooks{cfg: cfg, epoch: time.Now(), jobs: make(chan job, maxQueue), started: map[string]string{}}
	ctx, h.stop = context.WithCancel(ctx)
	h.refresh()
	h.work.Go(func() { h.observe(ctx) })
	return h
}

// Close ends the hooks that run, and waits.
func (h *Hooks) Close() {
	h.stop()
	h.work.Wait()
}

// refresh reads the files again if they may have changed since. It is not done beside a call
// but for it, so a call after a quiet hour does not find the hooks of an hour ago.
func (h *Hooks) refresh() {
	if time.Since(h.epoch) < time.Duration(h.stale.Load()) {
		return
	}
	h.reading.Lock()
	defer h.reading.Unlock()
	if time.Since(h.epoch) < time.Duration(h.stale.Load()) { // somebody else has read them
		return
	}
	stale := h.stale.Load()
	h.read()
	h.stale.CompareAndSwap(stale, int64(time.Since(h.epoch)+freshFor))
}

// Changed has the hooks looked up again by the next who asks.
func (h *Hooks) Changed() { h.stale.Store(-h.changes.Add(1)) } // no look that has begun before ends this

// read reads the files. One that became unreadable leaves the last good hooks in force.
func (h *Hooks) read() {
	user := h.cfg.userHooks()
	h.found(user.Err)
	if was := h.files; user.Err != nil && was != nil && was.Err == nil {
		user = *was
	}
	files := user
	h.files = files.orNil()
	if h.cfg.More != nil {
		more := h.cfg.More()
		user = user.and(&more)
	}
	h.user.Store(user.orNil())
	all := user
	if p := h.project(""); !p.empty() {
		all = user.and(p)
	}
	h.standing.Store(all.orNil())
}

// found remembers what is wrong with the user's files, and logs it once.
func (h *Hooks) found(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.broken
	h.broken = err
	if err == nil || was != nil && was.Error() == err.Error() {
		return
	}
	h.cfg.Log.Error().Err(err).Msg("hooks cannot be read: without hooks from before, calls of tools are denied")
}

// project returns the hooks of the folder that a session works in.
func (h *Hooks) project(session string) *Found {
	w, done := h.cfg.Open(session)
	defer done()
	if w == nil {
		return nil
	}
	f := Project(w, h.cfg.Claude())
	return &f
}

// of returns the hooks for a session of an agent, or for a call of somebody else.
func (h *Hooks) of(session string, agent bool) *Found {
	h.refresh()
	if !agent {
		return h.standing.Load()
	}
	user, p := h.user.Load(), h.project(session)
	switch {
	case p.empty():
		return user
	case user == nil:
		return p
	}
	all := user.and(p)
	return &all
}

// problem is an answer that is not one, with the hook.
type problem struct {
	hook string
	err  error
}

func (p *problem) Error() string { return fmt.Sprintf("hook %q failed: %v", p.hook, p.err) }
func (p *problem) Unwrap() error { return p.err }

// run runs one hook and reads its answer.
func (h *Hooks) run(ctx context.Context, hook hookconf.Hook, session string, b body) (a hookconf.Answer, err error) {
	defer func() {
		if err != nil {
			err = &problem{hook.Name, err}
		}
	}()
	dir, err := h.cfg.Folder(session)
	if err != nil {
		return a, err
	}
	in, err := json.Marshal(b.input(hook, session, dir))
	if err != nil {
		return a, err
	}
	if len(in) > maxInput {
		return a, fmt.Errorf("the input has more than %d bytes", maxInput)
	}
	end, err := h.cfg.Run(ctx, Program{Session: session, Folder: dir, Command: hook.Command, Input: in, Limit: hook.Timeout, Env: environ(hook, dir)})
	if err != nil {
		return a, err
	}
	return hook.Answer(end.Output, end.Stderr, end.Code)
}

// environ are the variables of a hook's command, beside those of every command.
func environ(hook hookconf.Hook, dir string) []string {
	env := []string{"YAYA_HOOK=" + hook.Name, "CLAUDE_PROJECT_DIR=" + dir}
	if hook.Root != "" {
		env = append(env, "PLUGIN_ROOT="+hook.Root, "CLAUDE_PLUGIN_ROOT="+hook.Root)
	}
	return env
}

// Test runs one hook as an event would, and returns its answer.
func (h *Hooks) Test(ctx context.Context, hook hookconf.Hook, t Call) (hookconf.Answer, error) {
	return h.run(ctx, hook, "", t.body())
}

// Standing returns the hooks of the user and of the folder that yaya works in, in the order in
// which they run.
func (h *Hooks) Standing() Found {
	h.refresh()
	if s := h.standing.Load(); s != nil {
		return *s
	}
	return Found{}
}

// State describes the hooks of the user and of the folder that yaya works in.
type State struct {
	Hooks   int
	Ignored []string // hooks of Claude Code that yaya does not run
	// Err is why a file cannot be read. Denies says that calls are denied for it: otherwise
	// the hooks that were read before are in force.
	Err    error
	Denies bool
}

// State returns the state of the hooks.
func (h *Hooks) State() State {
	h.refresh()
	h.mu.Lock()
	st := State{Err: h.broken}
	h.mu.Unlock()
	if s := h.standing.Load(); s != nil {
		st.Hooks, st.Ignored = len(s.Hooks), s.Ignored
		if s.Err != nil {
			st.Err, st.Denies = s.Err, true
		}
	}
	return st
}
