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
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/plugins/tool_shell"
)

// sandboxRun are the flags of yaya sandbox run.
type sandboxRun struct {
	profile                string
	read, write, host, env []string
}

func sandboxRunCommand(g *globals) *cobra.Command {
	var f sandboxRun
	c := &cobra.Command{
		Use: "run [flags] -- COMMAND [ARG…]", Short: "Run a command in a sandbox",
		Long: `Run a command in a sandbox. In the profiles command and check the working directory
can be written, but for .git/config, .git/hooks and what else configures Git there, and
the command gets the variables that commands of agents get. In server, plugin and
browser the directory is not seen unless you name it, the command starts in a private
home, and gets the variables that servers get. --env names more of them; guarded passes
all. Hosts that the command is kept from are told on standard error. It exits with the
command's code, or 128 and the number of the signal that ended it; 127 says that there
is no such command, 126 that it cannot be started.

Profiles: guarded (your files and network without yaya's), server, command, check
(no network but its own), plugin and browser.`,
		Example: `  yaya sandbox run -- make test
  yaya sandbox run --profile server --host api.example.com -- npx -y some-server
  yaya sandbox run --profile check --read ~/data -- python3 report.py`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(sandbox.Profiles(), f.profile) {
				return &usageError{c.CommandPath(), fmt.Errorf("--profile: unknown profile %q; the profiles are %s", f.profile, strings.Join(sandbox.Profiles(), ", "))}
			}
			p, err := g.paths()
			if err != nil {
				return err
			}
			set, err := g.sandboxRunSettings(p)
			if err != nil {
				return err
			}
			env, err := f.environ(set, args)
			if err != nil {
				return err
			}
			path, err := lookUp(args[0])
			if err != nil {
				return &notRun{err}
			}
			if path, err = filepath.Abs(path); err != nil {
				return err
			}
			policy, err := f.policy(c.ErrOrStderr(), p, path, args)
			if err != nil {
				return err
			}
			cmd := exec.CommandContext(context.WithoutCancel(c.Context()), path, args[1:]...) //nolint:gosec // running it is the purpose
			cmd.Args[0], cmd.Env = args[0], env
			listens, theirs, err := ofDaemon(c.Context(), p)
			if err != nil {
				return err
			}
			own := ownPaths{Hidden: hidden(p.own())}
			files, readable := g.ownFiles(p, nil).now()
			own = own.with(ownPaths{files, readable}).with(theirs)
			box := &sandbox.Box{Own: own.Hidden, Readable: own.Readable, Backend: set.backend, Listens: func() []string { return listens }}
			return runInSandbox(c.ErrOrStderr(), box, policy, cmd)
		},
	}
	c.Flags().SetInterspersed(false) // what follows the command is its own
	c.Flags().StringVar(&f.profile, "profile", "command", "`profile` to run in: "+strings.Join(sandbox.Profiles(), ", "))
	c.Flags().StringArrayVar(&f.read, "read", nil, "let it read a `path` (repeatable)")
	c.Flags().StringArrayVar(&f.write, "write", nil, "let it write a `path` (repeatable)")
	c.Flags().StringArrayVar(&f.host, "host", nil, "let it reach a `host`, such as example.com, *.example.com or example.com:8443 (repeatable)")
	c.Flags().StringArrayVar(&f.env, "env", nil, "let it have a `variable` of yours (repeatable)")
	return c
}

// ofDaemon are the addresses that the running yaya listens on, which no sandbox is passed
// on to, and its own folders and files, as its flags and its environment name them.
func ofDaemon(ctx context.Context, p paths) (listens []string, own ownPaths, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*daemonTimeout)
	defer cancel()
	var r report
	found, err := beside(ctx, p, func(b *backend) error { return b.getJSON(ctx, "/status", &r) })
	if err == nil && !found { // there is nothing to keep from, unless it is only slow
		var d net.Dialer
		conn, derr := d.DialContext(ctx, "unix", p.socket())
		switch {
		case derr == nil:
			err = errors.Join(errors.New("its socket takes connections, and nothing answers"), conn.Close())
		case errors.Is(derr, syscall.EAGAIN), ctx.Err() != nil:
			err = derr
		}
	}
	if err != nil {
		return nil, own, fmt.Errorf("a yaya runs and does not say where it listens and what is its own, which the sandbox keeps from programs: %w; end it, or try again", err)
	}
	if r.Own != nil {
		own = *r.Own
	}
	return r.Listens, own, nil
}

