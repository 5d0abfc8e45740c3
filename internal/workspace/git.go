package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// ErrNoGit says that the workspace is no Git repository, or that git is not there.
var ErrNoGit = errors.New("the workspace is no Git repository that can be looked at")

const (
	gitTimeout = 20 * time.Second
	maxGit     = 256 << 10 // bytes of what git says
)

// git asks git about the workspace. Nothing of the repository's own configuration is
// run: no hooks, monitors, pagers or external diffs.
func (w *Workspace) git(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	all := append([]string{"--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat", "-c", "protocol.allow=never", "-c", "diff.external="}, args...)
	cmd := exec.CommandContext(ctx, "git", all...) //nolint:gosec // fixed words; paths stand behind --
	cmd.Dir = w.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0"}
	cmd.WaitDelay = time.Second
	out := &limited{left: maxGit}
	cmd.Stdout = out
	if err := cmd.Run(); err != nil {
		if cerr := ctx.Err(); cerr != nil {
			return "", cerr
		}
		return "", ErrNoGit
	}
	return out.buf.String(), nil
}

// limited keeps the beginning of what is written.
type limited struct {
	buf  bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.buf.Write(p[:n])
	l.left -= n
	return len(p), nil
}

// Status returns the branch and what has changed, a line a file (git status
// --porcelain).
func (w *Workspace) Status(ctx context.Context) (branch string, changed []string, err error) {
	out, err := w.git(ctx, "status", "--porcelain=v1", "--branch", "--untracked-files=normal", "--ignore-submodules=all")
	if err != nil {
		return "", nil, err
	}
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		if rest, ok := strings.CutPrefix(line, "## "); ok {
			branch = rest
			continue
		}
		changed = append(changed, line)
	}
	return branch, changed, nil
}

// Diff returns what has changed in tracked files since the last commit.
func (w *Workspace) Diff(ctx context.Context) (string, error) {
	out, err := w.git(ctx, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD")
	if err != nil {
		return "", fmt.Errorf("diff: %w", err)
	}
	return out, nil
}
