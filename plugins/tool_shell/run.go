package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// ran is the outcome of a command.
type ran struct {
	command  string
	output   string
	code     int // -1 if it was ended
	timedOut bool
	remedy   string // what to do if it timed out, after a colon; "" if the caller cannot
	same     bool   // no file of the workspace has changed
	limit    time.Duration
	kept     string   // the first certain denial
	notes    []string // its certain and possible denials
}

// outcome is the structured result of a command.
type outcome struct {
	ExitCode  *int `json:"exit_code,omitempty"`
	Unchanged bool `json:"unchanged,omitempty"` // no file of the workspace has changed
}

func (r ran) result() tool.Result {
	text := r.output
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	for _, n := range r.notes {
		text += n + "\n"
	}
	kept := ""
	if r.kept != "" {
		kept = "; " + r.kept
	}
	out := outcome{Unchanged: r.same}
	if !r.timedOut {
		out.ExitCode = &r.code
	}
	structured, err := json.Marshal(out)
	if err != nil {
		structured = nil
	}
	switch {
	case r.timedOut:
		res := tool.Fail(tool.ErrTimeout, "the command was ended after %v%s", r.limit, kept)
		res.Display = []tool.Block{tool.Text(text + fmt.Sprintf("[ended after %v%s]", r.limit, r.remedy))}
		if r.same {
			res.Structured = structured
		}
		return res
	case r.code != 0:
		res := tool.Fail(tool.ErrTool, "exit code %d%s", r.code, kept)
		res.Display = []tool.Block{tool.Text(text + fmt.Sprintf("[exit code %d]", r.code))}
		res.Structured = structured
		return res
	}
	res := tool.OK("exit code 0"+kept, tool.Text(text+"[exit code 0]"))
	res.Structured = structured
	return res
}

// Passed returns the variables of our environment that commands get, including the named ones.
func Passed(more []string) (out []string) {
	for _, n := range slices.Concat(passed, more) {
		if v, ok := os.LookupEnv(n); ok {
			out = append(out, n+"="+v)
		}
	}
	return out
}

// config returns a setting of the plugin, nil before it is loaded: a process without agents
// runs hooks, too.
func (p *Plugin) config(field string) json.RawMessage {
	p.mu.Lock()
	c := p.c
	p.mu.Unlock()
	if c == nil {
		return nil
	}
	return c.Config(field)
}

// environment returns the part of our environment that commands get.
func (p *Plugin) environment() []string {
	var more []string
	if raw := p.config("env"); raw != nil && json.Unmarshal(raw, &more) != nil {
		more = nil
	}
	return append([]string{"TERM=dumb", "NO_COLOR=1", "GIT_TERMINAL_PROMPT=0", "PAGER=cat", "GIT_PAGER=cat"}, Passed(more)...)
}

// maxMemory returns the memory limit of a command's process, in bytes, 0 without a setting.
func (p *Plugin) maxMemory() int64 {
	var memory int64
	if raw := p.config("max_memory"); raw != nil && json.Unmarshal(raw, &memory) == nil {
		return max(0, memory)
	}
	return 0
}

// limits returns the shell commands that precede a command. They bound data, not address space:
// runtimes such as Node reserve far more addresses than they use.
func (p *Plugin) limits() string {
	script := "ulimit -c 0\n"
	if memory := p.maxMemory(); memory > 0 {
		script += fmt.Sprintf("ulimit -d %d\n", memory>>10)
	}
	return script
}

// run runs a command until it ends, reaches its limit, or ctx ends; after that, its whole
// process tree is gone. check, if set, is called once the command waits to begin. The clock
// stands still while a person is asked about a host.
func (p *Plugin) run(ctx context.Context, call tool.Call, s *setting, command string, stdin io.Reader, limit time.Duration, check func(context.Context) error) (ran, error) {
	kept := p.watchFiles(ctx, call, s)
	r, err := p.runWatched(ctx, call, s, command, stdin, limit, check)
	same, note := kept(ctx)
	if note != "" {
		r.notes = append(r.notes, note)
	}
	r.same = same
	return r, err
}