// runSettings are what the settings say of sandbox run.
type runSettings struct {
	backend string
	env     []string // more variables of commands
}

// sandboxRunSettings reads the settings. In a sandbox of yaya's they are hidden, and a
// second sandbox is made without them.
func (g *globals) sandboxRunSettings(p paths) (set runSettings, err error) {
	data, settings, err := g.open(p, nil)
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return runSettings{}, nil
	case err != nil:
		return runSettings{}, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	set.backend = settings.Text("sandbox.backend")
	if raw, _, ok := settings.Get("plugin.tool_shell.env"); ok {
		if err := json.Unmarshal(raw, &set.env); err != nil {
			return set, fmt.Errorf("plugin.tool_shell.env: %w", err)
		}
	}
	return set, nil
}

// environ is what the command gets of the environment: all of it in guarded, which is for
// programs that are trusted with it, else what the same programs get from yaya itself.
func (f *sandboxRun) environ(set runSettings, argv []string) ([]string, error) {
	for _, name := range f.env {
		if err := servers.CheckEnvName(name); err != nil {
			return nil, fmt.Errorf("--env: %w", err)
		}
		if _, ok := os.LookupEnv(name); !ok {
			return nil, fmt.Errorf("--env: the variable %s is not set", name)
		}
	}
	also := append([]string{"TERM", "COLORTERM", "NO_COLOR", "YAYA_CHILD"}, f.env...) // it may be a child of yaya's
	switch f.profile {
	case "guarded":
		return os.Environ(), nil
	case "command", "check":
		return tool_shell.Passed(slices.Concat(also, set.env)), nil
	}
	return servers.Server{Command: argv[0], Args: argv[1:]}.Environ(os.LookupEnv, also...), nil
}

// cacheName is the name of the caches of a program in a folder, which no other program
// has: what one puts there would run in the other. In the strict profiles, whose
// programs are often fetched by one and the same, the first argument counts, too.
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
		of = "command" // a check builds with what a command has fetched
	}
	sum := sha256.Sum256([]byte(strings.Join(id, "\x00")))
	return fmt.Sprintf("run-%s-%x", of, sum[:8]), nil
}

// policy is what the flags ask for.
func (f *sandboxRun) policy(w io.Writer, p paths, path string, argv []string) (sandbox.Policy, error) {
	profile, err := sandbox.Profile(f.profile)
	if err != nil {
		return profile, err
	}
	name, err := f.cacheName(path, argv, profile.Strict)
	if err != nil {
		return profile, err
	}
	boxes := &sandbox.Sandboxes{Home: p.home, Cache: sandboxCaches(p.home)}
	policy, err := boxes.Policy(f.profile, name) // guarded has the user's caches
	if err != nil {
		return policy, err
	}
	if len(f.host) > 0 && policy.Net.Mode < sandbox.Hosts {
		policy.Net.Mode = sandbox.Hosts
	}
	policy.Net.Allow = append(policy.Net.Allow, f.host...)
	if policy.Profile == "server" {
		policy.Net.Allow = append(policy.Net.Allow, sandbox.RegistryOf(argv[0])...)
	}
	told := &onceEach{w: w}
	policy.Net.Denied = func(d sandbox.Denial) {
		text := fmt.Sprintf("kept from reaching %s: %s", net.JoinHostPort(d.Host, strconv.Itoa(d.Port)), d.Why)
		if d.Allow != "" {
			text += " (allow it: --host " + d.Allow + ")"
		}
		told.tell(text)
	}
	policy.Net.Unreached = func(host string, port int, why string) {
		told.tell(fmt.Sprintf("could not reach %s: %s", net.JoinHostPort(host, strconv.Itoa(port)), why))
	}
	if !policy.HostWrites {
		policy.Hide = append(policy.Hide, boxes.Cache) // those of others
	}
	policy.Require = policy.Wants() & (sandbox.NeedHidden | sandbox.NeedStrict | sandbox.NeedWrites | sandbox.NeedNetwork | sandbox.NeedKernel)
	here, err := os.Getwd()
	if err == nil {
		here, err = filepath.EvalSymlinks(here) // this process is there already, whatever leads to it
	}
	if err != nil {
		return policy, err
	}
	if policy.Read, err = openFlag("--read", here, p.home, f.read); err != nil {
		return policy, err
	}
	if policy.Write, err = openFlag("--write", here, p.home, f.write); err != nil {
		return policy, errors.Join(err, sandbox.Close(policy.Read))
	}
	if policy.Protect, err = sandbox.Protected(policy.Write); err != nil {
		return policy, errors.Join(err, sandbox.Close(policy.Read), sandbox.Close(policy.Write))
	}
	if f.profile == "command" || f.profile == "check" {
		if _, err := policy.Work(here); err != nil {
			return policy, errors.Join(err, sandbox.Close(policy.Read), sandbox.Close(policy.Write), sandbox.Close(policy.Protect))
		}
	}
	return policy, nil
}

