package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/plugins/tool_shell"
)

// sandboxRun holds the flags of yaya sandbox run.
type sandboxRun struct {
	profile                string
	read, write, host, env []string
}

func sandboxRunCommand(g *daemon.Flags) *cobra.Command {
	var f sandboxRun
	c := &cobra.Command{
		Use: "run [flags] -- COMMAND [ARG…]", Short: "Run a command in a sandbox",
		Long: `Run a command in a sandbox.
In the profiles command and check, the command can write to the working directory, except
.git/config, .git/hooks and everything else that configures Git there. It gets the same
environment variables as the commands of agents. It can write to your home folder, to
system folders, and to folders with credentials or yaya's data only if --write names them.
In the profiles server, plugin and browser, the working directory is hidden unless you
name it. The command starts in a private home folder, with the same environment variables
as servers. --env passes more variables; guarded passes all of them.
yaya reports the hosts that it blocks on standard error. It exits with the command's code,
or with 128 plus the number of the signal that ended the command; 127 means that the
command was not found, 126 that it could not be started.

Profiles: guarded (your files and network, but not yaya's), server, command, check
(no network except its own), plugin and browser.`,
		Example: `  yaya sandbox run -- make test
  yaya sandbox run --profile server --host api.example.com -- npx -y some-server
  yaya sandbox run --profile check --read ~/data -- python3 report.py`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(sandbox.Profiles(), f.profile) {
				return &usageError{c.CommandPath(), fmt.Errorf("--profile: unknown profile %q; the profiles are %s", f.profile, strings.Join(sandbox.Profiles(), ", "))}
			}
			p, err := g.Paths()
			if err != nil {
				return err
			}
			set, err := sandboxRunSettings(g, p)
			if err != nil {
				return err
			}
			usage := func(err error) error { return &usageError{c.CommandPath(), err} }
			env, err := f.environ(set, args)
			if err != nil {
				return usage(err)
			}
			path, err := lookUp(args[0])
			if err != nil {
				return &notRun{err}
			}
			if path, err = filepath.Abs(path); err != nil {
				return err
			}
			cmd := exec.CommandContext(context.WithoutCancel(c.Context()), path, args[1:]...) //nolint:gosec // running the user's command is the purpose
			cmd.Args[0], cmd.Env = args[0], env
			listens, theirs, yaya, err := ofDaemon(c.Context(), p)
			if err != nil {
				return err
			}
			if err := sandbox.CheckHosts(f.host, listens); err != nil {
				return usage(fmt.Errorf("--host: %w", err))
			}
			policy, err := f.policy(c.ErrOrStderr(), p, path, args)
			if bad, ok := errors.AsType[*badFlag](err); ok {
				return usage(bad)
			}
			if err != nil {
				return err
			}
			own := daemon.OwnPaths{Hidden: daemon.Hidden(p.Own())}
			outside := g.OwnFiles(p, nil)
			if err := outside.Prepare(zerolog.Nop()); err != nil {
				return err
			}
			files, readable := outside.Now()
			elsewhere, err := outside.Elsewhere()
			if err != nil {
				return err
			}
			files = append(files, elsewhere...)
			own = own.With(daemon.OwnPaths{Hidden: files, Readable: readable}).With(theirs)
			box := &sandbox.Box{Own: own.Hidden, Readable: own.Readable, Backend: set.backend, Yaya: yaya, Set: &sandbox.Settings{Mode: sandbox.Prefer, Backend: set.backend, BackendFrom: set.backendFrom}, Listens: func() []string { return listens }}
			err = runInSandbox(&weakness{c.ErrOrStderr(), daemon.SandboxCaches(p.Home)}, box, policy, cmd)
			if _, failed := errors.AsType[*exitStatus](err); failed {
				f.aboutGit(c.ErrOrStderr(), policy, args)
			}
			return err
		},
	}
	c.Flags().SetInterspersed(false) // flags after the command belong to the command
	c.Flags().StringVar(&f.profile, "profile", "command", "`profile` to run in: "+strings.Join(sandbox.Profiles(), ", "))
	c.Flags().StringArrayVar(&f.read, "read", nil, "allow reading a `path` (repeatable)")
	c.Flags().StringArrayVar(&f.write, "write", nil, "allow reading and writing a `path` (repeatable)")
	c.Flags().StringArrayVar(&f.host, "host", nil, "allow a `host`, such as example.com, *.example.com or example.com:8443 (repeatable)")
	c.Flags().StringArrayVar(&f.env, "env", nil, "pass a `variable` of your environment (repeatable)")
	return c
}

