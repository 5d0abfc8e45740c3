package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"sync"
	"syscall"

	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// shell is the program that runs commands.
const sh = "/bin/sh"

var errNoShell = errors.New("the tools shell and verify run commands with sh, which Windows does not have: run yaya in WSL 2 for them")

// place is an open folder of a workspace: commands run in that folder, even if its name later
// refers to another one.
type place struct {
	w       *workspace.Workspace
	session string
	root    string // the workspace's path
	rel     string // of the folder in it
	dir     *os.File
	is      fs.FileInfo // the folder
	cwd     string      // its path for commands and people
}

// open opens a folder of the workspace of a session; "" is the workspace itself.
func (p *Plugin) open(session, dir string) (*place, error) {
	root, err := p.cfg.Folder(session)
	if err != nil {
		return nil, err
	}
	return p.openAt(session, root, dir)
}

// openAt opens a folder of a workspace.
func (p *Plugin) openAt(session, root, dir string) (at *place, err error) {
	if runtime.GOOS == "windows" {
		return nil, errNoShell
	}
	at = &place{session: session, root: root}
	if at.w, err = p.cfg.Guard.Open(root); err != nil {
		return nil, err
	}
	if at.rel, err = at.w.Clean(dir); err == nil {
		at.dir, err = at.w.Root().OpenFile(at.rel, os.O_RDONLY|hostfile.Directory|syscall.O_NONBLOCK, 0)
		if err != nil {
			err = fmt.Errorf("%s is not a folder of the workspace", dir)
		}
	}
	if err == nil {
		at.is, err = at.dir.Stat()
	}
	if err != nil {
		at.close()
		return nil, err
	}
	at.cwd = path.Join(root, at.rel)
	if to, err := os.Readlink(at.link()); err == nil {
		at.cwd = to
	}
	return at, nil
}

func (a *place) close() {
	if a.dir != nil {
		_ = a.dir.Close()
	}
	_ = a.w.Close()
}

// link returns the name of the open folder in /proc.
func (a *place) link() string { return fmt.Sprintf("/proc/self/fd/%d", a.dir.Fd()) }

// procfs reports whether the system shows a process's program and working directory.
func procfs() bool {
	if runtime.GOOS != "linux" {
		return false
	}
	_, err := os.Stat("/proc/self/exe")
	return err == nil
}

// moved returns an error if a folder's name refers to another folder than when it was shown.
func (a *place) moved() error {
	top, err := a.w.Root().Stat(".")
	if err != nil || !same(a.root, top) || !same(path.Join(a.root, a.rel), a.is) {
		return changed("the folder " + a.cwd + " was replaced")
	}
	return nil
}

// setting is everything that a command runs with, except the command itself.
type setting struct {
	at      *place
	sh      fs.FileInfo
	env     []string
	prelude string
	box     box
	git     gitState // when the last command began
	emptied bool     // its /tmp held too much when a command began
	apart   bool     // standard error is not part of the output
}

// settle fixes the setting of commands.
func (p *Plugin) settle(session, dir string, u use) (*setting, error) {
	at, err := p.open(session, dir)
	if err != nil {
		return nil, err
	}
	return p.settleAt(at, u)
}

// settleAt is settle for an open folder, which it closes if it fails.
func (p *Plugin) settleAt(at *place, u use) (*setting, error) {
	info, err := os.Stat(sh)
	if err != nil {
		at.close()
		return nil, err
	}
	s := &setting{at: at, sh: info, env: p.environment(), prelude: p.limits()}
	run, b, err := p.enter(at, u, nil, "")
	if err != nil {
		at.close()
		return nil, err
	}
	if run != nil {
		run.Ended() // each command gets its own
	}
	s.box = b
	return s, nil
}

// binds are inputs that an approval depends on but that people need not read.
func (s *setting) binds() string {
	return fmt.Sprintf("%q", append([]string{identity(s.sh), s.prelude, inode(s.at), s.box.bound}, s.env...))
}

