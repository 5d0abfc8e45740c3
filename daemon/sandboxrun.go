package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/yaya-ai/yaya/internal/gitconf"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/plugins/tool_shell"
)

// SandboxRun is a program that a user runs in a sandbox: its profile, and what flags add to it.
type SandboxRun struct {
	Profile                string
	Read, Write, Host, Env []string
}

// RunningOwn returns what a sandbox must keep away from: the addresses that the running yaya
// listens on, yaya's own folders and files as its flags and environment name them, and its
// process id, or 0 if none runs.
func RunningOwn(ctx context.Context, p Paths) (listens []string, own OwnPaths, pid int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*ReachTimeout)
	defer cancel()
	var r Report
	found, err := WithDaemon(ctx, p, func(b *Backend) error { return b.GetJSON(ctx, "/status", &r) })
	if err == nil && !found { // no yaya to protect, unless it is only slow
		var d net.Dialer
		conn, derr := d.DialContext(ctx, "unix", p.Socket())
		switch {
		case derr == nil:
			err = errors.Join(errors.New("its socket accepts connections but does not answer"), conn.Close())
		case errors.Is(derr, syscall.EAGAIN), ctx.Err() != nil:
			err = derr
		}
	}
	if err != nil {
		return nil, own, 0, fmt.Errorf("the running yaya does not report its addresses and folders, which the sandbox has to protect: %w; stop that yaya, or try again", err)
	}
	if r.Own != nil {
		own = *r.Own
	}
	return r.Listens, own, r.PID, nil
}

// RunSettings are the settings that apply to sandbox run.
type RunSettings struct {
	Backend     string
	BackendFrom string   // the environment variable that sets it, or ""
	env         []string // additional variables of commands
}

// RunSettings reads the settings. Inside a yaya sandbox they are hidden; a nested
// sandbox then runs without them.
func (g *Flags) RunSettings(p Paths) (set RunSettings, err error) {
	data, settings, err := g.Open(p, nil)
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return RunSettings{}, nil
	case err != nil:
		return RunSettings{}, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	set.Backend, set.BackendFrom = settings.Text("sandbox.backend"), Variable(settings, "sandbox.backend")
	if raw, _, ok := settings.Get("plugin.tool_shell.env"); ok {
		if err := json.Unmarshal(raw, &set.env); err != nil {
			return set, fmt.Errorf("plugin.tool_shell.env: %w", err)
		}
	}
	return set, nil
}

// Environ returns the environment of the command: everything in guarded, which is for trusted
// programs, otherwise the variables that yaya itself passes to programs of the profile.
func (f *SandboxRun) Environ(set RunSettings, argv []string) ([]string, error) {
	for _, name := range f.Env {
		if err := servers.CheckEnvName(name); err != nil {
			return nil, fmt.Errorf("--env: %w", err)
		}
		if _, ok := os.LookupEnv(name); !ok {
			return nil, fmt.Errorf("--env: the variable %s is not set", name)
		}
	}
	also := append([]string{"TERM", "COLORTERM", "NO_COLOR", "YAYA_CHILD"}, f.Env...) // this process may be a child of yaya
	switch f.Profile {
	case "guarded":
		return os.Environ(), nil
	case "command", "check":
		return tool_shell.Passed(slices.Concat(also, set.env)), nil
	}
	return servers.Server{Command: argv[0], Args: argv[1:]}.Environ(os.LookupEnv, also...), nil
}

// cacheName returns the name of the caches of a program in a folder. No two programs share it,
// because content that one puts there could run in the other. In the strict profiles the name
// covers the first argument, too: there, one command (such as npx) often fetches and runs
// different programs.
func (f *SandboxRun) cacheName(path string, argv []string, strict bool) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	id := []string{dir, path}
	for _, arg := range argv[1:] {
		if !strict {
			break
		}
		if id = append(id, arg); !strings.HasPrefix(arg, "-") {
			break
		}
	}
	of := f.Profile
	if of == "check" {
		of = "command" // a check builds with files that a command fetched
	}
	sum := sha256.Sum256([]byte(strings.Join(id, "\x00")))
	return fmt.Sprintf("run-%s-%x", of, sum[:8]), nil
}