// onceEach writes what a person is told of a sandbox, each line once. It is safe for
// concurrent use.
type onceEach struct {
	w    io.Writer
	mu   sync.Mutex
	told map[string]bool
}

// maxTold bounds the lines that one run writes.
const maxTold = 1000

func (o *onceEach) tell(text string) {
	text = feature.Clean(text, 1<<10)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told[text] || len(o.told) == maxTold {
		return
	}
	if o.told == nil {
		o.told = map[string]bool{}
	}
	o.told[text] = true
	fmt.Fprintln(o.w, "yaya:", text)
}

// openFlag opens the paths of a flag. A link in one may have been made by the last program
// that ran here, so it is not followed.
func openFlag(flag, here, home string, names []string) ([]sandbox.Path, error) {
	all := make([]string, len(names))
	for i, name := range names {
		if name == "" { // as from a variable that is not set
			return nil, fmt.Errorf("%s: the path is empty", flag)
		}
		if all[i] = name; !filepath.IsAbs(name) {
			all[i] = filepath.Join(here, name)
		}
	}
	paths, err := sandbox.OpenNamed(home, all...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return paths, nil
}

// workingDir is where a command starts: here, or in its private home where a strict
// policy does not show this folder.
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

// lookUp is [exec.LookPath] that tells a file on PATH which cannot be executed from one
// that is not there, as shells do.
func lookUp(name string) (string, error) {
	path, err := exec.LookPath(name)
	if !errors.Is(err, exec.ErrNotFound) || strings.ContainsRune(name, filepath.Separator) {
		return path, err
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if st, serr := os.Stat(filepath.Join(dir, name)); dir != "" && serr == nil && st.Mode().IsRegular() { //nolint:gosec // as a shell looks
			return "", fmt.Errorf("exec: %q: %s: %w", name, filepath.Join(dir, name), fs.ErrPermission)
		}
	}
	return "", err
}

// runInSandbox runs a command with this process's terminal until it ends.
func runInSandbox(w io.Writer, box *sandbox.Box, policy sandbox.Policy, cmd *exec.Cmd) error {
	policy.Terminal = term.IsTerminal(int(os.Stdin.Fd())) //nolint:gosec // a descriptor fits
	run, err := box.Enter(policy)
	if err != nil {
		return err
	}
	defer run.Ended()
	if lacks := policy.Wants() &^ run.Enforced.Has; lacks != 0 {
		fmt.Fprintf(w, "yaya: weaker than profile %s: %s (back end %s; yaya sandbox says more)\n", policy.Profile, lacks.Lacking(), run.Enforced.Backend)
	}
	if cmd.Dir, err = workingDir(policy); err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := run.Wrap(cmd); err != nil {
		return err
	}
	// They are the command's: this process waits for it.
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
		_ = cmd.Wait() // its own error says less
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
				_ = cmd.Process.Signal(s) // it may have ended
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