func (p *Plugin) runWatched(ctx context.Context, call tool.Call, s *setting, command string, stdin io.Reader, limit time.Duration, check func(context.Context) error) (ran, error) {
	timer, cancel := context.WithCancel(ctx)
	defer cancel()
	clock := newClock(limit, cancel)
	defer clock.stop()
	watch := p.newReach(timer, call, command, s.at.cwd, clock)
	defer watch.end()
	proc, err := p.start(ctx, s, command, watch, check)
	if err != nil {
		return ran{}, err
	}
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		if stdin != nil {
			_, _ = io.Copy(proc.Stdin, stdin) // unread output is not needed
		}
		_ = proc.Stdin.Close()
	}()
	stop := context.AfterFunc(timer, func() { proc.Stop(context.Background()) })
	out := &keeper{ends: cut.Ends{Most: maxOutput}, progress: call.Progress, masked: p.c.Secrets().Stream()}
	_, _ = io.Copy(out, proc.Stdout) // the reader ends with the tree
	<-proc.Done()
	_ = proc.Stdout.Close() // all of it has been read
	late := clock.stop()
	stop()
	<-fed
	out.end()
	watch.end()
	planted := p.seen.look(s.box.roots).planted(s.git)
	if err := context.Cause(ctx); err != nil {
		if len(planted) > 0 { // no caller gets a result
			p.c.Log().Warn().Str("session", call.SessionID).Strs("git", planted).Msg("a cancelled command may have changed files that configure Git")
		}
		return ran{}, err
	}
	r := ran{command: command, output: out.ends.String(), limit: limit, timedOut: late}
	r.code = proc.ExitCode()
	p.remark(&r, s, watch, planted)
	return r, nil
}

// remark reports the denials of a command that has ended, and the Git configuration that it
// planted.
func (p *Plugin) remark(r *ran, s *setting, watch *reach, planted []string) {
	notes := watch.notes(s.box.profile)
	if len(notes) > 0 {
		r.kept = notes[0]
		p.c.Log().Warn().Str("session", watch.call.SessionID).Strs("kept_from", notes).Msg("a command was kept from hosts")
	}
	if r.code != 0 && s.box.profile != "" && !s.box.none {
		may := p.keptFromGit(r.output, canonical(s.at.root))
		if len(may) == 0 {
			may = p.mayHave(r.output, s.box.profile, p.remedy(watch.call.SessionID), len(notes) > 0)
		}
		notes = append(notes, may...)
	}
	notes = append(notes, planted...)
	if s.emptied {
		notes = append(notes, "/tmp was emptied before the command: it held more than 4 GiB, or 20,000 files")
	}
	for _, n := range notes {
		r.notes = append(r.notes, "["+n+"]")
	}
	if w := s.box.weaker(); w != "" {
		r.notes = append(r.notes, w)
	}
}

// keeper keeps the beginning and the end of a command's output, and streams the output.
type keeper struct {
	progress func(tool.Progress)
	masked   *masked.Stream // applied before the output is cut
	ends     cut.Ends
	pending  []byte
	told     time.Time
}

func (k *keeper) Write(b []byte) (int, error) {
	k.keep([]byte(k.masked.Next(string(b))))
	return len(b), nil
}

// end keeps and streams the rest.
func (k *keeper) end() {
	k.keep([]byte(k.masked.End()))
	k.flush()
}

func (k *keeper) keep(b []byte) {
	_, _ = k.ends.Write(b) // it never fails
	k.pending = append(k.pending, b...)
	if len(k.pending) > maxProgress {
		k.pending = append(k.pending[:0], k.pending[len(k.pending)-maxProgress:]...)
	}
	if time.Since(k.told) >= progressEvery {
		k.flush()
	}
}

func (k *keeper) flush() {
	if k.progress == nil || len(k.pending) == 0 {
		return
	}
	k.progress(tool.Progress{Progress: float64(k.ends.Total()), Message: strings.ToValidUTF8(string(k.pending), "\uFFFD")})
	k.pending, k.told = k.pending[:0], time.Now()
}