// Policy returns the policy that the flags ask for. told is called with what the sandbox denies, and
// watch with a policy whose paths have to be reported to somebody.
func (f *SandboxRun) Policy(p Paths, path string, argv []string, told func(string), watch func(*sandbox.Policy)) (sandbox.Policy, error) {
	profile, err := sandbox.Profile(f.Profile)
	if err != nil {
		return profile, err
	}
	name, err := f.cacheName(path, argv, profile.Strict)
	if err != nil {
		return profile, err
	}
	boxes := &sandbox.Sandboxes{Home: p.Home, Cache: SandboxCaches(p.Home)}
	policy, err := boxes.Policy(f.Profile, name) // guarded uses the user's caches
	if err != nil {
		return policy, err
	}
	if len(f.Host) > 0 && policy.Net.Mode < sandbox.Hosts {
		policy.Net.Mode = sandbox.Hosts
	}
	asked := len(f.Host) > 0 && policy.Net.Mode == sandbox.Hosts
	policy.Net.Allow = append(policy.Net.Allow, f.Host...)
	if policy.Profile == "server" {
		policy.Net.Allow = append(policy.Net.Allow, sandbox.RegistryOf(argv[0])...)
	}
	policy.Net.Denied = func(d sandbox.Denial) {
		text := fmt.Sprintf("kept from reaching %s: %s", net.JoinHostPort(d.Host, strconv.Itoa(d.Port)), d.Why)
		if d.Allow != "" {
			text += " (to allow it: --host " + d.Allow + ")"
		}
		told(text)
	}
	policy.Net.Unreached = func(host string, port int, why string) {
		told(fmt.Sprintf("could not reach %s: %s", net.JoinHostPort(host, strconv.Itoa(port)), why))
	}
	if !policy.HostWrites {
		policy.Hide = append(policy.Hide, boxes.Cache) // hosts of other profiles
		watch(&policy)
	}
	policy.Require = policy.Wants() & (sandbox.NeedHidden | sandbox.NeedStrict | sandbox.NeedWrites | sandbox.NeedNetwork | sandbox.NeedKernel)
	if asked { // report only the hosts of the profile itself as unreachable
		policy.Require |= sandbox.NeedHosts
	}
	here, err := os.Getwd()
	if err == nil {
		here, err = filepath.EvalSymlinks(here) // this process is there already, whichever path leads to it
	}
	if err != nil {
		return policy, err
	}
	if policy.Read, err = openFlag("--read", here, p.Home, f.Read); err != nil {
		return policy, err
	}
	if policy.Write, err = openFlag("--write", here, p.Home, f.Write); err != nil {
		return policy, errors.Join(err, sandbox.Close(policy.Read))
	}
	if policy.Protect, err = sandbox.Protected(policy.Write); err != nil {
		return policy, errors.Join(err, sandbox.Close(policy.Read), sandbox.Close(policy.Write))
	}
	if f.Profile == "command" || f.Profile == "check" {
		if err := f.work(&policy, p, here); err != nil {
			return policy, errors.Join(err, sandbox.Close(policy.Read), sandbox.Close(policy.Write), sandbox.Close(policy.Protect))
		}
	}
	return policy, nil
}

// work makes the current folder the workspace of the command. A folder that the user can hardly
// have meant becomes writable only if a flag names it; if no flag names any folder, it is an
// error.
func (f *SandboxRun) work(policy *sandbox.Policy, p Paths, here string) error {
	named := func(all []sandbox.Path) bool {
		return slices.ContainsFunc(all, func(at sandbox.Path) bool { return sandbox.Within([]string{at.String()}, here) })
	}
	err := sandbox.CheckWorkspace(p.Home, here)
	if err == nil {
		err = notOwn(p, here)
	}
	switch {
	case err == nil:
		_, err := policy.Work(here)
		return err
	case named(policy.Write): // whatever it is
		return nil
	case len(policy.Write) == 0, sandbox.Credentials(p.Home, here) && !named(policy.Read): // the command could not even start there
		return err
	}
	return nil
}