// ofDaemon returns what a sandbox must keep away from: the addresses that the running yaya
// listens on, yaya's own folders and files as its flags and environment name them, and its
// process id, or 0 if none runs.
func ofDaemon(ctx context.Context, p daemon.Paths) (listens []string, own daemon.OwnPaths, pid int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*daemon.ReachTimeout)
	defer cancel()
	var r daemon.Report
	found, err := daemon.WithDaemon(ctx, p, func(b *daemon.Backend) error { return b.GetJSON(ctx, "/status", &r) })
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

// runSettings are the settings that apply to sandbox run.
type runSettings struct {
	backend     string
	backendFrom string   // the environment variable that sets it, or ""
	env         []string // additional variables of commands
}

// sandboxRunSettings reads the settings. Inside a yaya sandbox they are hidden; a nested
// sandbox then runs without them.
func sandboxRunSettings(g *daemon.Flags, p daemon.Paths) (set runSettings, err error) {
	data, settings, err := g.Open(p, nil)
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return runSettings{}, nil
	case err != nil:
		return runSettings{}, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	set.backend, set.backendFrom = settings.Text("sandbox.backend"), daemon.Variable(settings, "sandbox.backend")
	if raw, _, ok := settings.Get("plugin.tool_shell.env"); ok {
		if err := json.Unmarshal(raw, &set.env); err != nil {
			return set, fmt.Errorf("plugin.tool_shell.env: %w", err)
		}
	}
	return set, nil
}