// inode identifies a folder, whose times and size change with its content.
func inode(at *place) string {
	id, _, err := hostfile.Identify(at.dir, at.is)
	if err != nil {
		return "unknown"
	}
	return fmt.Sprintf("%d/%d", id.Dev, id.Ino)
}

// start starts a suspended command, checks that it is the shown one, and lets it continue.
// check, if set, checks the files that the command uses.
func (p *Plugin) start(ctx context.Context, s *setting, command string, watch *reach, check func(context.Context) error) (*proc.Process, error) {
	if err := s.at.moved(); err != nil {
		return nil, err
	}
	looked := make(chan gitState, 1)
	go func() { looked <- p.seen.look(s.box.roots) }() // while the sandbox starts
	wait := sync.OnceFunc(func() { s.git = <-looked })
	defer wait()
	dir := s.at.cwd
	if procfs() {
		dir = s.at.link()
	}
	tmp, err := p.useTmp(s)
	if err != nil {
		return nil, err
	}
	run, now, err := p.enter(s.at, s.box.use, watch, tmp.dir)
	if err != nil {
		tmp.release()
		return nil, err
	}
	// One line, so that sh's line numbers stay correct.
	gate := "IFS= read -r _ <&3 || exit 126; exec 3<&-"
	if !s.apart {
		gate += " 2>&1"
	}
	spec := proc.Spec{Path: sh, Args: []string{"-c", gate + "\n" + s.prelude + command}, Env: s.env, Dir: dir, Held: true}
	if run != nil {
		boxed := inTmp{run, tmp}
		if now.bound != s.box.bound {
			boxed.Ended()
			return nil, changed("the sandbox of the command has changed")
		}
		if now.none {
			boxed.Ended() // nothing is enforced: it is an ordinary process
		} else {
			spec.Sandbox = boxed
		}
	}
	child, err := p.cfg.Procs.Start(spec)
	if err != nil {
		if ferr := s.at.moved(); ferr != nil { // the sandbox has its own error for this
			return nil, ferr
		}
		return nil, err
	}
	pid := child.PID()
	if run != nil && !now.none {
		pid = run.PID()
	}
	err = s.verify(pid)
	if err == nil && check != nil {
		err = check(ctx)
	}
	wait()
	if err == nil {
		err = child.Release()
	}
	if err != nil {
		child.Kill()
		return nil, errors.Join(err, context.Cause(ctx))
	}
	return child, nil
}

// tmp is a folder in use as the /tmp of a session's commands.
type tmp struct {
	dir     string
	release func()
}

// useTmp returns the /tmp of a command that is about to start; outside the sandbox there is
// none.
func (p *Plugin) useTmp(s *setting) (tmp, error) {
	if s.box.profile == "" {
		return tmp{release: func() {}}, nil
	}
	dir, emptied, release, err := p.tmp.Use(s.at.session)
	if err != nil {
		return tmp{}, &tool.Failure{Kind: tool.ErrUnavailable, Err: fmt.Errorf("make a sandbox for the command: %w", err)}
	}
	s.emptied = s.emptied || emptied
	return tmp{dir, release}, nil
}

// inTmp is a sandbox that uses a tmp folder until it ends.
type inTmp struct {
	*sandbox.Run
	tmp tmp
}

// Ended implements [proc.Sandbox].
func (t inTmp) Ended() {
	t.Run.Ended()
	t.tmp.release()
}

// verify checks a suspended program. In a sandbox, it checks the program's view: its root, and
// the workspace there.
func (s *setting) verify(pid int) error {
	if procfs() {
		if pid == 0 || !same(fmt.Sprintf("/proc/%d/exe", pid), s.sh) {
			return changed(sh + " was replaced")
		}
		if !same(fmt.Sprintf("/proc/%d/cwd", pid), s.at.is) {
			return changed("the folder " + s.at.cwd + " was replaced")
		}
		top, err := s.at.w.Root().Stat(".")
		if err != nil || !same(fmt.Sprintf("/proc/%d/root%s", pid, canonical(s.at.root)), top) {
			return changed("the folder " + s.at.root + " was replaced")
		}
	}
	return s.at.moved()
}
