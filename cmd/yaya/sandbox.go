package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/sandbox"
)

// sandboxRun are the flags of yaya sandbox run.
type sandboxRun struct {
	profile           string
	read, write, host []string
}

func sandboxRunCommand(g *globals) *cobra.Command {
	var f sandboxRun
	c := &cobra.Command{
		Use: "run [flags] -- COMMAND [ARG…]", Short: "Run a command in a sandbox",
		Long: `Run a command in a sandbox. In the profiles command and check the working directory
can be written, but for .git/config, .git/hooks and what else configures Git there; in
server, plugin and browser it is not seen unless you name it, and the command starts in
a private home. Hosts that the command is kept from are told on standard error. It exits with the command's code, or 128 and the
number of the signal that ended it.

Profiles: guarded (your files and network without yaya's), server, command, check
(no network but its own), plugin and browser.`,
		Example: `  yaya sandbox run -- make test
  yaya sandbox run --profile server --host api.example.com -- npx -y some-server
  yaya sandbox run --profile check --read ~/data -- python3 report.py`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := g.paths()
			if err != nil {
				return err
			}
			policy, err := f.policy(c.ErrOrStderr(), p, args[0])
			if err != nil {
				return err
			}
			return runInSandbox(c.Context(), c.ErrOrStderr(), p, policy, args)
		},
	}
	c.Flags().SetInterspersed(false) // what follows the command is its own
	c.Flags().StringVar(&f.profile, "profile", "command", "`profile` to run in: "+strings.Join(sandbox.Profiles(), ", "))
	c.Flags().StringArrayVar(&f.read, "read", nil, "let it read a `path` (repeatable)")
	c.Flags().StringArrayVar(&f.write, "write", nil, "let it write a `path` (repeatable)")
	c.Flags().StringArrayVar(&f.host, "host", nil, "let it reach a `host`, such as example.com, *.example.com or example.com:8443 (repeatable)")
	return c
}

// policy is what the flags ask for.
func (f *sandboxRun) policy(w io.Writer, p paths, command string) (sandbox.Policy, error) {
	boxes := &sandbox.Sandboxes{Home: p.home, Cache: sandboxCaches(p.home)}
	policy, err := boxes.Policy(f.profile, f.profile) // guarded has the user's caches
	if err != nil {
		return policy, err
	}
	if len(f.host) > 0 && policy.Net.Mode < sandbox.Hosts {
		policy.Net.Mode = sandbox.Hosts
	}
	policy.Net.Allow = append(policy.Net.Allow, f.host...)
	if policy.Profile == "server" {
		policy.Net.Allow = append(policy.Net.Allow, sandbox.RegistryOf(command)...)
	}
	policy.Net.Denied = func(d sandbox.Denial) {
		text := fmt.Sprintf("kept from reaching %s: %s", net.JoinHostPort(d.Host, strconv.Itoa(d.Port)), d.Why)
		if d.Allow != "" {
			text += " (allow it: --host " + d.Allow + ")"
		}
		fmt.Fprintln(w, "yaya:", feature.Clean(text, 1<<10))
	}
	policy.Require = policy.Wants() & (sandbox.NeedHidden | sandbox.NeedStrict | sandbox.NeedWrites | sandbox.NeedNetwork | sandbox.NeedKernel)
	if policy.Read, err = sandbox.OpenAll(f.read...); err != nil {
		return policy, err
	}
	if policy.Write, err = sandbox.OpenAll(f.write...); err != nil {
		return policy, errors.Join(err, sandbox.Close(policy.Read))
	}
	if f.profile == "command" || f.profile == "check" {
		write, protect, err := sandbox.Workspace(".")
		if err != nil {
			return policy, errors.Join(err, sandbox.Close(policy.Read), sandbox.Close(policy.Write))
		}
		policy.Write, policy.Protect = append(policy.Write, write...), protect
	}
	return policy, nil
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
		if dir == p.String() || strings.HasPrefix(dir, strings.TrimSuffix(p.String(), "/")+"/") {
			return dir, nil
		}
	}
	return policy.Home, nil
}

// runInSandbox runs a command with this process's terminal until it ends.
func runInSandbox(ctx context.Context, w io.Writer, p paths, policy sandbox.Policy, argv []string) error {
	policy.Terminal = term.IsTerminal(int(os.Stdin.Fd())) //nolint:gosec // a descriptor fits
	box := &sandbox.Box{Own: hidden(p.own())}
	run, err := box.Enter(policy)
	if err != nil {
		return err
	}
	defer run.Ended()
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	if path, err = filepath.Abs(path); err != nil {
		return err
	}
	if lacks := policy.Wants() &^ run.Enforced.Has; lacks != 0 {
		fmt.Fprintf(w, "yaya: weaker than profile %s: %s (back end %s)\n", policy.Profile, strings.Join(run.Enforced.Missing, "; "), run.Enforced.Backend)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), path, argv[1:]...) //nolint:gosec // running it is the purpose
	cmd.Args[0] = argv[0]
	cmd.Env = os.Environ()
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
		return fmt.Errorf("start %s in a sandbox: %w", argv[0], err)
	}
	ended := make(chan error, 1)
	if err := run.Started(cmd.Process.Pid); err != nil {
		run.Ended()
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // its own error says less
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