// environ returns the environment of the command: everything in guarded, which is for trusted
// programs, otherwise the variables that yaya itself passes to programs of the profile.
func (f *sandboxRun) environ(set runSettings, argv []string) ([]string, error) {
	for _, name := range f.env {
		if err := servers.CheckEnvName(name); err != nil {
			return nil, fmt.Errorf("--env: %w", err)
		}
		if _, ok := os.LookupEnv(name); !ok {
			return nil, fmt.Errorf("--env: the variable %s is not set", name)
		}
	}
	also := append([]string{"TERM", "COLORTERM", "NO_COLOR", "YAYA_CHILD"}, f.env...) // this process may be a child of yaya
	switch f.profile {
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
func (f *sandboxRun) cacheName(path string, argv []string, strict bool) (string, error) {
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
	of := f.profile
	if of == "check" {
		of = "command" // a check builds with files that a command fetched
	}
	sum := sha256.Sum256([]byte(strings.Join(id, "\x00")))
	return fmt.Sprintf("run-%s-%x", of, sum[:8]), nil
}

// policy returns the policy that the flags ask for.
func (f *sandboxRun) policy(w io.Writer, p daemon.Paths, path string, argv []string) (sandbox.Policy, error) {
	profile, err := sandbox.Profile(f.profile)
	if err != nil {
		return profile, err
	}
	name, err := f.cacheName(path, argv, profile.Strict)
	if err != nil {
		return profile, err
	}
	boxes := &sandbox.Sandboxes{Home: p.Home, Cache: daemon.SandboxCaches(p.Home)}
	policy, err := boxes.Policy(f.profile, name) // guarded uses the user's caches
	if err != nil {
		return policy, err
	}
	if len(f.host) > 0 && policy.Net.Mode < sandbox.Hosts {
		policy.Net.Mode = sandbox.Hosts
	}
	asked := len(f.host) > 0 && policy.Net.Mode == sandbox.Hosts
	policy.Net.Allow = append(policy.Net.Allow, f.host...)
	if policy.Profile == "server" {
		policy.Net.Allow = append(policy.Net.Allow, sandbox.RegistryOf(argv[0])...)
	}
	told := &onceEach{w: w}
	policy.Net.Denied = func(d sandbox.Denial) {
		text := fmt.Sprintf("kept from reaching %s: %s", net.JoinHostPort(d.Host, strconv.Itoa(d.Port)), d.Why)
		if d.Allow != "" {
			text += " (to allow it: --host " + d.Allow + ")"
		}
		told.tell(text)
	}
	policy.Net.Unreached = func(host string, port int, why string) {
		told.tell(fmt.Sprintf("could not reach %s: %s", net.JoinHostPort(host, strconv.Itoa(port)), why))
	}
	if !policy.HostWrites {
		policy.Hide = append(policy.Hide, boxes.Cache) // hosts of other profiles
		watchPaths(&policy, argv, told)
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
	if policy.Read, err = openFlag("--read", here, p.Home, f.read); err != nil {
		return policy, err
	}
	if policy.Write, err = openFlag("--write", here, p.Home, f.write); err != nil {
		return policy, errors.Join(err, sandbox.Close(policy.Read))
	}
	if policy.Protect, err = sandbox.Protected(policy.Write); err != nil {
		return policy, errors.Join(err, sandbox.Close(policy.Read), sandbox.Close(policy.Write))
	}
	if f.profile == "command" || f.profile == "check" {
		if err := f.work(&policy, p, here); err != nil {
			return policy, errors.Join(err, sandbox.Close(policy.Read), sandbox.Close(policy.Write), sandbox.Close(policy.Protect))
		}
	}
	return policy, nil
}

// work makes the current folder the workspace of the command. A folder that the user can hardly
// have meant becomes writable only if a flag names it; if no flag names any folder, it is an
// error.
func (f *sandboxRun) work(policy *sandbox.Policy, p daemon.Paths, here string) error {
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
func notOwn(p daemon.Paths, dir string) error {
	guard, err := workspace.NewGuard(p.Own()...)
	if err == nil {
		err = guard.Check(dir)
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// badFlag is a mistake in the value of a flag.
type badFlag struct{ error }

func (e *badFlag) Unwrap() error { return e.error }

// openFlag opens the paths of a flag, in which ~ is the home folder. It does not follow
// symbolic links: the last program that ran here may have created them.
func openFlag(flag, here, home string, names []string) ([]sandbox.Path, error) {
	all := make([]string, len(names))
	for i, name := range names {
		if name == "" { // for example from an unset shell variable
			return nil, &badFlag{fmt.Errorf("%s: the path is empty", flag)}
		}
		switch {
		case home != "" && (name == "~" || strings.HasPrefix(name, "~/")): // as in entries
			name = filepath.Join(home, name[1:])
		case !filepath.IsAbs(name):
			name = filepath.Join(here, name)
		}
		all[i] = name
	}
	paths, err := sandbox.OpenNamed(home, all...)
	if err != nil {
		return nil, &badFlag{fmt.Errorf("%s: %w", flag, err)}
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

// lookUp is like [exec.LookPath] but, as shells do, distinguishes a file on PATH that cannot be
// executed from a missing file.
func lookUp(name string) (string, error) {
	path, err := exec.LookPath(name)
	if !errors.Is(err, exec.ErrNotFound) || strings.ContainsRune(name, filepath.Separator) {
		return path, err
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if st, serr := os.Stat(filepath.Join(dir, name)); dir != "" && serr == nil && st.Mode().IsRegular() { //nolint:gosec // as a shell does
			return "", fmt.Errorf("exec: %q: %s: %w", name, filepath.Join(dir, name), fs.ErrPermission)
		}
	}
	return "", err
}

// runInSandbox runs a command with this process's terminal until it ends.
func runInSandbox(w *weakness, box *sandbox.Box, policy sandbox.Policy, cmd *exec.Cmd) error {
	policy.Terminal = term.IsTerminal(int(os.Stdin.Fd())) //nolint:gosec // a descriptor fits
	run, err := box.Enter(policy)
	if err != nil {
		return err
	}
	defer run.Ended()
	w.tell(policy.Profile, run.Enforced.Backend, policy.Wants()&^run.Enforced.Has)
	if cmd.Dir, err = workingDir(policy); err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := run.Wrap(cmd); err != nil {
		return err
	}
	// If somebody ends the first process of the sandbox, its children are reparented here.
	procs := &proc.Manager{Escaped: func(n int) {
		fmt.Fprintf(w.w, "yaya: killed %s left after the sandbox's first process ended\n", worded.Count(n, "process that was", "processes that were"))
	}}
	procs.Adopt()
	defer procs.Close(context.Background())
	// The signals are for the command: this process waits for it.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s in a sandbox: %w", cmd.Args[0], err)
	}
	ended := make(chan error, 1)
	if err := run.Started(cmd.Process.Pid); err != nil {
		run.Ended()
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // this error tells more than its own
		if _, ok := errors.AsType[*sandbox.NotStarted](err); ok {
			return &notRun{err}
		}
		return err
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
				return &exitStatus{code}
			}
			return err
		}
	}
}
