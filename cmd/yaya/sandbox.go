package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/internal/worded"
)

func sandboxRunCommand(g *daemon.Flags) *cobra.Command {
	var f daemon.SandboxRun
	c := &cobra.Command{
		Use: "run [flags] -- COMMAND [ARG…]", Short: "Run a command in a sandbox",
		Long: `Run a command in a sandbox.
In the profiles command and check, the command can write to the working directory, except
.git/config, .git/hooks and everything else that configures Git there. It gets the same
environment variables as the commands of agents. It can write to your home folder, to
system folders, and to folders with credentials only if --write names them. No flag gives
it yaya's own folders.
In the profiles server, plugin and browser, the working directory is hidden unless you
name it. The command starts in a private home folder, with the same environment variables
as servers. --env passes more variables; guarded passes all of them.
yaya reports the hosts that it blocks on standard error. It exits with the command's code,
or with 128 plus the number of the signal that ended the command; 127 means that the
command was not found, 126 that it could not be started, 2 wrong usage, and 1 that yaya
refused to run it or failed.

Profiles: guarded (your files and network, but not yaya's), server, command, check
(no network except its own), plugin and browser.`,
		Example: `  yaya sandbox run -- make test
  yaya sandbox run --profile server --host api.example.com -- npx -y some-server
  yaya sandbox run --profile check --read ~/data -- python3 report.py`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(sandbox.Profiles(), f.Profile) {
				return &usageError{c.CommandPath(), fmt.Errorf("--profile: unknown profile %q; the profiles are %s", f.Profile, strings.Join(sandbox.Profiles(), ", "))}
			}
			p, err := g.Paths()
			if err != nil {
				return err
			}
			set, err := g.RunSettings(p)
			if err != nil {
				return err
			}
			usage := func(err error) error { return &usageError{c.CommandPath(), err} }
			env, err := f.Environ(set, args)
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
			listens, theirs, yaya, err := daemon.RunningOwn(c.Context(), p)
			if err != nil {
				return err
			}
			if err := sandbox.CheckHosts(f.Host, nil); err != nil { // not a host
				return usage(fmt.Errorf("--host: %w", err))
			}
			if err := sandbox.CheckHosts(f.Host, listens); err != nil { // yaya's own
				return fmt.Errorf("--host: %w", err)
			}
			told := &onceEach{w: c.ErrOrStderr()}
			own, err := g.EveryOwn(p, theirs)
			if err != nil {
				return err
			}
			policy, err := f.Policy(p, path, args, told.tell, func(policy *sandbox.Policy) { watchPaths(policy, args, told, own) })
			if bad, ok := errors.AsType[*daemon.BadFlag](err); ok {
				return usage(bad)
			}
			if err != nil {
				return err
			}
			box := &sandbox.Box{Own: own.Hidden, Readable: own.Readable, Backend: set.Backend, Yaya: yaya, Set: &sandbox.Settings{Mode: sandbox.Prefer, Backend: set.Backend, BackendFrom: set.BackendFrom}, Listens: func() []string { return listens }}
			policy.Terminal = term.IsTerminal(int(os.Stdin.Fd())) //nolint:gosec // a descriptor fits
			code, err := daemon.RunInSandbox(box, policy, cmd, daemon.RunWatch{Weaker: (&weakness{c.ErrOrStderr(), daemon.SandboxCaches(p.Home)}).tell, Left: func(n int) {
				fmt.Fprintf(c.ErrOrStderr(), "yaya: killed %s left after the sandbox's first process ended\n", worded.Count(n, "process that was", "processes that were"))
			}, Git: func(notes []string) {
				for _, note := range notes {
					fmt.Fprintf(c.ErrOrStderr(), "yaya: %s\n", daemon.Printable(note, 4<<10))
				}
			}})
			if _, ok := errors.AsType[*sandbox.NotStarted](err); ok {
				return &notRun{err}
			}
			if err == nil && code != 0 {
				aboutGit(c.ErrOrStderr(), f.Profile, policy, args)
				return &exitStatus{code}
			}
			return err
		},
	}
	c.Flags().SetInterspersed(false) // flags after the command belong to the command
	c.Flags().StringVar(&f.Profile, "profile", "command", "`profile` to run in: "+strings.Join(sandbox.Profiles(), ", "))
	c.Flags().StringArrayVar(&f.Read, "read", nil, "allow reading a `path` (repeatable)")
	c.Flags().StringArrayVar(&f.Write, "write", nil, "allow reading and writing a `path` (repeatable)")
	c.Flags().StringArrayVar(&f.Host, "host", nil, "allow a `host`, such as example.com, *.example.com or example.com:8443 (repeatable)")
	c.Flags().StringArrayVar(&f.Env, "env", nil, "pass a `variable` of your environment (repeatable)")
	return c
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