// notOwn rejects a workspace that is, contains or lies in one of yaya's own folders. Inside a
// yaya sandbox, which hides these folders, it accepts every workspace.
func notOwn(p Paths, dir string) error {
	guard, err := workspace.NewGuard(p.Own()...)
	if err == nil {
		err = guard.Check(dir)
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// BadFlag is a mistake in the value of a flag.
type BadFlag struct{ error }

func (e *BadFlag) Unwrap() error { return e.error }

// openFlag opens the paths of a flag, in which ~ is the home folder. It does not follow
// symbolic links: the last program that ran here may have created them.
func openFlag(flag, here, home string, names []string) ([]sandbox.Path, error) {
	all := make([]string, len(names))
	for i, name := range names {
		if name == "" { // for example from an unset shell variable
			return nil, &BadFlag{fmt.Errorf("%s: the path is empty", flag)}
		}
		switch {
		case home != "" && (name == "~" || strings.HasPrefix(name, "~/")): // as in entries
			name = filepath.Join(home, name[1:])
		case !filepath.IsAbs(name):
			name = filepath.Join(here, name)
		}
		// OpenNamed says of a link what to write in its place, and that would not do.
		if err := sandbox.NotWhole(name); err != nil {
			return nil, &BadFlag{fmt.Errorf("%s: %w", flag, err)}
		}
		all[i] = name
	}
	paths, err := sandbox.OpenNamed(home, all...)
	if err != nil {
		return nil, &BadFlag{fmt.Errorf("%s: %w", flag, err)}
	}
	return paths, nil
}

// workingDir returns the folder in which a command starts: the current one, or its private home
// if a strict policy hides the current one.
func workingDir(policy sandbox.Policy) (string, error) {
	dir, err := os.Getwd()
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil || !policy.Strict {
		return dir, err
	}
	for _, p := range append(append([]sandbox.Path{}, policy.Read...), policy.Write...) {
		if sandbox.Within([]string{p.String()}, dir) {
			return dir, nil
		}
	}
	return policy.Home, nil
}

// lookAtGit looks at what configures Git in the folders that a policy lets a program write. The
// returned function looks again, and lists what has come or changed.
func lookAtGit(policy sandbox.Policy) func() []string {
	here, err := os.Getwd()
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err != nil {
		here = "" // then all paths are absolute
	}
	var was []*gitconf.State
	for i, p := range slices.Concat(policy.Partly, policy.Write) {
		if i >= len(policy.Partly) && slices.ContainsFunc(policy.Partly, func(whole sandbox.Path) bool { return sandbox.Within([]string{whole.String()}, p.String()) }) {
			continue // a part of a repository that is looked at
		}
		was = append(was, gitconf.Look(p.String(), nil))
	}
	return func() []string {
		now := make([]*gitconf.State, len(was))
		for i, before := range was {
			now[i] = gitconf.Look(before.Dir(), before)
		}
		return gitconf.Planted(now, was, here)
	}
}

// RunWatch receives the events of a program that runs in a sandbox.
type RunWatch struct {
	Weaker func(profile, backend string, lacks sandbox.Need) // before it starts
	Left   func(n int)                                       // processes that were killed at its end
	Git    func(notes []string)                              // what configures Git and has come or changed
}

// RunInSandbox runs a command with this process's terminal until it ends, and returns its exit
// code, or 128 plus the number of the signal that ended it.
func RunInSandbox(box *sandbox.Box, policy sandbox.Policy, cmd *exec.Cmd, watch RunWatch) (int, error) {
	run, err := box.Enter(policy)
	if err != nil {
		return 0, err
	}
	defer run.Ended()
	watch.Weaker(policy.Profile, run.Enforced.Backend, policy.Wants()&^run.Enforced.Has)
	if cmd.Dir, err = workingDir(policy); err != nil {
		return 0, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := run.Wrap(cmd); err != nil {
		return 0, err
	}
	planted := lookAtGit(policy)
	defer func() { // after what it left has been killed
		if notes := planted(); len(notes) > 0 {
			watch.Git(notes)
		}
	}()
	// If somebody ends the first process of the sandbox, its children are reparented here.
	procs := &proc.Manager{Escaped: watch.Left}
	procs.Adopt()
	defer procs.Close(context.Background())
	// The signals are for the command: this process waits for it.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start %s in a sandbox: %w", cmd.Args[0], err)
	}
	ended := make(chan error, 1)
	if err := run.Started(cmd.Process.Pid); err != nil {
		run.Ended()
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // this error tells more than its own
		return 0, err
	}
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			if !policy.Terminal || s == syscall.SIGTERM || s == syscall.SIGHUP {
				_ = cmd.Process.Signal(s) // the process may have ended
			}
		case err := <-ended:
			if exit, failed := errors.AsType[*exec.ExitError](err); failed {
				code := exit.ExitCode()
				if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
					code = 128 + int(status.Signal())
				}
				return code, nil
			}
			return 0, err
		}
	}
}
