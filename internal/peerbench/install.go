//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// installer installs peers from their registries, each into a folder of its own.
type installer struct {
	dir  string
	node string // the program that runs peers of Node
}

// installLimit is the time that one installation may take.
const installLimit = 5 * time.Minute

// folder is where a peer is installed.
func (in *installer) folder(p *peer) string {
	return filepath.Join(in.dir, strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, p.source+"-"+p.version))
}

// ensure installs a peer unless it is there.
func (in *installer) ensure(ctx context.Context, p *peer) error {
	if p.install == nil {
		return nil
	}
	dir := in.folder(p)
	done := filepath.Join(dir, "installed")
	if _, err := os.Stat(done); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, installLimit)
	defer cancel()
	if err := p.install(ctx, in, p); err != nil {
		return err
	}
	return os.WriteFile(done, nil, 0o600)
}

// do runs a command of an installation.
func do(ctx context.Context, dir string, env []string, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, append(os.Environ(), env...), 5*time.Second
	// Its children end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(argv[0]), err, reason(string(out)))
	}
	return nil
}

// reason is the line of an output that says why it failed: one with the status of
// a registry, or an error, else the last.
func reason(out string) string {
	for line := range strings.SplitSeq(out, "\n") {
		lower := strings.ToLower(line)
		if strings.Contains(line, " 404 ") || strings.Contains(line, " 403 ") || strings.HasPrefix(lower, "error: ") {
			return lastWords(line)
		}
	}
	return lastWords(out)
}

func pip(name string) func(context.Context, *installer, *peer) error {
	return func(ctx context.Context, in *installer, p *peer) error {
		dir := in.folder(p)
		if err := do(ctx, dir, nil, "python3", "-m", "venv", dir); err != nil {
			return err
		}
		return do(ctx, dir, nil, filepath.Join(dir, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", name+"=="+p.version)
	}
}

func npm(name string) func(context.Context, *installer, *peer) error {
	return func(ctx context.Context, in *installer, p *peer) error {
		if in.node == "" {
			return errors.New("no node in the search path")
		}
		dir := in.folder(p)
		if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private":true}`), 0o600); err != nil {
			return err
		}
		return do(ctx, dir, nil, "npm", "install", "--no-audit", "--no-fund", "--loglevel=error", name+"@"+p.version)
	}
}

func golang(module string) func(context.Context, *installer, *peer) error {
	return func(ctx context.Context, in *installer, p *peer) error {
		dir := in.folder(p)
		return do(ctx, dir, []string{"GOBIN=" + filepath.Join(dir, "bin"), "GOFLAGS="}, "go", "install", module+"@"+p.version)
	}
}

// nodeProgram is the project's own Node, else that of the search path.
func nodeProgram() string {
	if own, err := filepath.Abs("internal/peers/npm/node_modules/.bin/node"); err == nil {
		if _, err := os.Stat(own); err == nil {
			return own
		}
	}
	path, err := exec.LookPath("node")
	if err != nil {
		return ""
	}
	return path
}
